"""Strings packed as a GGUF file has them: a vocabulary's hundred thousand texts without an object for each."""

from __future__ import annotations

import mmap
import struct
from array import array
from collections.abc import Iterator, Sequence
from typing import overload

_LENGTH = struct.Struct("<Q")
_HEAD = _LENGTH.size
_PORTION = 1 << 16  # bounds what is held beside the result


class Texts(Sequence[str]):
    """Decoded anew whenever asked for; what is not UTF-8 gets replacement characters. Immutable."""

    def __init__(self, packed: bytes, ends: array[int]) -> None:
        """`packed`: for each string its length (8 bytes, little endian) and its bytes; `ends`: its `string_ends`."""
        self._packed = packed
        self._ends = ends

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number = range(len(self))[index]
        begin = self._ends[number - 1] if number else 0
        return self._packed[begin + _HEAD : self._ends[number]].decode("utf-8", "replace")

    def __iter__(self) -> Iterator[str]:
        return iter(self.decoded())

    def decoded(self) -> list[str]:
        """All of them. On the way to the first token, hence one expression."""
        packed, begins = self._packed, [0, *self._ends]
        return [
            packed[begin + _HEAD : end].decode("utf-8", "replace")
            for begin, end in zip(begins, self._ends, strict=False)
        ]


def string_ends(data: mmap.mmap | bytes, start: int, count: int) -> array[int]:
    """Where each of so many strings ends, counted from `start`, where the first one's length stands; struct.error or
    OverflowError where that is beyond `data`. Vocabularies have a hundred thousand, on the way to the first token."""
    ends, place, unpack = array("Q"), start, _LENGTH.unpack_from
    for done in range(0, count, _PORTION):
        some = range(min(_PORTION, count - done))
        ends.extend([(place := place + _HEAD + unpack(data, place)[0]) - start for _ in some])
    return ends
