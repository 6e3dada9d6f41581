"""Attention alone, best of several runs: python tests/bench/attention.py --kv q8 f16 --depth 7168 --threads 1 2.

Prefill: operations of both products per second, masked pairs not counted. Decode: bytes of K and V per second.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from kernels.encoding import plane_bytes
from kernels.native_program import NativeProgram
from kernels.program import Attention, KvLayerLayout, KvWrite, Program, StepBatch

PAGE = 256
Clock = Callable[[], float]


def layers_of(count: int, kv_heads: int, dim: int, types: tuple[str, str]) -> tuple[tuple[KvLayerLayout, ...], int]:
    sizes = [-(-plane_bytes(kv_heads, PAGE, dim, kind) // 64) * 64 for kind in types]
    made = (KvLayerLayout(i * sum(sizes), i * sum(sizes) + sizes[0], kv_heads, dim, dim, *types) for i in range(count))
    return tuple(made), count * sum(sizes)


def rows_batch(rows: int, start: int, pages: np.ndarray, sequences: int = 1) -> StepBatch:
    count = rows * sequences
    return StepBatch(
        np.zeros(count, np.int32),
        np.zeros(count, np.uint8),
        np.arange(sequences + 1, dtype=np.int32) * rows,
        np.full(sequences, start, np.int32),
        pages,
        np.ones(sequences, np.uint8),
        np.zeros(0, np.int32),
        np.zeros(1, np.uint8),
    )


def best(
    program: Program, batch: StepBatch, q: np.ndarray, threads: int, repeat: int, isa: str | None, clock: Clock
) -> float:
    native = NativeProgram(program, threads, isa)
    native.run_on(batch, {0: q}, [])
    seconds = []
    for _ in range(repeat):
        start = clock()
        native.step(batch)
        seconds.append(clock() - start)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kv", nargs="+", default=["q8"], help="TYPE or K,V")
    parser.add_argument("--heads", type=int, default=9)
    parser.add_argument("--kv-heads", type=int, default=3)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--layers", type=int, default=30, help="of decode: more than the caches hold")
    parser.add_argument("--depth", type=int, default=7168)
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--sequences", type=int, default=1, help="of decode, all on the same pages")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--isa")
    parser.add_argument("--cpu", action="store_true", help="CPU time of all threads instead of the clock")
    args = parser.parse_args()
    clock = time.process_time if args.cpu else time.perf_counter
    heads, kv_heads, dim, rows = args.heads, args.kv_heads, args.dim, args.rows
    rng = np.random.default_rng(1)
    for kind in args.kv:
        types = (kind.split(",")[0], kind.split(",")[-1])
        layers, size = layers_of(args.layers, kv_heads, dim, types)
        count = -(-(args.depth + rows) // PAGE)
        raw = np.zeros(count * size + 64, np.uint8)
        pages = (-(-raw.ctypes.data // 64) * 64 + np.arange(count, dtype=np.uint64) * np.uint64(size)).reshape(1, -1)
        writes = tuple(KvWrite(0, 1, i) for i in range(args.layers))
        widths = (kv_heads * dim, kv_heads * dim)
        filler = NativeProgram(Program(widths, (), layers, PAGE, (), writes, 1, widths[0]), 1)
        values = {i: rng.standard_normal((PAGE, widths[0])).astype(np.float32) for i in range(2)}
        for page in range(count):
            filler.run_on(rows_batch(PAGE, page * PAGE, pages), values, [])
        ops = tuple(Attention(1, 0, i, heads, dim**-0.5) for i in range(args.layers))
        many = Program((heads * dim, heads * dim), (), layers, PAGE, (), ops, 1, heads * dim)
        one = replace(many, instructions=ops[:1])
        q = rng.standard_normal((rows, heads * dim)).astype(np.float32)
        work = 4 * heads * dim * rows * (args.depth + rows / 2)
        read = args.layers * (args.depth + 1) * sum(plane_bytes(kv_heads, PAGE, dim, t) for t in types) / PAGE
        together = rows_batch(1, args.depth, np.repeat(pages, args.sequences, 0), args.sequences)
        for threads in args.threads:
            chunk = best(one, rows_batch(rows, args.depth, pages), q, threads, args.repeat, args.isa, clock)
            step = best(many, together, q[: args.sequences], threads, args.repeat, args.isa, clock)
            print(
                f"{kind} threads {threads}: prefill {work / chunk / 1e9:.0f} Gop/s ({chunk / rows * 1e6:.1f} us a row "
                f"and layer), decode {step * 1e3:.2f} ms, {read / step / 1e9:.1f} GB/s"
            )


if __name__ == "__main__":
    main()
