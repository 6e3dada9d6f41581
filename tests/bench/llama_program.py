"""A Program for a llama-family GGUF file, built here so that kernel measurements need nothing of the engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gguf import GGUFReader

from kernels import program as p
from kernels.encoding import plane_bytes

PAGE_TOKENS = 256


@dataclass
class Model:
    program: p.Program
    page_bytes: int
    reader: GGUFReader  # keeps the mapping alive

    def pages(self, sequences: int, tokens: int) -> tuple[np.ndarray, np.ndarray]:
        """A block table [sequences, pages] and the memory behind it."""
        count = -(-tokens // self.program.page_tokens)
        raw = np.zeros(sequences * count * self.page_bytes + 64, np.uint8)
        base = -(-raw.ctypes.data // 64) * 64
        table = base + np.arange(sequences * count, dtype=np.uint64) * np.uint64(self.page_bytes)
        return table.reshape(sequences, count).astype(np.uint64), raw


def _layouts(layers: int, kv_heads: int, dim: int, kv: str) -> tuple[tuple[p.KvLayerLayout, ...], int]:
    size = -(-plane_bytes(kv_heads, PAGE_TOKENS, dim, kv) // 64) * 64
    made = [p.KvLayerLayout(2 * i * size, (2 * i + 1) * size, kv_heads, dim, dim, kv, kv) for i in range(layers)]
    return tuple(made), 2 * layers * size


def load(path: Path, kv: str = "f16") -> Model:
    reader = GGUFReader(path)
    value = lambda key: reader.fields[f"llama.{key}"].contents()  # noqa: E731
    names = [t.name for t in reader.tensors]
    tensors = tuple(
        p.TensorRef(t.data.ctypes.data, int(t.tensor_type), int(np.prod(t.shape[1:])), int(t.shape[0]))
        for t in reader.tensors
    )
    index = {name: i for i, name in enumerate(names)}
    channels, heads = value("embedding_length"), value("attention.head_count")
    kv_heads, layers, ffn = value("attention.head_count_kv"), value("block_count"), value("feed_forward_length")
    dim, eps = channels // heads, value("attention.layer_norm_rms_epsilon")
    half = np.arange(dim // 2)
    rope = p.RopeTable(dim, tuple(float(value("rope.freq_base")) ** (-2.0 * half / dim)), 1.0, p.ROPE_NORM)
    kv_layers, page_bytes = _layouts(layers, kv_heads, dim, kv)
    x, norm, q, k, v, mixed, gate, up = range(8)
    widths = (channels, channels, channels, kv_heads * dim, kv_heads * dim, channels, ffn, ffn)
    ops: list[p.Instruction] = [p.Embed(x, index["token_embd.weight"])]
    for i in range(layers):
        w = lambda name, i=i: index[f"blk.{i}.{name}.weight"]  # noqa: E731
        ops += [
            p.RmsNorm(norm, x, w("attn_norm"), eps),
            p.Linear(q, norm, w("attn_q")),
            p.Linear(k, norm, w("attn_k")),
            p.Linear(v, norm, w("attn_v")),
            p.Rope(q, heads, dim, 0),
            p.Rope(k, kv_heads, dim, 0),
            p.KvWrite(k, v, i),
            p.Attention(mixed, q, i, heads, dim**-0.5),
            p.Linear(x, mixed, w("attn_output"), accumulate=True),
            p.RmsNorm(norm, x, w("ffn_norm"), eps),
            p.Linear(gate, norm, w("ffn_gate")),
            p.Linear(up, norm, w("ffn_up")),
            p.Gated(gate, gate, up),
            p.Linear(x, gate, w("ffn_down"), accumulate=True),
        ]
    output = index.get("output.weight", index["token_embd.weight"])
    ops.append(p.Head(x, index["output_norm.weight"], eps, output))
    vocabulary = tensors[output].rows
    program = p.Program(widths, tensors, kv_layers, PAGE_TOKENS, (rope,), tuple(ops), vocabulary, channels)
    return Model(program, page_bytes, reader)


def batch(tokens: np.ndarray, start: int, pages: np.ndarray, outputs: list[int]) -> p.StepBatch:
    """Rows of one sequence from position `start`."""
    rows = len(tokens)
    return p.StepBatch(
        tokens.astype(np.int32),
        np.zeros(rows, np.uint8),
        np.array([0, rows], np.int32),
        np.array([start], np.int32),
        pages,
        np.ones(1, np.uint8),
        np.array(outputs, np.int32),
        np.zeros(1, np.uint8),
    )
