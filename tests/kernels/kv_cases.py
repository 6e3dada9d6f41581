"""Paged K and V for tests, kept apart from the batch that uses them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from kernels.encoding import plane_bytes
from kernels.kv_write.reference import read_plane
from kernels.program import KvLayerLayout, StepBatch


def align64(n: int) -> int:
    return -(-n // 64) * 64


def layout(kv_heads: int, dim_k: int, dim_v: int, type_k: str, type_v: str, page_tokens: int) -> KvLayerLayout:
    """One layer that starts at byte 128 of the payload."""
    v_offset = 128 + align64(plane_bytes(kv_heads, page_tokens, dim_k, type_k))
    return KvLayerLayout(128, v_offset, kv_heads, dim_k, dim_v, type_k, type_v)


def payload_bytes(layer: KvLayerLayout, page_tokens: int) -> int:
    return align64(layer.v_offset + plane_bytes(layer.kv_heads, page_tokens, layer.head_dim_v, layer.type_v))


@dataclass
class Pages:
    """Pages of all sequences, filled with 0xFF bytes: a NaN in every float type."""

    layer: KvLayerLayout
    page_tokens: int
    raw: np.ndarray
    table: np.ndarray

    @staticmethod
    def make(layer: KvLayerLayout, page_tokens: int, sequences: int, tokens: int) -> Pages:
        count, size = -(-tokens // page_tokens), payload_bytes(layer, page_tokens)
        raw = np.full(sequences * count * size + 64, 0xFF, np.uint8)
        base = align64(raw.ctypes.data)
        table = base + np.arange(sequences * count) * size
        shuffled = np.random.default_rng(3).permutation(table)
        return Pages(layer, page_tokens, raw, shuffled.astype(np.uint64).reshape(sequences, count))

    def page(self, sequence: int, index: int) -> np.ndarray:
        at = int(self.table[sequence, index]) - self.raw.ctypes.data
        return self.raw[at : at + payload_bytes(self.layer, self.page_tokens)]

    def read(self, sequence: int, tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Stored (k [tokens, kv_heads, dim], v) as float32."""
        layer, size = self.layer, self.page_tokens
        pages = [torch.from_numpy(self.page(sequence, i).copy()) for i in range(-(-tokens // size))]
        k = [read_plane(p, layer.k_offset, layer.kv_heads, size, layer.head_dim_k, layer.type_k) for p in pages]
        v = [read_plane(p, layer.v_offset, layer.kv_heads, size, layer.head_dim_v, layer.type_v) for p in pages]
        k_all = torch.cat(k, 1).transpose(0, 1)[:tokens]
        return k_all, torch.cat(v, 1).transpose(0, 1)[:tokens]

    def batch(self, counts: list[int], starts: list[int], write: bool = True) -> StepBatch:
        rows = sum(counts)
        return StepBatch(
            tokens=np.zeros(rows, np.int32),
            roles=np.zeros(rows, np.uint8),
            seq_rows=np.cumsum([0, *counts]).astype(np.int32),
            seq_start=np.array(starts, np.int32),
            pages=np.ascontiguousarray(self.table[: len(counts)]),
            seq_write=np.full(len(counts), write, np.uint8),
            out_rows=np.zeros(0, np.int32),
            cancel=np.zeros(1, np.uint8),
        )
