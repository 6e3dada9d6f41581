"""Drives the extraction process: starts it, bounds its time and memory, starts it again after a crash."""

from __future__ import annotations

import json
import os
import queue
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from rag.errors import DocumentError, IntakeCancelled
from rag.pdf.text import CharMap
from rag.types import Outline, PageKind

Message = dict[str, Any]
POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Limits:
    """Bounds of the extraction process. The largest real page seen took 0.2 s and the largest file 320 MB."""

    open_seconds: float = 60.0
    page_seconds: float = 20.0
    memory_bytes: int = 4 << 30


@dataclass(frozen=True)
class Contents:
    """What is known of a PDF before its pages are read. `labels`: one per page, file number where it has none."""

    pages: int
    labels: tuple[str, ...]
    outline: tuple[Outline, ...]
    encrypted: bool


@dataclass(frozen=True)
class ExtractedPage:
    page_index: int
    text: str
    positions: CharMap
    kind: PageKind
    reason: str


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
        self._process: _Process | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop()

    def contents(self) -> Contents:
        """Opens the file. Errors: DocumentError with kind "encrypted", "zero_pages", "format" or "unreadable"."""
        try:
            return _contents(self._start([]))
        finally:
            self._stop()

    def pages(self, wanted: Sequence[int]) -> Iterator[ExtractedPage]:
        """The wanted pages in their order. A page that crashes or stalls the child is given as unreadable."""
        rest = list(wanted)
        while rest:
            self._start(rest)
            for page in self._running_pages(tuple(rest)):
                rest.pop(0)
                yield page
            self._stop()

    def _running_pages(self, wanted: Sequence[int]) -> Iterator[ExtractedPage]:
        """Pages from the running child up to the first failure, which is given as an unreadable page."""
        for index in wanted:
            message = self._next(self._limits.page_seconds)
            if message["type"] != "page":
                reason = "took too long to read" if message["type"] == "stalled" else "made the PDF reader crash"
                yield ExtractedPage(index, "", CharMap((), ()), "garbled", f"The page {reason}.")
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
        self._process = _Process(self._command, request)
        message = self._next(self._limits.open_seconds)
        if message["type"] != "open":
            raise _open_error(self._path, message)
        return message

    def _next(self, seconds: float) -> Message:
        """Next frame; one of type "ended" or "stalled" when the child is gone or nothing came in time."""
        assert self._process is not None
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self._cancelled():
                self._stop()
                raise IntakeCancelled(str(self._path))
            try:
                return self._process.frames.get(timeout=POLL_SECONDS)
            except queue.Empty:
                continue
        return {"type": "stalled"}

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None


class _Process:
    """The child and a thread that reads its frames; the last one is of type "ended"."""

    def __init__(self, command: Sequence[str], request: Message) -> None:
        self.frames: queue.Queue[Message] = queue.Queue(maxsize=32)
        self._stopping = threading.Event()
        self._child = subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=_environment(), creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )  # fmt: skip
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(json.dumps(request).encode() + b"\n")
            self._child.stdin.close()
        except BrokenPipeError:
            pass
        self._reader = threading.Thread(target=self._read, name="pdf-frames", daemon=True)
        self._reader.start()

    def kill(self) -> None:
        self._stopping.set()
        self._child.kill()
        self._child.wait()
        self._reader.join()
        assert self._child.stdout is not None
        self._child.stdout.close()

    def _read(self) -> None:
        assert self._child.stdout is not None
        while (frame := _frame(self._child.stdout)) is not None and self._put(frame):
            pass
        self._put({"type": "ended"})

    def _put(self, frame: Message) -> bool:
        while not self._stopping.is_set():
            try:
                self.frames.put(frame, timeout=POLL_SECONDS)
                return True
            except queue.Full:
                continue
        return False


def _frame(stream: IO[bytes]) -> Message | None:
    header = stream.read(4)
    if len(header) < 4:
        return None
    (size,) = struct.unpack("<I", header)
    body = stream.read(size)
    if len(body) < size:
        return None
    message: Message = json.loads(body)
    return message


def _environment() -> dict[str, str]:
    """The child finds this package where the parent found it, whatever the working directory."""
    home = str(Path(__file__).resolve().parents[2])
    known = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([home, known] if known else [home]),
        "PYTHONSAFEPATH": "1",
    }


def _contents(message: Message) -> Contents:
    outline = tuple(Outline(title, page, level) for title, page, level in message["outline"])
    return Contents(message["pages"], tuple(message["labels"]), outline, message["encrypted"])


def _page(message: Message) -> ExtractedPage:
    positions = CharMap(tuple(message["clean"]), tuple(message["raw"]))
    return ExtractedPage(message["page"], message["text"], positions, message["kind"], message["reason"])


def _open_error(path: Path, message: Message) -> DocumentError:
    if message["type"] == "error":
        return DocumentError(f"{path.name} cannot be opened.", message["message"], kind=message["kind"])
    why = "Opening it took too long." if message["type"] == "stalled" else "It makes the PDF reader crash."
    return DocumentError(f"{path.name} cannot be opened.", why, "Try a copy of the file from its source.")
