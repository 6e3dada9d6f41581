"""Entries of a survey's lists: which of them are told by the pages they were made from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from app.core.citing import proven
from app.core.survey_notes import told_words, without_markers
from rag.types import Passage

if TYPE_CHECKING:
    from rag import Library

NAME = re.compile(r"[^\W_]+(?:[-_./]+[^\W_]+)+")
NAMING_WORDS = 6  # a longer entry says something about what it names
OF_PARTS = re.compile(r"\b(?:chapters|sections|parts|headings|titles|appendices)\b", re.IGNORECASE)


def proven_entry(entry: str, question: str, numbered: dict[int, Passage], library: Library) -> str:
    """The entry's true sentences with the numbers of their passages; "" for a heading of the pages, unless the question
    asks for those, and for made-up names."""
    passages = list(numbered.values())
    if (not OF_PARTS.search(question) and _is_heading(entry, passages)) or _is_made_up(entry, passages):
        return ""
    return proven(entry, numbered, library)


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
