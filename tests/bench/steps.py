"""Prefill and decode rates of a llama-family GGUF: python tests/bench/steps.py FILE --threads 1 2 --prompt 512."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from kernels.native_program import NativeProgram
from tests.bench.llama_program import batch, load


def measure(native: NativeProgram, pages: np.ndarray, prompt: int, generate: int, chunk: int) -> tuple[float, float]:
    tokens = np.random.default_rng(1).integers(0, native.program.vocabulary, prompt + generate)
    start = time.perf_counter()
    for at in range(0, prompt, chunk):
        part = tokens[at : min(at + chunk, prompt)]
        native.step(batch(part, at, pages, [len(part) - 1] if at + chunk >= prompt else []))
    middle = time.perf_counter()
    for at in range(prompt, prompt + generate):
        native.step(batch(tokens[at : at + 1], at, pages, [0]))
    end = time.perf_counter()
    return prompt / (middle - start), generate / (end - middle)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=32)
    parser.add_argument("--chunk", type=int, default=512)
    parser.add_argument("--kv", default="f16")
    parser.add_argument("--isa")
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    model = load(args.file, args.kv)
    pages, memory = model.pages(1, args.prompt + args.generate)
    for threads in args.threads:
        native = NativeProgram(model.program, threads, args.isa)
        runs = [measure(native, pages, args.prompt, args.generate, args.chunk) for _ in range(args.repeat)]
        best = [max(column) for column in zip(*runs, strict=True)]
        middle = [sorted(column)[len(runs) // 2] for column in zip(*runs, strict=True)]
        print(
            f"{native.isa} threads {threads}: prefill {middle[0]:.0f} (best {best[0]:.0f}) tok/s, "
            f"decode {middle[1]:.1f} (best {best[1]:.1f}) tok/s"
        )
    del memory


if __name__ == "__main__":
    main()
