"""Prefill and decode rates of a llama-family GGUF: python tests/bench/steps.py FILE --prompt 512 [--depth 7680]."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from kernels.native_program import NativeProgram
from kernels.program import KvWrite, Program
from tests.bench.llama_program import Model, batch, load

Clock = Callable[[], float]


def measure(
    native: NativeProgram, pages: np.ndarray, prompt: int, generate: int, chunk: int, depth: int, clock: Clock
) -> tuple[float, float]:
    tokens = np.random.default_rng(1).integers(0, native.program.vocabulary, prompt + generate)
    start = clock()
    for at in range(0, prompt, chunk):
        part = tokens[at : min(at + chunk, prompt)]
        native.step(batch(part, depth + at, pages, [len(part) - 1] if at + chunk >= prompt else []))
    middle = clock()
    for at in range(prompt, prompt + generate):
        native.step(batch(tokens[at : at + 1], depth + at, pages, [0]))
    end = clock()
    return prompt / (middle - start), generate / (end - middle)


def fill(model: Model, pages: np.ndarray) -> None:
    """Random K and V in all pages, written as if by a model."""
    layers = model.program.kv_layers
    widths = tuple(w for x in layers for w in (x.kv_heads * x.head_dim_k, x.kv_heads * x.head_dim_v))
    ops = tuple(KvWrite(2 * i, 2 * i + 1, i) for i in range(len(layers)))
    program = Program(widths, (), layers, model.program.page_tokens, (), ops, 1, widths[0])
    native, rows, rng = NativeProgram(program, 1), model.program.page_tokens, np.random.default_rng(2)
    values = {i: rng.standard_normal((rows, width)).astype(np.float32) for i, width in enumerate(widths)}
    for page in range(pages.shape[1]):
        native.run_on(batch(np.zeros(rows), page * rows, pages, []), values, [])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=32)
    parser.add_argument("--chunk", type=int, default=512)
    parser.add_argument("--depth", type=int, default=0, help="tokens of random K and V before the prompt")
    parser.add_argument("--cpu", action="store_true", help="rates by CPU time of all threads, not by the clock")
    parser.add_argument("--kv", default="f16")
    parser.add_argument("--isa")
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    model = load(args.file, args.kv)
    pages, memory = model.pages(1, args.depth + args.prompt + args.generate)
    fill(model, pages)
    clock = time.process_time if args.cpu else time.perf_counter
    for threads in args.threads:
        native = NativeProgram(model.program, threads, args.isa)
        sizes = (args.prompt, args.generate, args.chunk, args.depth)
        runs = [measure(native, pages, *sizes, clock) for _ in range(args.repeat)]
        best = [max(column) for column in zip(*runs, strict=True)]
        middle = [sorted(column)[len(runs) // 2] for column in zip(*runs, strict=True)]
        print(
            f"{native.isa} threads {threads}: prefill {middle[0]:.0f} (best {best[0]:.0f}) tok/s, "
            f"decode {middle[1]:.1f} (best {best[1]:.1f}) tok/s"
        )
    del memory


if __name__ == "__main__":
    main()
