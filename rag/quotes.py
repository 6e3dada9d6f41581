"""Sentences of passages that speak of something, word for word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rag.compared import content
from rag.sentences import count_words, sentences
from rag.types import Passage

FEWEST_WORDS, MOST_WORDS = 5, 60  # of a sentence that says something by itself
ENDED = re.compile(r"[.!?。！？][)\]]*$")
BRACKETS = (("(", ")"), ("{", "}"))  # where one is open, the sentence was cut out of a formula or of code
BEGINS = re.compile(r"\W{0,3}\w[\w'’-]*(?:[\s,:;]|$)")  # with a word; "z.y,w.y)). triple" does not
MARKS = re.compile('["“”„«»\\[\\]]')  # would end the quotation, or be taken for a passage's number


def telling_sentences(about: str, passages: Mapping[int, Passage], most: int) -> list[tuple[int, str]]:
    """At most `most` sentences with at least half of the words of `about`, each on one line, with its passage's number.

    Those with the most of the words come first; of as many, those below a heading that is about it, then in the order
    of the passages.
    """
    wanted = _stems(about)
    found = [
        (-len(shared), -_named(wanted, passage.heading), number, sentence)
        for number, passage in passages.items()
        for sentence in _whole(passage.text)
        if 2 * len(shared := wanted & _stems(sentence)) >= max(1, len(wanted))
    ]
    unlike: dict[str, tuple[int, str]] = {}
    for _, _, number, sentence in sorted(found, key=lambda one: one[:2]):
        unlike.setdefault(sentence.casefold(), (number, sentence))
    return list(unlike.values())[:most]


def _named(wanted: frozenset[str], heading: str) -> float:
    """The part that the wanted words are of the innermost heading."""
    told = _stems(heading.rsplit(" > ", 1)[-1])
    return len(wanted & told) / max(1, len(told))


def _stems(text: str) -> frozenset[str]:
    """Short words without their plural too."""
    return frozenset(stem.removesuffix("s") for stem in content(text))


def _whole(text: str) -> Iterator[str]:
    for start, end in sentences(text):
        sentence = " ".join(text[start:end].split())
        pieces = any(sentence.count(one) != sentence.count(other) for one, other in BRACKETS) or not BEGINS.match(
            sentence
        )
        told = not pieces and FEWEST_WORDS <= count_words(sentence) <= MOST_WORDS
        if told and ENDED.search(sentence) and not MARKS.search(sentence):
            yield sentence
