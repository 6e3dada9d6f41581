"""A two-layer transformer program with random weights: big enough to cross pages, partitions and strips."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernels import program as p
from kernels.single import Weight
from tests.kernels.kv_cases import Pages, layout, payload_bytes
from tests.kernels.weights import make

VOCABULARY, CHANNELS, HEADS, KV_HEADS, DIM, FFN, PAGE = 300, 96, 6, 2, 16, 160, 64


@dataclass
class SmallModel:
    program: p.Program
    weights: list[Weight]  # keeps memory alive
    page_bytes: int

    def pages(self, sequences: int, tokens: int) -> Pages:
        last = self.program.kv_layers[-1]
        return Pages.make(last, PAGE, sequences, tokens)


def small_model(kind: str = "Q4_1") -> SmallModel:
    weights: list[Weight] = []

    def add(name: str, rows: int, cols: int) -> int:
        weights.append(make(name, rows, cols, seed=len(weights))[0])
        return len(weights) - 1

    def norm(n: int) -> int:
        weights.append(Weight.f32(np.linspace(0.5, 1.5, n, dtype=np.float32)))
        return len(weights) - 1

    first = layout(KV_HEADS, DIM, DIM, "f16", "f16", PAGE)
    step = payload_bytes(first, PAGE) - 128
    second = p.KvLayerLayout(first.k_offset + step, first.v_offset + step, KV_HEADS, DIM, DIM, "f16", "f16")
    frequencies = tuple(float(f) for f in 10000.0 ** (-np.arange(DIM // 2) / (DIM // 2)))
    x, normed, q, k, v, mixed, gate, up = range(8)
    embedding = add("Q8_0", VOCABULARY, CHANNELS)
    ops: list[p.Instruction] = [p.Embed(x, embedding)]
    for layer in range(2):
        ops += [
            p.RmsNorm(normed, x, norm(CHANNELS), 1e-5),
            p.Linear(q, normed, add(kind, HEADS * DIM, CHANNELS)),
            p.Linear(k, normed, add(kind, KV_HEADS * DIM, CHANNELS)),
            p.Linear(v, normed, add(kind, KV_HEADS * DIM, CHANNELS)),
            p.HeadNorm(q, norm(DIM), HEADS, DIM, 1e-5),
            p.Rope(q, HEADS, DIM, 0),
            p.Rope(k, KV_HEADS, DIM, 0),
            p.KvWrite(k, v, layer),
            p.Attention(mixed, q, layer, HEADS, DIM**-0.5, window=200 if layer else 0),
            p.Linear(x, mixed, add(kind, CHANNELS, HEADS * DIM), accumulate=True),
            p.RmsNorm(normed, x, norm(CHANNELS), 1e-5),
            p.Linear(gate, normed, add(kind, FFN, CHANNELS)),
            p.Linear(up, normed, add(kind, FFN, CHANNELS)),
            p.Gated(gate, gate, up),
            p.Linear(x, gate, add(kind, CHANNELS, FFN), accumulate=True),
        ]
    ops.append(p.Head(x, norm(CHANNELS), 1e-5, embedding))
    program = p.Program(
        widths=(CHANNELS, CHANNELS, HEADS * DIM, KV_HEADS * DIM, KV_HEADS * DIM, HEADS * DIM, FFN, FFN),
        tensors=tuple(w.ref() for w in weights),
        kv_layers=(first, second),
        page_tokens=PAGE,
        ropes=(p.RopeTable(DIM, frequencies, 1.0, p.ROPE_NORM),),
        instructions=tuple(ops),
        vocabulary=VOCABULARY,
        channels=CHANNELS,
    )
    return SmallModel(program, weights, payload_bytes(second, PAGE))
