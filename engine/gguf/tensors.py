"""The tensor table of a GGUF file: read and checked against the file before anything uses it."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from engine.errors import UnsupportedModel
from engine.gguf.cursor import Cursor, fail
from engine.gguf.types import GGML_TYPES, WITHDRAWN_TYPES, GgmlType, is_ik_only, type_name

_MAX_DIMS = 4
_MAX_NAME = 64  # bytes, the GGUF specification
SMALLEST_ENTRY = 8 + 1 + 4 + 8 + 4 + 8


@dataclass(frozen=True)
class TensorInfo:
    """One tensor. `shape` in GGUF order (row length first); `offset` absolute in the file; sizes in bytes.

    `shard`: which file of a split model it lies in. `scale`: a factor of all values that the file stores elsewhere.
    """

    name: str
    ggml_type: int
    shape: tuple[int, ...]
    offset: int
    nbytes: int
    shard: int = 0
    scale: float = 1.0

    @property
    def cols(self) -> int:
        return self.shape[0]

    @property
    def rows(self) -> int:
        return math.prod(self.shape[1:])

    @property
    def type_name(self) -> str:
        return type_name(self.ggml_type)

    def part(self, first_row: int, rows: int) -> TensorInfo:
        """Rows of a matrix as a tensor of its own, under the same name: no copy for fused tensors."""
        row = self.nbytes // self.rows
        offset = self.offset + first_row * row
        return TensorInfo(self.name, self.ggml_type, (self.cols, rows), offset, rows * row, self.shard, self.scale)

    def stacked(self, count: int) -> tuple[TensorInfo, ...]:
        """`count` matrices of the same number of rows."""
        rows = self.rows // count
        return tuple(self.part(i * rows, rows) for i in range(count))

    def elements(self, first: int, count: int) -> TensorInfo:
        """Elements of a vector of an unblocked type as a vector of its own, under the same name."""
        size = self.nbytes // self.cols
        offset = self.offset + first * size
        return TensorInfo(self.name, self.ggml_type, (count,), offset, count * size, self.shard)


def read_entry(cursor: Cursor) -> TensorInfo:
    """One entry of the table; its `offset` is still relative to the tensor data."""
    name = cursor.name("the tensor name")
    cursor.subject = f"tensor {name!r}"
    if len(name.encode()) > _MAX_NAME:
        cursor.fail(f"its name has {len(name.encode())} bytes, expected at most {_MAX_NAME}.")
    dims = cursor.u32("the number of dimensions")
    if not 1 <= dims <= _MAX_DIMS:
        cursor.fail(f"it has {dims} dimensions, expected 1 to {_MAX_DIMS}.")
    shape = tuple(cursor.u64("a dimension") for _ in range(dims))
    kind = _known_type(cursor, cursor.u32("the tensor type"))
    return TensorInfo(name, kind.id, shape, cursor.u64("the data offset"), _checked_bytes(cursor, shape, kind))


def _known_type(cursor: Cursor, type_id: int) -> GgmlType:
    if type_id in GGML_TYPES:
        return GGML_TYPES[type_id]
    if is_ik_only(type_id):
        _refuse(cursor, type_id, "it was made for ik_llama.cpp only.")
    if type_id in WITHDRAWN_TYPES:
        _refuse(cursor, type_id, "llama.cpp has withdrawn this type.")
    cursor.fail(f"unknown tensor type {type_id}.")


def _refuse(cursor: Cursor, type_id: int, why: str) -> NoReturn:
    raise UnsupportedModel(
        f"The model file {cursor.path.name} cannot be used.",
        f"{cursor.subject} has type {type_name(type_id)} (id {type_id}): {why}",
        "Take a file with one of llama.cpp's own types, such as Q4_K_M or Q8_0.",
    )


def _checked_bytes(cursor: Cursor, shape: tuple[int, ...], kind: GgmlType) -> int:
    if 0 in shape:
        cursor.fail(f"its shape {list(shape)} has an empty dimension.")
    if shape[0] % kind.block:
        cursor.fail(f"its rows have {shape[0]} elements, {kind.name} needs a multiple of {kind.block}.")
    nbytes = kind.row_bytes(shape[0]) * math.prod(shape[1:])
    if nbytes > cursor.size:
        cursor.fail(
            f"shape {list(shape)} in {kind.name} needs {nbytes} bytes, the whole file has {cursor.size}: "
            "it is truncated or damaged."
        )
    return nbytes


def place(entries: list[TensorInfo], data_start: int, alignment: int, size: int, path: Path) -> dict[str, TensorInfo]:
    """Checks alignment, bounds, overlap and names; returns the table with absolute offsets."""
    placed: dict[str, TensorInfo] = {}
    for entry in entries:
        if entry.name in placed:
            fail(path, f"tensor {entry.name!r} appears twice.")
        placed[entry.name] = _placed(entry, data_start, alignment, size, path)
    _check_overlap(placed, path)
    return placed


def _placed(entry: TensorInfo, data_start: int, alignment: int, size: int, path: Path) -> TensorInfo:
    if entry.offset % alignment:
        fail(path, f"tensor {entry.name!r}: data offset {entry.offset}, expected a multiple of {alignment}.")
    offset = data_start + entry.offset
    end = offset + entry.nbytes
    if end > size:
        fail(
            path,
            f"tensor {entry.name!r} lies at bytes {offset} to {end}, but the file ends at {size} "
            f"({end - size} bytes are missing): the download is probably incomplete.",
            "Download the file again.",
        )
    return TensorInfo(entry.name, entry.ggml_type, entry.shape, offset, entry.nbytes)


def _check_overlap(placed: dict[str, TensorInfo], path: Path) -> None:
    in_order = sorted(placed.values(), key=lambda t: t.offset)
    for before, after in itertools.pairwise(in_order):
        if before.offset + before.nbytes > after.offset:
            fail(path, f"tensors {before.name!r} and {after.name!r} overlap at offset {after.offset}.")
