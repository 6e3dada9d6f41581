"""Rates of a prefill, read again and again, and where its time goes.

    python tests/bench/prefill.py FILE [--threads 1 2] [--profile]

`--profile` runs the same below `perf record` (samples of CPU time, no counters needed) and adds them up by phase; a
thread at a barrier is the row "waiting".
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

# First match of a symbol decides.
PHASES = (
    ("products", r"dot_group"),
    ("tiles and first tokens", r"first_tokens|walk_strip|unpack"),
    ("few-token products", r"dot_strip"),
    ("outputs of products", r"tiled_strips|finish_token|make_tile|linear_quant_strips"),
    ("float products", r"linear_float|dot_block"),
    ("attention: products", r"product_block|multiply|byte_scores|byte_sums|half_block|half_columns"),
    ("attention: softmax", r"soften|byte_weights"),
    ("attention: rest", r"attend|score_pass|weigh|write_totals|queries|key|value_tile|merge|byte_|mla"),
    ("gated activation", r"gated"),
    ("rounding of activations", r"quantise|round_|weave"),
    ("norms", r"norm"),
    ("rotation, K and V", r"rope|store_kv|write_kv"),
    ("experts: gather, sums", r"add_scaled|expert|ExpertPairs|gather|route"),
    ("waiting", r"relax|wait_while|Barrier|ThreadPool|Executor::work|Ahead"),
)


def measure(path: Path, threads: int, prompt: int, repeat: int) -> list[float]:
    """Seconds of each prefill."""
    from dataclasses import replace

    from engine.messages import EngineSettings
    from engine.offline import OfflineModel

    seconds = []
    with OfflineModel(path, replace(EngineSettings(), threads=threads)) as model:
        ids = [(7919 * (index + 1)) % model.model.handle.spec.vocabulary for index in range(prompt)]
        model.feed(ids[:64])
        for _ in range(repeat):
            model.sequence.keep_first(0)
            begun = time.perf_counter()
            model.feed(ids)
            seconds.append(time.perf_counter() - begun)
    return seconds


def profile(command: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        data = f"{folder}/samples"
        subprocess.run(["perf", "record", "-q", "-o", data, "-e", "cpu-clock", "-F", "3000", *command], check=True)
        report = ["perf", "report", "-i", data, "--stdio", "--no-children", "-s", "dso,symbol", "-q"]
        lines = subprocess.run(report, check=True, capture_output=True, text=True).stdout.splitlines()
    shares: Counter[str] = Counter()
    for line in lines:
        found = re.match(r"\s*([\d.]+)%\s+(\S+)\s+\[\S\]\s+(.*)", line)
        if found and found[2].startswith("_native"):
            shares[phase_of(found[3])] += float(found[1])
    total = shares.total()
    for name, share in shares.most_common():
        if share / total >= 0.001:
            print(f"{name:28} {share / total:6.1%}")


def phase_of(symbol: str) -> str:
    return next((name for name, pattern in PHASES if re.search(pattern, symbol)), f"other: {symbol[:40]}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--profile", action="store_true")
    args = parser.parse_args()
    for threads in args.threads:
        if args.profile:
            sizes = ["--threads", str(threads), "--prompt", str(args.prompt), "--repeat", str(args.repeat)]
            profile([sys.executable, __file__, str(args.file), *sizes])
            continue
        seconds = measure(args.file, threads, args.prompt, args.repeat)
        rates = [args.prompt / s for s in (seconds[0], sorted(seconds)[len(seconds) // 2], min(seconds))]
        print(
            f"threads {threads}: first {rates[0]:,.0f}, median {rates[1]:,.0f}, best {rates[2]:,.0f} tokens/s",
            flush=True,
        )


if __name__ == "__main__":
    main()
