"""Strings packed as a GGUF file has them: a vocabulary's hundred thousand texts without an object for each."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Sequence
from typing import overload

_LENGTH = struct.Struct("<Q")
_HEAD = _LENGTH.size


class Texts(Sequence[str]):
    """Decoded anew whenever asked for; what is not UTF-8 gets replacement characters. Immutable."""

    def __init__(self, packed: bytes, count: int) -> None:
        """`packed`: `count` times a length (8 bytes, little endian) and so many bytes."""
        self._packed = packed
        self._places = array("Q", [0])
        place, unpack, add = 0, _LENGTH.unpack_from, self._places.append
        for _ in range(count):
            place += _HEAD + unpack(packed, place)[0]
            add(place)

    def __len__(self) -> int:
        return len(self._places) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number = range(len(self))[index]
        return self._packed[self._places[number] + _HEAD : self._places[number + 1]].decode("utf-8", "replace")

    def __iter__(self) -> Iterator[str]:
        packed, begin = self._packed, _HEAD
        for end in self._places[1:]:
            yield packed[begin:end].decode("utf-8", "replace")
            begin = end + _HEAD
