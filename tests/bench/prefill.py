"""Rates of a prefill, read again and again, and where its time goes.

    python tests/bench/prefill.py FILE [--threads 1 2] [--profile | --share]

`--profile` runs the same below `perf record` (samples of CPU time, no counters needed) and adds them up by phase; a
thread at a barrier is the row "waiting". `--share` measures torch's int8 rate before and after each prefill, so that
both meet the same hours of a host, and prints the shares of pairs (operations counted as by `pagekeep bench roofline`).
"""

from __future__ import annotations

import argparse
import itertools
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

# First match of a symbol decides.
PHASES = (
    ("products", r"dot_group|dot_some|sum_zeros"),
    ("tiles and first tokens", r"first_tokens|walk_strip|unpack"),
    ("few-token products", r"dot_strip"),
    ("outputs of products", r"tiled_strips|dot_tokens|finish_token|make_tile|linear_quant_strips"),
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


def measure(
    path: Path, threads: int, prompt: int, repeat: int, between: Callable[[], None] = lambda: None
) -> list[float]:
    """Seconds of each prefill; `between` is called before the first, between two and behind the last."""
    from dataclasses import replace

    from engine.messages import EngineSettings
    from engine.offline import OfflineModel

    seconds = []
    with OfflineModel(path, replace(EngineSettings(), threads=threads)) as model:
        ids = [(7919 * (index + 1)) % model.model.handle.spec.vocabulary for index in range(prompt)]
        model.feed(ids[:64])
        between()
        for _ in range(repeat):
            model.sequence.keep_first(0)
            begun = time.perf_counter()
            model.feed(ids)
            seconds.append(time.perf_counter() - begun)
            between()
    return seconds


def shares(path: Path, threads: int, prompt: int, repeat: int) -> list[tuple[float, float]]:
    """(Share of the int8 rate around it, tokens per second) of each prefill."""
    import torch

    from engine.bench_roofline import active_work

    torch.set_num_threads(threads)
    a = torch.randint(-127, 127, (512, 2048), dtype=torch.int8)
    b = torch.randint(-127, 127, (2048, 2048), dtype=torch.int8)

    def int8_seconds() -> float:
        begun = time.perf_counter()
        for _ in range(20):
            torch._int_mm(a, b)
        return (time.perf_counter() - begun) / 20

    int8_seconds()
    work, once, _ = active_work(path)
    operations, product = work * prompt + once, 512 * 2048 * 2048
    rates: list[float] = []
    seconds = measure(path, threads, prompt, repeat, lambda: rates.append(product / int8_seconds()))
    around = [(before + after) / 2 for before, after in itertools.pairwise(rates)]
    return [(operations / s / rate, prompt / s) for s, rate in zip(seconds, around, strict=True)]


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
    parser.add_argument("--share", action="store_true")
    args = parser.parse_args()
    for threads in args.threads:
        if args.profile:
            sizes = ["--threads", str(threads), "--prompt", str(args.prompt), "--repeat", str(args.repeat)]
            profile([sys.executable, __file__, str(args.file), *sizes])
            continue
        if args.share:
            found = sorted(shares(args.file, threads, args.prompt, args.repeat))
            low, middle, high = (found[len(found) * part // 4][0] for part in (1, 2, 3))
            rate = max(rate for _, rate in found)
            print(
                f"threads {threads}: {middle:.1%} of int8 ({low:.1%}, {high:.1%}), best {rate:,.0f} tokens/s",
                flush=True,
            )
            continue
        seconds = measure(args.file, threads, args.prompt, args.repeat)
        rates = [args.prompt / s for s in (seconds[0], sorted(seconds)[len(seconds) // 2], min(seconds))]
        print(
            f"threads {threads}: first {rates[0]:,.0f}, median {rates[1]:,.0f}, best {rates[2]:,.0f} tokens/s",
            flush=True,
        )


if __name__ == "__main__":
    main()
