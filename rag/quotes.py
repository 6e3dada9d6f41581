"""Sentences of passages that speak of something, word for word."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from rag.compared import content
from rag.sentences import Span, count_words, sentences
from rag.types import Passage

FEWEST_WORDS, MOST_WORDS = 5, 60  # of a sentence that says something by itself
ENDED = re.compile(r"[.!?。！？][)\]]*$")
BRACKETS = (("(", ")"), ("{", "}"))  # where one is open, the sentence was cut out of a formula or of code
BEGINS = re.compile(r"\W{0,3}\w[\w'’-]*(?:[\s,:;]|$)")  # with a word; "z.y,w.y)). triple" does not
NEAR = 0.4  # of the weight of a question's words
LEAST_SHARED = 2  # of its words: one by itself is about anything
ABOUT_ANSWERING = frozenset({"answer", "reply"})
MARKS = re.compile('["“”„«»\\[\\]]')  # would end the quotation, or be taken for a passage's number
NUMBER = re.compile(r"\[\d")


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


def nearest_sentences(question: str, passages: Mapping[int, Passage], most: int) -> list[tuple[int, Span]]:
    """At most `most` sentences with the most of what a question asks about: numbers and spans in the texts of their
    passages, the best first. One has at least two of its words, one of them by itself, the others it may have from the
    headings above it. [] where even the best has less than NEAR of it; none has less than half of the best's.

    A word weighs the more, the fewer of the passages' sentences have it.
    """
    said = [
        (number, span, own, own | _stems(passage.heading))
        for number, passage in passages.items()
        for span, own in _telling(passage.text)
    ]
    wanted = _stems(question) - ABOUT_ANSWERING
    having = Counter(stem for *_, told in said for stem in wanted & told)
    weights = {stem: math.log(1 + len(said) / (1 + having[stem])) for stem in wanted}
    whole = sum(weights.values())

    def part(stems: frozenset[str]) -> float:
        return sum(weights[stem] for stem in wanted & stems) / whole

    about = [one for one in said if wanted & one[2] and len(wanted & one[3]) >= LEAST_SHARED]
    ranked = sorted(about, key=lambda one: (-part(one[3]), -part(one[2])))
    unlike: dict[str, tuple[int, Span]] = {}
    most_told = part(ranked[0][3]) if ranked else 0.0
    for number, span, _, told in ranked:
        if most_told >= NEAR and 2 * part(told) >= most_told:
            unlike.setdefault(" ".join(passages[number].text[slice(*span)].split()).casefold(), (number, span))
    return list(unlike.values())[:most]


def _telling(text: str) -> Iterator[tuple[Span, frozenset[str]]]:
    """Sentences that say something by themselves and hold nothing like a passage's number, with their stems."""
    for start, end in sentences(text):
        sentence = " ".join(text[start:end].split())
        if _complete(sentence) and not NUMBER.search(sentence):
            yield (start, end), _stems(sentence)


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
        if _complete(sentence) and not MARKS.search(sentence):
            yield sentence


def _complete(sentence: str) -> bool:
    """Neither cut out of a table, a formula or code, nor too short or too long to say something by itself."""
    if any(sentence.count(one) != sentence.count(other) for one, other in BRACKETS) or not BEGINS.match(sentence):
        return False
    return FEWEST_WORDS <= count_words(sentence) <= MOST_WORDS and ENDED.search(sentence) is not None
