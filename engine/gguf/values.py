"""Metadata values. Scalars are read at once; arrays only have their extent scanned and are decoded on demand.

Value type ids are those of the GGUF specification (ggml/docs/gguf.md).
"""

from __future__ import annotations

import mmap
import struct
from array import array
from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

from engine.gguf.cursor import Cursor
from engine.gguf.texts import Texts, string_ends

STRING, ARRAY, BOOL = 8, 9, 7

# value type id -> (name, numpy dtype)
_SCALARS: dict[int, tuple[str, str]] = {
    0: ("uint8", "<u1"), 1: ("int8", "<i1"), 2: ("uint16", "<u2"), 3: ("int16", "<i2"), 4: ("uint32", "<u4"),
    5: ("int32", "<i4"), 6: ("float32", "<f4"), BOOL: ("bool", "<u1"), 10: ("uint64", "<u8"),
    11: ("int64", "<i8"), 12: ("float64", "<f8"),
}  # fmt: skip
_DTYPES = {kind: np.dtype(code) for kind, (_, code) in _SCALARS.items()}
_MAX_DEPTH = 4

Scalar = int | float | bool | str


def kind_name(kind: int) -> str:
    if kind in _SCALARS:
        return _SCALARS[kind][0]
    return {STRING: "string", ARRAY: "array"}.get(kind, f"value type {kind}")


class MetadataArray(Sequence["Scalar | MetadataArray"]):
    """An array value, decoded at first use and then kept (but for `texts` and `numpy`, which keep nothing). Reading it
    from several threads is safe.

    `kind` is the value type id of the items. Strings that are not UTF-8 get replacement characters.
    """

    def __init__(
        self,
        data: mmap.mmap | bytes,
        kind: int,
        length: int,
        start: int,
        nested: tuple[MetadataArray, ...] = (),
        ends: array[int] | None = None,
    ) -> None:
        """`nested`: the items of an array of arrays. `ends`: `string_ends` of an array of strings."""
        self._data: mmap.mmap | bytes = data
        self.kind = kind
        self._length = length
        self._start = start
        self._ends = ends
        self._items: list[Scalar | MetadataArray] | None = list(nested) if kind == ARRAY else None

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Scalar | MetadataArray: ...
    @overload
    def __getitem__(self, index: slice) -> list[Scalar | MetadataArray]: ...
    def __getitem__(self, index: int | slice) -> Scalar | MetadataArray | list[Scalar | MetadataArray]:
        return self.tolist()[index]

    def __iter__(self) -> Iterator[Scalar | MetadataArray]:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and not isinstance(other, str) and self.tolist() == list(other)

    def __hash__(self) -> int:
        return hash((self.kind, self._length, self._start))

    def __repr__(self) -> str:
        return f"<{self._length} x {kind_name(self.kind)}>"

    def tolist(self) -> list[Scalar | MetadataArray]:
        """The items as Python values; the list is shared, do not change it."""
        if self._items is None:
            self._items = self._decode()
        return self._items

    def texts(self) -> Texts:
        """The items of an array of strings, as a copy that outlives the file; TypeError for other arrays."""
        if self._ends is None:
            raise TypeError(f"an array of {kind_name(self.kind)} has no texts")
        size = self._ends[-1] if self._ends else 0
        return Texts(self._data[self._start : self._start + size], self._ends)

    @property
    def dtype(self) -> np.dtype[np.generic] | None:
        """As `numpy` gives it; None for strings and nested arrays."""
        return np.dtype(bool) if self.kind == BOOL else _DTYPES.get(self.kind)

    def numpy(self) -> npt.NDArray[np.generic]:
        """A numeric or bool array as a copy; TypeError for strings and nested arrays."""
        if self.kind not in _DTYPES:
            raise TypeError(f"an array of {kind_name(self.kind)} has no numeric form")
        dtype = _DTYPES[self.kind]
        end = self._start + self._length * dtype.itemsize
        values = np.frombuffer(self._data[self._start : end], dtype)
        return values.astype(bool) if self.kind == BOOL else values

    def _decode(self) -> list[Scalar | MetadataArray]:
        return list(self.texts() if self.kind == STRING else self.numpy().tolist())


def read_value(cursor: Cursor, kind: int) -> Scalar | MetadataArray:
    """The value at the cursor, which moves behind it; ModelFileError when it does not fit the file."""
    if kind == STRING:
        return str(cursor.string("the string value"), "utf-8", "replace")
    if kind == ARRAY:
        return _array(cursor, 0)
    if kind not in _DTYPES:
        cursor.fail(f"unknown value type {kind}, expected 0 to 12.")
    raw = np.frombuffer(cursor.take(_DTYPES[kind].itemsize, "the value"), _DTYPES[kind])[0].item()
    return bool(raw) if kind == BOOL else raw


def _array(cursor: Cursor, depth: int) -> MetadataArray:
    kind = cursor.u32("the type of the array's items")
    smallest = _DTYPES[kind].itemsize if kind in _DTYPES else 8 if kind == STRING else 12
    if kind not in _DTYPES and kind not in (STRING, ARRAY):
        cursor.fail(f"unknown type {kind} of array items, expected 0 to 12.")
    length = cursor.count(smallest, "the length of the array")
    start = cursor.position
    if kind == ARRAY:
        return MetadataArray(cursor.data, kind, length, start, nested=_nested(cursor, length, depth))
    if kind == STRING:
        return MetadataArray(cursor.data, kind, length, start, ends=_strings(cursor, length))
    cursor.position += length * _DTYPES[kind].itemsize
    return MetadataArray(cursor.data, kind, length, start)


def _nested(cursor: Cursor, length: int, depth: int) -> tuple[MetadataArray, ...]:
    if depth >= _MAX_DEPTH:
        cursor.fail(f"arrays are nested more than {_MAX_DEPTH} deep.")
    return tuple(_array(cursor, depth + 1) for _ in range(length))


def _strings(cursor: Cursor, length: int) -> array[int]:
    """Their ends; moves behind them."""
    try:
        ends = string_ends(cursor.data, cursor.position, length)
        position = cursor.position + (ends[-1] if ends else 0)
    except (struct.error, OverflowError):
        position = cursor.size + 1
    if position > cursor.size:
        cursor.fail(f"one of its {length} strings reaches beyond the end of the file: truncated or damaged.")
    cursor.position = position
    return ends
