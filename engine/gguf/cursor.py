"""A bounded cursor over the mapped header: every read is checked against the end of the file."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import NoReturn

from engine.errors import ModelFileError

_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")

MAX_STRING = 64 << 20  # a chat template or a licence text is far below; bounds one allocation


def fail(path: Path, why: str, next: str = "") -> NoReturn:
    """Raises ModelFileError for `path`."""
    raise ModelFileError(
        f"The model file {path.name} cannot be used.", why, next or "Download or convert the file again."
    )


class Cursor:
    """Reads little-endian values at `position`; `subject` names the key or tensor being read."""

    def __init__(self, data: mmap.mmap | bytes, path: Path, position: int = 0) -> None:
        self.data = data
        self.path = path
        self.size = len(data)
        self.position = position
        self.subject = "the header"

    def fail(self, why: str) -> NoReturn:
        fail(self.path, f"{self.subject}, offset {self.position}: {why}")

    def need(self, count: int, what: str) -> None:
        """Raises unless `count` more bytes exist."""
        left = self.size - self.position
        if count > left:
            self.fail(f"{what} needs {count} bytes, but only {left} are left: the file is truncated or damaged.")

    def u32(self, what: str) -> int:
        self.need(4, what)
        value: int = _U32.unpack_from(self.data, self.position)[0]
        self.position += 4
        return value

    def u64(self, what: str) -> int:
        self.need(8, what)
        value: int = _U64.unpack_from(self.data, self.position)[0]
        self.position += 8
        return value

    def take(self, count: int, what: str) -> bytes:
        self.need(count, what)
        start = self.position
        self.position += count
        return self.data[start : start + count]

    def string(self, what: str) -> bytes:
        length = self.u64(f"the length of {what}")
        if length > MAX_STRING:
            self.fail(f"{what} claims {length} bytes, expected at most {MAX_STRING}.")
        return self.take(length, what)

    def name(self, what: str) -> str:
        """A string that must be UTF-8 and not empty: a key or a tensor name."""
        start = self.position
        raw = self.string(what)
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            self.position = start
            self.fail(f"{what} is not UTF-8: {raw[:24]!r}.")
        if not text:
            self.position = start
            self.fail(f"{what} is empty, expected a name.")
        return text

    def count(self, smallest: int, what: str) -> int:
        """A count of items of at least `smallest` bytes each, checked before anything is allocated."""
        value = self.u64(what)
        left = self.size - self.position
        if value * smallest > left:
            self.fail(f"{what} is {value}, but the {left} bytes left hold at most {left // smallest}.")
        return value
