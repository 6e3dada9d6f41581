"""Pagekeep against llama.cpp on the same file, threads and lengths, run alternately; prints ratios.

    python tests/bench/compare.py MODEL.gguf --peer-python PEER/bin/python [--threads 1 2] [--rounds 7]

The peer's environment holds llama-cpp-python, built natively. Each run is a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PEER = """
import json, sys, time, numpy as np, llama_cpp
path, threads, prompt, generate, depth = sys.argv[1], *map(int, sys.argv[2:6])
model = llama_cpp.Llama(path, n_ctx=depth + prompt + generate + 8, n_batch=512, n_ubatch=512, n_threads=threads,
                        n_threads_batch=threads, verbose=False, flash_attn=True)
ids = [(7919 * (i + 1)) % model.n_vocab() for i in range(depth + prompt + generate)]
model.eval(ids[:64]); model.reset()
if depth: model.eval(ids[:depth])
a = time.perf_counter(); model.eval(ids[depth:depth + prompt]); b = time.perf_counter()
for token in ids[depth + prompt:]: model.eval([token])
print(json.dumps([prompt / (b - a), generate / (time.perf_counter() - b)]))
"""

OURS = """
import json, sys, time
from pathlib import Path
from engine.messages import EngineSettings
from engine.offline import OfflineModel
path, threads, prompt, generate, depth = sys.argv[1], *map(int, sys.argv[2:6])
with OfflineModel(Path(path), EngineSettings(threads=threads)) as model:
    vocabulary = model.model.handle.spec.vocabulary
    ids = [(7919 * (i + 1)) % vocabulary for i in range(depth + prompt + generate)]
    model.feed(ids[:64]); model.sequence.keep_first(0)
    if depth: model.feed(ids[:depth])
    a = time.perf_counter(); model.feed(ids[depth:depth + prompt]); b = time.perf_counter()
    for token in ids[depth + prompt:]: model.feed([token])
    print(json.dumps([prompt / (b - a), generate / (time.perf_counter() - b)]))
"""


def rates(python: str, code: str, arguments: list[str]) -> tuple[float, float]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)} if code is OURS else dict(os.environ)
    done = subprocess.run(
        [python, "-c", code, *arguments], capture_output=True, text=True, check=True, env=environment, cwd=ROOT
    )
    prefill, decode = json.loads(done.stdout.strip().splitlines()[-1])
    return prefill, decode


def spread(values: list[float]) -> str:
    return f"min {min(values):.2f} median {statistics.median(values):.2f} max {max(values):.2f}"


def compare(options: argparse.Namespace, threads: int) -> None:
    arguments = [str(options.model), str(threads), str(options.prompt), str(options.generate), str(options.depth)]
    ours, peers = [], []
    for _ in range(options.rounds):
        ours.append(rates(sys.executable, OURS, arguments))
        peers.append(rates(options.peer_python, PEER, arguments))
    for index, name in enumerate(("prefill", "decode")):
        mine, theirs = [row[index] for row in ours], [row[index] for row in peers]
        ratios = [a / b for a, b in zip(mine, theirs, strict=True)]
        medians = f"{statistics.median(mine):.1f} against {statistics.median(theirs):.1f} tokens/s"
        print(f"{threads} threads, {name}: {medians}; ratio {spread(ratios)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--peer-python", required=True)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=64)
    parser.add_argument("--depth", type=int, default=0, help="tokens in the KV before what is measured")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    for threads in options.threads:
        compare(options, threads)


if __name__ == "__main__":
    main()
