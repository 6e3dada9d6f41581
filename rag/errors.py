"""Errors about documents. Each says what happened, why, and what the reader can do next."""

from __future__ import annotations


class DocumentError(Exception):
    """A document or the library cannot be used; nothing was changed by the attempt.

    Attributes:
        what: one sentence, what did not work.
        why: the cause, with the name of the file.
        next: what the reader can do about it.
        kind: "not_pdf", "empty", "truncated", "encrypted", "zero_pages", "slow", "unreadable",
            "missing", "no_space", "unknown_document" or "library".
    """

    def __init__(self, what: str, why: str = "", next: str = "", kind: str = "unreadable") -> None:
        super().__init__(f"{what} {why}".strip())
        self.what = what
        self.why = why
        self.next = next
        self.kind = kind


class IntakeCancelled(Exception):
    """The reader stopped an import. What was read so far is kept and used when the file is added again."""
