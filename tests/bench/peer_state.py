"""Bringing a conversation back from disk: Pagekeep's verified restore beside llama.cpp's state file, in one run.

    python tests/bench/peer_state.py MODEL.gguf --peer-python PYTHON --folder DIR [--tokens 8000] [--runs 5]

`PYTHON` is the interpreter of an environment with llama-cpp-python. The first call computes the same number of tokens
with both and keeps what they save in DIR; every call then takes turns: a new process of ours asks in the conversation
(time from admission until all of its state is there and verified), a new process of the peer loads its state file
(`llama_state_load_file`, unverified: the first time, and again into the same memory). Medians, milliseconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from engine.bench_driver import BenchEngine  # noqa: E402
from engine.bench_switch import Plan, first_turn, in_new_process, plan_of  # noqa: E402
from engine.messages import EngineSettings, Tokens  # noqa: E402

PEER = """
import ctypes, json, os, sys, time
import llama_cpp
job = json.loads(sys.argv[1])
model = llama_cpp.Llama(job["model"], n_ctx=job["tokens"] + 64, n_batch=512, n_threads=job["threads"],
                        n_threads_batch=job["threads"], flash_attn=True, verbose=False)
context, path = model._ctx.ctx, job["state"].encode()
kept, count = (llama_cpp.llama_token * (job["tokens"] + 64))(), ctypes.c_size_t()
if not os.path.exists(job["state"]):
    ids = [7919 * (i + 1) % model.n_vocab() for i in range(job["tokens"])]
    model.eval(ids)
    started = time.perf_counter()
    assert llama_cpp.llama_state_save_file(context, path, (llama_cpp.llama_token * len(ids))(*ids), len(ids))
    print(json.dumps({"saved_ms": (time.perf_counter() - started) * 1e3}))
else:
    times = []
    for _ in range(4):
        started = time.perf_counter()
        assert llama_cpp.llama_state_load_file(context, path, kept, len(kept), ctypes.byref(count))
        times.append((time.perf_counter() - started) * 1e3)
    assert count.value == job["tokens"]
    print(json.dumps({"first_ms": times[0], "again_ms": min(times[1:]), "bytes": os.path.getsize(job["state"])}))
"""


def peer(python: str, model: Path, folder: Path, tokens: int, threads: int) -> dict[str, float]:
    job = {"model": str(model), "state": str(folder / "peer.state"), "tokens": tokens, "threads": threads}
    done = subprocess.run([python, "-c", PEER, json.dumps(job)], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def prepare(model: Path, folder: Path, tokens: int, threads: int) -> None:
    """Computes the conversation once and keeps the store and what was asked."""
    settings = EngineSettings(threads=threads, ram_budget_bytes=8 << 30)
    with BenchEngine(model, settings, folder / "store") as engine:
        plan = plan_of(engine, model, settings, tokens, 16)
        _, history = first_turn(engine, plan)
    kept = {"plan": {**asdict(plan), "path": str(model)}, "history": [history.ids, history.roles]}
    (folder / "ours.json").write_text(json.dumps(kept))


def ours(folder: Path) -> dict[str, Any]:
    kept = json.loads((folder / "ours.json").read_text())
    given = kept["plan"]
    plan = Plan(**{**given, "path": Path(given["path"]), "settings": EngineSettings(**given["settings"])})
    return in_new_process(plan, Tokens(*map(tuple, kept["history"])), folder / "store", cold=False)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("model", type=Path)
    options.add_argument("--peer-python", required=True)
    options.add_argument("--folder", type=Path, required=True)
    options.add_argument("--tokens", type=int, default=8000)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--runs", type=int, default=5)
    chosen = options.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    if not (chosen.folder / "ours.json").exists():
        prepare(chosen.model, chosen.folder, chosen.tokens, chosen.threads)
    state = (chosen.peer_python, chosen.model, chosen.folder, chosen.tokens, chosen.threads)
    if not (chosen.folder / "peer.state").exists():
        print(json.dumps(peer(*state)))
    rounds = [(ours(chosen.folder), peer(*state)) for _ in range(chosen.runs)]
    verified = [mine["checked_ms"] for mine, _ in rounds]
    again = [theirs["again_ms"] for _, theirs in rounds]
    figures = {
        "tokens": chosen.tokens, "bytes": rounds[0][0]["bytes_read"], "peer_bytes": rounds[0][1]["bytes"],
        "ours_verified_ms": statistics.median(verified), "ours_best_ms": min(verified),
        "ours_first_token_ms": statistics.median(mine["first_token_ms"] for mine, _ in rounds),
        "peer_first_ms": statistics.median(theirs["first_ms"] for _, theirs in rounds),
        "peer_again_ms": statistics.median(again), "peer_best_ms": min(again),
        "ratio": statistics.median(a / b for a, b in zip(verified, again, strict=True)),
        "load": Path("/proc/loadavg").read_text().split()[0],
    }  # fmt: skip
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
