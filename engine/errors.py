"""Errors the engine raises. Each says what happened, why, and what the reader can do next."""

from __future__ import annotations


class EngineError(Exception):
    """A failure that belongs to the reader's world (a file, a limit), not a bug of ours.

    Attributes:
        what: one sentence, what did not work.
        why: the cause, with the name of the file, key or tensor, and what was expected.
        next: what the reader can do about it.
    """

    def __init__(self, what: str, why: str = "", next: str = "") -> None:
        super().__init__(f"{what} {why}".strip())
        self.what = what
        self.why = why
        self.next = next


class ModelFileError(EngineError):
    """The model file is not a GGUF, is truncated, or contradicts itself."""


class UnsupportedModel(EngineError):
    """The file is sound, but its architecture, tensor type or tokenizer is not supported."""


class ContextOverflow(EngineError):
    """The prompt does not fit the context; nothing was cut."""


class StoreError(EngineError):
    """The KV store cannot be written or opened; conversations go on without it."""
