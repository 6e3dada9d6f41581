"""K and V of one sequence in its pages, as numpy: the reference backend's access to page memory.

The layout is that of kernels.program.KvLayerLayout; a page is given by the address of its payload.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.program import KvLayerLayout

Floats = npt.NDArray[np.float32]

_ITEM_TYPES: dict[str, str] = {"f32": "<f4", "f16": "<f2", "bf16": "<u2", "q8": "<i1", "q4": "<u1"}
_BLOCK = 32
_ALIGNMENT = 64


@dataclass(frozen=True)
class KvHalf:
    """K or V of one layer: where it lies in a page and how its elements are stored."""

    offset: int
    heads: int
    channels: int
    kind: str
    page_tokens: int

    def write(self, pages: npt.NDArray[np.uint64], start: int, rows: Floats) -> None:
        """Stores `rows` [n, heads, channels] at the positions from `start` on."""
        for page, first, last in self._runs(start, start + len(rows)):
            part = rows[page * self.page_tokens + first - start :][: last - first].transpose(1, 0, 2)
            self._store(int(pages[page]), slice(first, last), np.ascontiguousarray(part))

    def read(self, pages: npt.NDArray[np.uint64], count: int, oldest: int = 0) -> Floats:
        """The first `count` positions: float32 [heads, count, channels]; zeros before `oldest`, which is not read."""
        out = np.zeros((self.heads, count, self.channels), np.float32)
        for page, first, last in self._runs(oldest, count):
            at = page * self.page_tokens
            out[:, at + first : at + last] = self._load(int(pages[page]), slice(first, last))
        return out

    def _runs(self, start: int, stop: int) -> list[tuple[int, int, int]]:
        """(page, first slot, slot behind the last) of the pages that positions [start, stop) lie in."""
        size = self.page_tokens
        return [
            (page, max(start - page * size, 0), min(stop - page * size, size))
            for page in range(start // size, -(-stop // size))
        ]

    def _store(self, address: int, slots: slice, values: Floats) -> None:
        data = self._data(address)
        if self.kind in ("q8", "q4"):
            pack = _to_q8 if self.kind == "q8" else _to_q4
            data[:, slots], self._scales(address)[:, slots] = pack(values)
        elif self.kind == "bf16":
            data[:, slots] = _to_bf16(values)
        else:
            with np.errstate(over="ignore"):
                data[:, slots] = values

    def _load(self, address: int, slots: slice) -> Floats:
        data = self._data(address)[:, slots]
        if self.kind in ("q8", "q4"):
            scales = self._scales(address)[:, slots].astype(np.float32).repeat(_BLOCK, axis=-1)
            return data.astype(np.float32) * scales if self.kind == "q8" else _rotated(_nibbles(data) * scales)
        if self.kind == "bf16":
            return (data.astype(np.uint32) << 16).view(np.float32)
        return data.astype(np.float32)

    @property
    def _items(self) -> int:
        return self.channels // 2 if self.kind == "q4" else self.channels

    def _data(self, address: int) -> npt.NDArray[Any]:
        return self._view(address + self.offset, self._items, np.dtype(_ITEM_TYPES[self.kind]))

    def _scales(self, address: int) -> npt.NDArray[Any]:
        behind = self.offset + self.heads * self.page_tokens * self._items
        aligned = -(-behind // _ALIGNMENT) * _ALIGNMENT
        return self._view(address + aligned, self.channels // _BLOCK, np.dtype("<f2"))

    def _view(self, address: int, width: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        shape = (self.heads, self.page_tokens, width)
        size = self.heads * self.page_tokens * width * dtype.itemsize
        memory = memoryview((ctypes.c_uint8 * size).from_address(address))
        return np.frombuffer(memory, dtype).reshape(shape)


def halves(layer: KvLayerLayout, page_tokens: int) -> tuple[KvHalf, KvHalf]:
    """K and V of a layer."""
    return (
        KvHalf(layer.k_offset, layer.kv_heads, layer.head_dim_k, layer.type_k, page_tokens),
        KvHalf(layer.v_offset, layer.kv_heads, layer.head_dim_v, layer.type_v, page_tokens),
    )


def _to_bf16(values: Floats) -> npt.NDArray[np.uint16]:
    """Rounds to nearest, ties to even."""
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def _to_q8(values: Floats) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float16]]:
    """Blocks of 32 channels: f16 scale = largest magnitude / 127, int8 = value / stored scale."""
    blocks = values.reshape(*values.shape[:-1], -1, _BLOCK)
    with np.errstate(over="ignore"):
        scales = (np.abs(blocks).max(-1) / np.float32(127)).astype(np.float16)
    stored = scales.astype(np.float32)[..., None]
    inverse = np.divide(np.float32(1), stored, out=np.zeros_like(stored), where=stored > 0)
    quants = np.clip(np.rint(blocks * inverse), -127, 127).astype(np.int8)
    return quants.reshape(values.shape), scales


def _to_q4(values: Floats) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float16]]:
    """Rotated blocks of 32 channels: f16 scale = largest magnitude / 7.5, nibble = value / stored scale + 8."""
    blocks = _rotated(values).reshape(*values.shape[:-1], -1, _BLOCK)
    with np.errstate(over="ignore"):
        scales = (np.abs(blocks).max(-1) / np.float32(7.5)).astype(np.float16)
    stored = scales.astype(np.float32)[..., None]
    inverse = np.divide(np.float32(1), stored, out=np.zeros_like(stored), where=stored > 0)
    quants = (np.clip(np.rint(blocks * inverse), -8, 7) + 8).astype(np.uint8)
    packed = quants[..., :16] | quants[..., 16:] << 4
    return packed.reshape(*values.shape[:-1], -1), scales


def _nibbles(packed: npt.NDArray[np.uint8]) -> Floats:
    blocks = packed.reshape(*packed.shape[:-1], -1, _BLOCK // 2)
    wide = np.concatenate((blocks & 15, blocks >> 4), -1).astype(np.float32) - np.float32(8)
    return wide.reshape(*packed.shape[:-1], -1)


def _rotated(values: Floats) -> Floats:
    """Walsh-Hadamard transform of each run of 2^k channels, 2^k the largest power of two that divides the head."""
    channels = values.shape[-1]
    run = channels & -channels
    x, half = values.reshape(*values.shape[:-1], -1, run), 1
    while half < run:
        pairs = x.reshape(*x.shape[:-1], -1, 2, half)
        x = np.stack((pairs[..., 0, :] + pairs[..., 1, :], pairs[..., 0, :] - pairs[..., 1, :]), -2).reshape(x.shape)
        half *= 2
    return (x * np.float32(run**-0.5)).reshape(values.shape)
