"""Shard: one memory-mapped GGUF file, read and checked. A model is one of them, or several (see `split`).

Format: ggml/docs/gguf.md, versions 2 and 3, little-endian. Nothing of the tensor data is touched on opening.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.gguf import large_pages
from engine.gguf.cursor import Cursor, fail
from engine.gguf.identify import looks_like
from engine.gguf.tensors import SMALLEST_ENTRY, TensorInfo, place, read_entry
from engine.gguf.values import MetadataArray, Scalar, read_value

MAGIC = b"GGUF"
_SMALLEST_PAIR = 8 + 1 + 4 + 1
_DEFAULT_ALIGNMENT = 32
_MAX_ALIGNMENT = 1 << 20


class Shard:
    """Attributes: path; size in bytes; version; alignment; metadata; tensors, in the order of the file."""

    def __init__(self, path: Path, mapping: mmap.mmap) -> None:
        self.path = path
        self.size = len(mapping)
        self._mapping = mapping
        cursor = Cursor(mapping, path)
        self.version = _read_version(cursor)
        tensor_count = cursor.count(SMALLEST_ENTRY, "the number of tensors")
        self.metadata: dict[str, Scalar | MetadataArray] = _read_metadata(cursor)
        self.alignment = _alignment(self.metadata, path)
        self.tensors: dict[str, TensorInfo] = _read_tensors(cursor, tensor_count, self.alignment)
        self.bytes: npt.NDArray[np.uint8] = np.frombuffer(mapping, np.uint8)
        self.base: int = self.bytes.__array_interface__["data"][0]

    @staticmethod
    def open(path: Path) -> Shard:
        """Errors as GgufFile.open."""
        mapping = _map(path)
        try:
            return Shard(path, mapping)
        except BaseException:
            mapping.close()
            raise

    def ask_large_pages(self) -> None:
        large_pages.ask(self._mapping)

    def close(self) -> None:
        """Ends the mapping; where views are still alive it ends with the last of them."""
        self.bytes = np.empty(0, np.uint8)
        with contextlib.suppress(BufferError):
            self._mapping.close()


def _map(path: Path) -> mmap.mmap:
    if path.is_dir():
        fail(path, "It is a folder, expected a GGUF file.", "Choose the .gguf file itself.")
    if path.exists() and not path.is_file():  # opening a pipe would wait for its other end
        fail(path, "It is a device or a pipe, expected a GGUF file.", "Choose a file.")
    try:
        with path.open("rb") as file:
            head = file.read(1024)
            _check_magic(head, os.fstat(file.fileno()).st_size, path)
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        fail(path, f"{path}: {reason}.", "Check that the file exists and may be read.")


def _check_magic(head: bytes, size: int, path: Path) -> None:
    if head[:4] != MAGIC:
        fail(
            path,
            f"It is not a GGUF file but {looks_like(head, size)}.",
            "Choose a model file in GGUF format.",
        )


def _read_version(cursor: Cursor) -> int:
    cursor.position = 4
    version = cursor.u32("the version")
    if version in (2, 3):
        return version
    cursor.position = 4
    if version and not version & 0xFFFF:
        cursor.fail("it is written for big-endian machines; expected little-endian.")
    if version == 1:
        cursor.fail("it has GGUF version 1 of 2023; expected version 2 or 3.")
    cursor.fail(f"it has GGUF version {version}; expected version 2 or 3.")


def _read_metadata(cursor: Cursor) -> dict[str, Scalar | MetadataArray]:
    values: dict[str, Scalar | MetadataArray] = {}
    for index in range(cursor.count(_SMALLEST_PAIR, "the number of keys")):
        cursor.subject = f"metadata entry {index}"
        key = cursor.name("the key")
        cursor.subject = f"key {key!r}"
        if key in values:
            cursor.fail("the key appears twice.")
        values[key] = read_value(cursor, cursor.u32("the value type"))
    return values


def _alignment(metadata: Mapping[str, Scalar | MetadataArray], path: Path) -> int:
    value = metadata.get("general.alignment", _DEFAULT_ALIGNMENT)
    if type(value) is not int or not 1 <= value <= _MAX_ALIGNMENT or value & (value - 1):
        fail(path, f"key 'general.alignment' is {value!r}, expected a power of two up to {_MAX_ALIGNMENT}.")
    return value


def _read_tensors(cursor: Cursor, count: int, alignment: int) -> dict[str, TensorInfo]:
    entries = []
    for index in range(count):
        cursor.subject = f"tensor entry {index}"
        entries.append(read_entry(cursor))
    data_start = -(-cursor.position // alignment) * alignment
    return place(entries, data_start, alignment, cursor.size, cursor.path)
