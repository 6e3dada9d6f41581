"""Two processes that ask about one document at the same moment: what is computed twice, and what a kill costs.

    python tests/bench/two_processes.py MODEL [--tokens 6000] [--kill SECONDS] [--times 3]

Each time two new processes with one empty store ask a question of 16 tokens each behind the same document. `--kill`:
the one that is ahead is killed so many seconds after both began. Figures: seconds to the first token, tokens computed
and taken over by each, and for the killed one what its steps had computed by then; the operation log says when waiting
ended early.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from engine.kv.log import read_log  # noqa: E402
from engine.messages import Event, PrefillProgress, TokenDelta, Tokens, TurnFinished  # noqa: E402
from tests.engine.engine_driver import Driver  # noqa: E402


def text(tokens: int, seed: int) -> Tokens:
    return Tokens.prompt([(7919 * (i + 1) + 104729 * seed) % 30000 for i in range(tokens)])


def ask(model: Path, store: Path, tokens: int, number: int) -> None:
    """In a process of its own: `ready`, waits for a line, then what comes, a line each."""

    class Telling(Driver):
        def _heard(self, event: Event) -> None:
            if isinstance(event, PrefillProgress):
                print(json.dumps({"progress": event.done, "at": time.monotonic()}), flush=True)
            if isinstance(event, TokenDelta):
                print(json.dumps({"token": time.monotonic()}), flush=True)
            super()._heard(event)

    with Telling(model, store, threads=2) as driver:
        print("ready", flush=True)
        sys.stdin.readline()
        driver.submit("1", f"chat {number}", text(tokens, 0) + text(16, number))
        done = driver.wait(lambda event: isinstance(event, TurnFinished), 600)
        assert isinstance(done, TurnFinished)
        told = {"computed": sum(part.tokens for part in done.computed), "reused": done.reused.total}
        print(json.dumps({**told, "disk": done.reused.disk}), flush=True)


def one_run(model: Path, tokens: int, kill: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, str(model), "--tokens", str(tokens), "--store", folder, "--ask"]
        pair = [
            subprocess.Popen([*command, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for n in (1, 2)
        ]
        for process in pair:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        began = time.monotonic()
        for process in pair:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        killed = None
        if kill:
            time.sleep(kill)
            killed = _ahead(pair)
            pair[killed].kill()
        told = [[json.loads(line) for line in process.stdout or ()] for process in pair]
        log = [entry for entry in read_log(Path(folder), 1000, "info") if entry["operation"] == "wait_ended"]
    found = [_figures(lines, began) for lines in told]
    result: dict[str, Any] = {"processes": found, "waits_ended": log, "load": _load()}
    if killed is not None:
        result["killed"] = found.pop(killed)
    return result


def _ahead(pair: list[subprocess.Popen[str]]) -> int:
    """The one that has written more: it computes, the other one waits."""
    return max((0, 1), key=lambda n: _written(pair[n].pid))


def _written(pid: int) -> int:
    lines = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    return int(lines["wchar"])


def _figures(lines: list[dict[str, Any]], began: float) -> dict[str, Any]:
    first = next((line["token"] - began for line in lines if "token" in line), None)
    steps = [line["progress"] for line in lines if "progress" in line]
    ended: dict[str, Any] = next((line for line in lines if "computed" in line), {})
    return {"first_token_s": first and round(first, 2), "progress": max(steps, default=0), **ended}


def _load() -> str:
    return Path("/proc/loadavg").read_text().split()[0]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("model", type=Path)
    options.add_argument("--tokens", type=int, default=6000)
    options.add_argument("--kill", type=float, default=0.0)
    options.add_argument("--times", type=int, default=3)
    options.add_argument("--store", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--ask", type=int, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.ask:
        ask(chosen.model, chosen.store, chosen.tokens, chosen.ask)
        return
    for _ in range(chosen.times):
        print(json.dumps(one_run(chosen.model, chosen.tokens, chosen.kill)), flush=True)


if __name__ == "__main__":
    main()
