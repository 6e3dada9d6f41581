"""Drives the extraction process: starts it, bounds its time and memory, starts it again after a crash."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from rag.errors import DocumentError
from rag.pdf.process import Child, Message
from rag.pdf.text import CharMap
from rag.types import Outline, PageKind


@dataclass(frozen=True)
class Limits:
    """Bounds of the extraction process. The largest real page seen took 0.2 s and the largest file 320 MB."""

    open_seconds: float = 60.0
    page_seconds: float = 20.0
    failing_seconds: float = 120.0  # spent on pages that cannot be read, before the rest of a file is left out
    memory_bytes: int = 4 << 30


@dataclass(frozen=True)
class Contents:
    """What is known of a PDF before its pages are read. `labels`: one per page, file number where it has none.
    `metadata`: "title", "author" and the like, as far as the file gives them."""

    pages: int
    labels: tuple[str, ...]
    outline: tuple[Outline, ...]
    encrypted: bool
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ExtractedPage:
    page_index: int
    text: str
    positions: CharMap
    kind: PageKind
    reason: str
    failed: bool = False  # the reader crashed or had to be stopped
    left_out: bool = False  # not tried: the pages before it have taken all the time


class Extraction:
    """One PDF being read by a child process; leave the `with` block to end it.

    Args:
        cancelled: asked ten times a second; when it says so the child is killed and `IntakeCancelled` raised.
        save_as: where PDFium writes a copy without encryption, if given.
        command: another program that speaks the protocol of `rag.pdf.worker`.
    """

    def __init__(
        self,
        path: Path,
        password: str | None = None,
        cancelled: Callable[[], bool] | None = None,
        save_as: Path | None = None,
        limits: Limits | None = None,
        command: Sequence[str] | None = None,
    ) -> None:
        self._path = path
        self._password = password
        self._cancelled = cancelled or (lambda: False)
        self._save_as = save_as
        self._limits = limits or Limits()
        self._command = command or (sys.executable, "-m", "rag.pdf.worker")
        self._child: Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop()

    def contents(self) -> Contents:
        """Opens the file.

        Errors: DocumentError with kind "encrypted", "zero_pages", "format", "slow" or "unreadable".
        """
        try:
            return _contents(self._start([]))
        finally:
            self._stop()

    def pages(self, wanted: Sequence[int]) -> Iterator[ExtractedPage]:
        """The wanted pages in their order. A page that crashes or stalls the child is given as unreadable; when such
        pages have taken too much time, so are all that follow."""
        rest = list(wanted)
        left = self._limits.failing_seconds
        while rest and left > 0:
            start = time.monotonic()
            self._start(rest)
            for page in self._running_pages(tuple(rest)):
                rest.pop(0)
                assert self._child is not None
                left -= self._child.clock() - start if page.failed else 0.0
                yield page
                start = self._child.clock()
            self._stop()
        yield from map(_left_out, rest)

    def _running_pages(self, wanted: Sequence[int]) -> Iterator[ExtractedPage]:
        """Pages from the running child up to the first failure, which is given as an unreadable page."""
        for index in wanted:
            message = self._next(self._limits.page_seconds)
            if message["type"] != "page":
                reason = "took too long to read" if message["type"] == "stalled" else "made the PDF reader crash"
                yield _unread(index, f"The page {reason}.")
                return
            yield _page(message)

    def _start(self, pages: Sequence[int]) -> Message:
        request = {
            "path": str(self._path),
            "password": self._password,
            "pages": list(pages),
            "save_as": str(self._save_as) if self._save_as else None,
            "memory_bytes": self._limits.memory_bytes,
        }
        self._child = Child(self._command, request, self._cancelled)
        message = self._next(self._limits.open_seconds)
        if message["type"] != "open":
            raise _open_error(self._path, message)
        return message

    def _next(self, seconds: float) -> Message:
        assert self._child is not None
        return self._child.next(seconds)

    def _stop(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None


def _contents(message: Message) -> Contents:
    outline = tuple(Outline(title, page, level) for title, page, level in message["outline"])
    return Contents(
        message["pages"], tuple(message["labels"]), outline, message["encrypted"], message.get("metadata", {})
    )


def _page(message: Message) -> ExtractedPage:
    positions = CharMap(tuple(message["clean"]), tuple(message["raw"]))
    return ExtractedPage(message["page"], message["text"], positions, message["kind"], message["reason"])


def _unread(index: int, reason: str) -> ExtractedPage:
    return ExtractedPage(index, "", CharMap((), ()), "garbled", reason, failed=True)


def _left_out(index: int) -> ExtractedPage:
    return replace(_unread(index, "Too many pages before it could not be read; it was left out."), left_out=True)


def _open_error(path: Path, message: Message) -> DocumentError:
    if message["type"] == "error":
        return DocumentError(f"{path.name} cannot be opened.", message["message"], kind=message["kind"])
    if message["type"] == "stalled":
        return DocumentError(f"{path.name} cannot be opened.", "Opening it took too long.", kind="slow")
    return DocumentError(f"{path.name} cannot be opened.", "It makes the PDF reader crash.")
