"""How much of the documents an answer rests on, and what was never looked at."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag.types import DocumentId

NOT_FOUND = re.compile(
    r"(?:\b(?:not|no|nothing|never|neither|cannot|unable|without)|n['’]t)\b[^.!?\n]{0,60}?\b(?:mention(?:ed|s)?|found|find"
    r"|contain(?:ed|s)?|state[ds]?|provide[ds]?|specif(?:y|ied|ies)|information|answer|given|say|said|describe[ds]?"
    r"|include[ds]?|present|available|discuss(?:ed|es)?)\b",
    re.IGNORECASE,
)
SHORT_ANSWER = 400  # characters; a longer one has said something before it found something missing


@dataclass(frozen=True)
class Coverage:
    """Pages of one document that were in the context.

    Attributes:
        read: their indices, ascending.
        unreadable: pages nobody can have read, because they are scans or garbled.
    """

    document_id: DocumentId
    document: str
    pages: int
    read: tuple[int, ...]
    unreadable: tuple[int, ...] = ()

    @property
    def unread(self) -> tuple[int, ...]:
        """Pages that could be read and were not."""
        known = {*self.read, *self.unreadable}
        return tuple(page for page in range(self.pages) if page not in known)

    @property
    def whole(self) -> bool:
        return not self.unread


def page_ranges(pages: Sequence[int], labels: Sequence[str]) -> str:
    """Ascending page indices as a reader names them, as "iv, 3–5, 9"."""
    runs: list[list[int]] = []
    for page in pages:
        if runs and runs[-1][-1] == page - 1:
            runs[-1].append(page)
        else:
            runs.append([page])
    return ", ".join(labels[run[0]] if len(run) == 1 else f"{labels[run[0]]}–{labels[run[-1]]}" for run in runs)


def says_not_found(answer: str) -> bool:
    """The answer is mostly that the documents do not say it."""
    return len(answer) <= SHORT_ANSWER and NOT_FOUND.search(answer) is not None


def not_found_note(covered: Sequence[Coverage]) -> str:
    """What to show under an answer that found nothing; "" when everything was read."""
    read, pages = sum(len(c.read) for c in covered), sum(c.pages for c in covered)
    unreadable = sum(len(c.unreadable) for c in covered)
    parts: list[str] = []
    if any(c.unread for c in covered):
        noun = "page" if pages == 1 else "pages"
        parts.append(f"Not found in the {read:,} of {pages:,} {noun} read.")
    if unreadable:
        noun = "page is a scan or has" if unreadable == 1 else "pages are scans or have"
        parts.append(f"{unreadable:,} {noun} no readable text.")
    return " ".join(parts)
