"""What kill -9 costs while a document is read ahead.

    python tests/bench/killed_reading.py MODEL [--tokens 2000 6000] [--kills 6] [--from 0.7] [--until 0.9] [--turn]

Each time a new process reads a document into an empty store (`--turn`: as the prompt of a question) and is killed at a
random moment in which it has told of a share between `--from` and `--until`; another process then goes on. The
figures, in tokens: what the killed one told last, what its steps had computed, and where the next one goes on.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from engine.messages import (  # noqa: E402
    DocumentProgress,
    Event,
    PrefillDocument,
    PrefillProgress,
    Tokens,
    TurnRestored,
)
from engine.runner import RowRun, Runner  # noqa: E402
from kernels.program import StepResult  # noqa: E402
from tests.engine.engine_driver import Driver  # noqa: E402

THREADS = 2


def text(tokens: int) -> Tokens:
    return Tokens.prompt([(7919 * (i + 1)) % 30000 for i in range(tokens)])


def begin(driver: Driver, tokens: int, turn: bool) -> None:
    if turn:
        driver.submit("t", "c", text(tokens))
    else:
        driver.client.send(PrefillDocument("d", text(tokens)))


def read(model: Path, store: Path, tokens: int, turn: bool) -> None:
    """In the process that is killed: says `step DONE` after a step and `told DONE` when the reader is told."""
    step = Runner.step

    def counted(runner: Runner, runs: Sequence[RowRun], *given: object, **named: bool) -> StepResult:
        result = step(runner, runs, *given, **named)
        print("step", runs[0].start + len(runs[0].ids), flush=True)
        return result

    Runner.step = counted  # type: ignore[assignment,method-assign]

    class Telling(Driver):
        def _heard(self, event: Event) -> None:
            if isinstance(event, DocumentProgress | PrefillProgress):
                print("told", event.kept if isinstance(event, PrefillProgress) else event.done, flush=True)
            super()._heard(event)

    driver = Telling(model, store, threads=THREADS)
    begin(driver, tokens, turn)
    time.sleep(600)


def killed(model: Path, store: Path, tokens: int, share: float, delay: float, turn: bool) -> dict[str, int]:
    command = [sys.executable, __file__, str(model), "--read", str(store), "--tokens", str(tokens)]
    command += ["--turn"] * turn
    seen = {"step": 0, "told": 0}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        while seen["told"] < share * tokens:
            word, number = child.stdout.readline().split()
            seen[word] = int(number)
        time.sleep(delay)
        child.kill()
        for line in child.stdout:  # what it said before
            word, number = line.split()
            seen[word] = int(number)
    return seen


def resumed(model: Path, store: Path, tokens: int, turn: bool) -> int:
    with Driver(model, store, threads=THREADS) as driver:
        begin(driver, tokens, turn)
        first = driver.wait(lambda event: isinstance(event, DocumentProgress | TurnRestored))
        return first.reused.total if isinstance(first, TurnRestored) else first.reused  # type: ignore[attr-defined]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("model", type=Path)
    options.add_argument("--tokens", type=int, nargs="+", default=[2000, 6000])
    options.add_argument("--kills", type=int, default=6)
    options.add_argument("--from", dest="low", type=float, default=0.7)
    options.add_argument("--until", dest="high", type=float, default=0.9)
    options.add_argument("--turn", action="store_true")
    options.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.read:
        read(chosen.model, chosen.read, chosen.tokens[0], chosen.turn)
    draw = random.Random(5)
    for tokens in chosen.tokens:
        for _ in range(chosen.kills):
            with tempfile.TemporaryDirectory() as folder:
                share, delay = draw.uniform(chosen.low, chosen.high), draw.choice([0.0, draw.uniform(0, 0.3)])
                seen = killed(chosen.model, Path(folder), tokens, share, delay, chosen.turn)
                went_on = resumed(chosen.model, Path(folder), tokens, chosen.turn)
            told, step = seen["told"], seen["step"]
            load = Path("/proc/loadavg").read_text().split()[0]
            print(json.dumps({
                "tokens": tokens, "told": told, "computed": step, "resumed": went_on,
                "of_told": round(went_on / told, 4), "of_computed": round(went_on / step, 4), "load": load,
            }), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
