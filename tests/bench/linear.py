"""Rate of the quantised matrix product alone: python tests/bench/linear.py --type q4_1 --tokens 1 8 64 512.

Weights cycle through --megabytes of memory, so few-token figures are memory rates. CPU time of the calling thread is
used with one thread, so that other processes disturb less.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from kernels import program as p
from kernels.encoding import row_bytes
from kernels.native_program import NativeProgram
from tests.kernels.weights import FLOATS, make
from tests.kernels.weights import TYPES as ALL_TYPES

TYPES = {name.lower(): number for name, number in ALL_TYPES.items()}


def random_weights(kind: int, rows: int, cols: int, count: int) -> np.ndarray:
    """[count * rows, bytes of a row] of random codes; the first blocks repeat, rates do not depend on values."""
    name = next(n for n, number in ALL_TYPES.items() if number == kind)
    if name in FLOATS:
        return np.zeros((count * rows, row_bytes(kind, cols)), np.uint8)
    some = make(name, rows, cols)[0].data.view(np.uint8).reshape(rows, -1)
    return np.ascontiguousarray(np.tile(some, (count, 1)))


def build(kind: int, rows: int, cols: int, count: int, products: int, raw: np.ndarray) -> p.Program:
    size = rows * row_bytes(kind, cols)
    base = raw.ctypes.data
    tensors = tuple(p.TensorRef(base + i % count * size, kind, rows, cols) for i in range(products))
    ops = tuple(p.Linear(1, 0, i) for i in range(products))
    return p.Program((cols, rows), tensors, (), 64, (), ops, 1, cols)


def batch(rows: int) -> p.StepBatch:
    i32, u8 = np.int32, np.uint8
    pages = np.zeros((1, 1), np.uint64)
    return p.StepBatch(
        np.zeros(rows, i32),
        np.zeros(rows, u8),
        np.array([0, rows], i32),
        np.zeros(1, i32),
        pages,
        np.ones(1, u8),
        np.zeros(0, i32),
        np.zeros(1, u8),
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--type", choices=TYPES, default="q4_1")
    parser.add_argument("--rows", type=int, default=1536)
    parser.add_argument("--cols", type=int, default=576)
    parser.add_argument("--tokens", type=int, nargs="+", default=[1, 2, 4, 8, 16, 64, 512])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--isa")
    parser.add_argument("--seconds", type=float, default=0.7)
    args = parser.parse_args()
    kind = TYPES[args.type]
    size = args.rows * row_bytes(kind, args.cols)
    clock = time.thread_time if args.threads == 1 else time.perf_counter
    for tokens in args.tokens:
        count = max(1, int(args.megabytes * 1e6 / size))
        products = max(1, 128 // max(1, tokens // 4))  # enough to hide the cost of a call
        raw = random_weights(kind, args.rows, args.cols, count)
        native = NativeProgram(build(kind, args.rows, args.cols, count, products, raw), args.threads, args.isa)
        x = np.random.default_rng(1).standard_normal((tokens, args.cols)).astype(np.float32)
        native.run_on(batch(tokens), {0: x}, [])
        times, end = [], time.perf_counter() + args.seconds
        while time.perf_counter() < end or len(times) < 3:
            start = clock()
            native.step(batch(tokens))
            times.append(clock() - start)
        best, middle = min(times), sorted(times)[len(times) // 2]
        work = 2e-9 * args.rows * args.cols * tokens * products
        print(
            f"{args.type} {tokens:4d} tokens: {work / middle:6.1f} Gop/s (best {work / best:6.1f}), "
            f"weights {products * size * 1e-9 / middle:5.1f} GB/s (best {products * size * 1e-9 / best:5.1f})"
        )


if __name__ == "__main__":
    main()
