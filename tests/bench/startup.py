"""From process start to the first token, without the window: imports, loading, the first step. File cache warm.

    python tests/bench/startup.py MODEL.gguf [--threads 2] [--runs 9]

Each run is a process of its own that asks the model a short question through the engine's client. Unset
PYTHONDONTWRITEBYTECODE: an installed program has its byte code.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

CHILD = """
import json, sys, time
at = [time.time()]
from engine.bench_driver import BenchEngine
from engine.messages import EngineSettings, Tokens
from pathlib import Path
at.append(time.time())
with BenchEngine(Path(sys.argv[1]), EngineSettings(threads=int(sys.argv[2])), None) as engine:
    at.append(time.time())
    handle = engine.client.model
    tokens = Tokens.prompt(handle.tokenizer.encode("What is a page made of, and who numbers it?"))
    turn, sent = engine.send("c", tokens, 1)
    answered = engine.follow(turn, sent)
    at.append(time.time())
    print(json.dumps([at, "torch" in sys.modules]))
"""
PHASES = ("interpreter", "imports", "load", "first token")


def one(model: Path, threads: int) -> list[float]:
    """Milliseconds of each phase."""
    started = time.time()
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(model), str(threads)],
        capture_output=True, text=True, check=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    at, torch = json.loads(done.stdout)
    assert not torch, "torch was imported"
    return [(end - begin) * 1e3 for begin, end in zip([started, *at], at, strict=False)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    runs = [one(options.model, options.threads) for _ in range(options.runs + 1)][1:]
    for name, times in zip(PHASES, zip(*runs, strict=True), strict=True):
        print(f"{name}: min {min(times):.0f}, median {statistics.median(times):.0f} ms")
    whole = [sum(phases) for phases in runs]
    print(f"start to first token: min {min(whole):.0f}, median {statistics.median(whole):.0f}, max {max(whole):.0f} ms")


if __name__ == "__main__":
    main()
