"""Entries of a survey's lists: which of them are told by the pages they were made from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from app.core.citing import joined, proof
from app.core.records import StoredCitation
from app.core.survey_notes import told_apart, told_words, without_markers
from rag.compared import content
from rag.sentences import sentences
from rag.types import Passage

if TYPE_CHECKING:
    from rag import Library

NAME = re.compile(r"[^\W_]+(?:[-_./]+[^\W_]+)+")
UNCOVERED = 4  # signs at the ends of what is copied
NAMING_WORDS = 6  # a longer entry says something about what it names
OF_PARTS = re.compile(r"\b(?:chapters|sections|parts|headings|titles|appendices)\b", re.IGNORECASE)


def proven_entry(entry: str, question: str, numbered: dict[int, Passage], library: Library) -> str:
    """The entry's true sentences with the numbers of their passages; "" for a heading of the pages, unless the question
    asks for those, and for made-up names.

    A sentence that has words of its own is told in the page's: a small model turns what it rewords ("must have only
    one" for "some allow only one"), and no comparison of words sees that.
    """
    passages = list(numbered.values())
    if (not OF_PARTS.search(question) and _is_heading(entry, passages)) or _is_made_up(entry, passages):
        return ""
    said = dict.fromkeys(told_apart(entry))
    found = ((sentence, proof(sentence, numbered, library)) for sentence in said if any(map(str.isalpha, sentence)))
    told = {_told(sentence, one, numbered): one.marker for sentence, one in found if one}
    return joined(told.items())


def _told(sentence: str, found: StoredCitation, numbered: Mapping[int, Passage]) -> str:
    if found.verified == "exact" and found.answer_count >= len(sentence) - UNCOVERED:
        return sentence
    theirs = _sentence_around(found.quote, numbered[found.marker].text)
    return sentence if content(without_markers(sentence)) <= content(theirs) else theirs


def _sentence_around(quote: str, text: str) -> str:
    """The sentence of the text that holds the quotation; the quotation where it holds parts of two."""
    whole = (" ".join(text[start:end].split()) for start, end in sentences(text))
    return next((one for one in whole if quote in one), quote)


def _is_heading(entry: str, passages: Iterable[Passage]) -> bool:
    parts = {part for passage in passages for part in passage.heading.split(" > ")}
    return _bare(entry) in map(_bare, parts)


def _bare(title: str) -> tuple[str, ...]:
    return told_words(re.sub(r"^\W*(?:\d+(?:\.\d+)*|[A-Z](?:\.\d+)+)\.?\s+", "", title))


def _is_made_up(entry: str, passages: Iterable[Passage]) -> bool:
    """It names what stands nowhere, as "Debian-Debian": a model that counts up."""
    if len(entry.split()) > NAMING_WORDS:
        return False
    texts = [passage.text.casefold() for passage in passages]
    names = (name for name in NAME.findall(without_markers(entry)) if not name.islower())
    return any(all(name.casefold() not in text for text in texts) for name in names)
