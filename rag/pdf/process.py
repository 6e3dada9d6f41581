"""Child processes that answer one request with frames; bounded in time, killed at any moment.

A request is one JSON line on standard input; frames come on standard output as a little-endian u32 length and a JSON
object with a `type`. The child's parts of it: `private_output`, `lower_limits`, `end_with_parent` and `send`. To a
request is added `parent`, the id of the process that made it.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, BinaryIO

from rag.errors import IntakeCancelled

Message = dict[str, Any]
POLL_SECONDS = 0.1


def private_output() -> BinaryIO:
    """Keeps standard output for frames: whatever libraries print goes to standard error."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return out


def lower_limits(memory_bytes: int | None) -> None:
    """Gives this process a low priority and bounds its address space, where the system can."""
    if sys.platform == "win32":
        return
    import resource

    os.nice(15)
    if memory_bytes:
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))


def end_with_parent(parent: int) -> None:
    """Whoever started this process may be killed: a page that takes minutes is of no use then, and neither are the
    programs that this process has started. `parent`: its id, from the request."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        if sys.platform != "win32" and os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(1)

    if sys.platform != "win32":  # there the parent's id stays
        threading.Thread(target=watch, name="parent", daemon=True).start()


def send(out: BinaryIO, message: Message) -> None:
    body = json.dumps(message).encode()
    out.write(struct.pack("<I", len(body)) + body)
    out.flush()


class Child:
    """A running child, and a thread that reads its frames; the last one is of type "ended".

    Args:
        cancelled: asked ten times a second by `next`; when it says so the child is killed.
    """

    def __init__(self, command: Sequence[str], request: Message, cancelled: Callable[[], bool]) -> None:
        self._cancelled = cancelled
        self._frames: queue.Queue[Message] = queue.Queue(maxsize=32)
        self._stopping = threading.Event()
        self._kept_off = 0.0
        self._child = subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=_environment(), creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            process_group=None if sys.platform == "win32" else 0,  # killed with the programs that it starts
        )  # fmt: skip
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(json.dumps({**request, "parent": os.getpid()}).encode() + b"\n")
            self._child.stdin.close()
        except BrokenPipeError:
            pass
        self._reader = threading.Thread(target=self._read, name="pdf-frames", daemon=True)
        self._reader.start()

    def clock(self) -> float:
        """Monotonic seconds without those for which the child waited for a processor: with its low priority a busy
        machine may keep it off for long."""
        self._kept_off = max(self._kept_off, _kept_off(self._child.pid))
        return time.monotonic() - self._kept_off

    def next(self, seconds: float) -> Message:
        """Next frame; one of type "ended" or "stalled" when the child is gone or nothing came in time, by its clock.

        Errors: IntakeCancelled.
        """
        until = self.clock() + seconds
        while (left := until - self.clock()) > 0:
            if self._cancelled():
                self.kill()
                raise IntakeCancelled("The reader was stopped.")
            try:
                return self._frames.get(timeout=min(POLL_SECONDS, left))
            except queue.Empty:
                continue
        return {"type": "stalled"}

    def kill(self) -> None:
        self._stopping.set()
        if sys.platform != "win32" and self._child.returncode is None:  # not waited for: the id is still its own
            with suppress(OSError):
                os.killpg(self._child.pid, signal.SIGKILL)
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
                self._frames.put(frame, timeout=POLL_SECONDS)
                return True
            except queue.Full:
                continue
        return False


def _kept_off(process: int) -> float:
    """Seconds for which it was ready and had no processor; 0 where the system does not tell."""
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


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
