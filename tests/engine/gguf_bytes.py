"""Writes small GGUF files byte by byte, well-formed or not, for the tests of the reader and of what reads its keys."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

U32, I32, F32, BOOL, STRING, ARRAY, U64 = 4, 5, 6, 7, 8, 9, 10
_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q", 11: "q", 12: "d"}


@dataclass(frozen=True)
class Tensor:
    """`shape` in GGUF order. `offset` None: placed behind the tensor before it."""

    name: str
    shape: tuple[int, ...]
    ggml_type: int = 0
    data: bytes = b""
    offset: int | None = None


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def value_bytes(kind: int, value: Any) -> bytes:
    if kind == STRING:
        return text(value)
    if kind == ARRAY:
        item, items = value
        return struct.pack("<IQ", item, len(items)) + b"".join(value_bytes(item, one) for one in items)
    return struct.pack("<" + _FORMATS[kind], value)


def pair(key: str | bytes, kind: int, value: Any) -> bytes:
    return text(key) + struct.pack("<I", kind) + value_bytes(kind, value)


def entry(tensor: Tensor, offset: int) -> bytes:
    dims = struct.pack(f"<I{len(tensor.shape)}Q", len(tensor.shape), *tensor.shape)
    return text(tensor.name) + dims + struct.pack("<IQ", tensor.ggml_type, offset)


def padded(data: bytes, alignment: int) -> bytes:
    return data + bytes(-len(data) % alignment)


def gguf(
    pairs: Sequence[bytes] = (),
    tensors: Sequence[Tensor] = (),
    *,
    version: int = 3,
    alignment: int = 32,
    counts: tuple[int, int] | None = None,
) -> bytes:
    """A whole file. `counts`: (tensors, keys) to claim instead of the true ones."""
    tensor_count, key_count = counts or (len(tensors), len(pairs))
    head = b"GGUF" + struct.pack("<IQQ", version, tensor_count, key_count) + b"".join(pairs)
    data = b""
    for tensor in tensors:
        head += entry(tensor, len(data) if tensor.offset is None else tensor.offset)
        data += padded(tensor.data, alignment)
    return padded(head, alignment) + data if tensors else head
