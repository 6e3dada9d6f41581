"""What the engine does between two native steps of an answer: python tests/bench/step_overhead.py MODEL.gguf.

The time from the end of one native call to the start of the next, by the clock and as processor time of the engine's
thread, for a greedy answer, for one as the application samples it, and for several conversations at once.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from engine.bench_driver import BenchEngine
from engine.messages import ConversationId, EngineSettings, Sampling, Submit, Tokens, TurnFinished, TurnId

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
SAMPLED = Sampling(seed=1)
WAYS = {
    "greedy": (1, replace(SAMPLED, temperature=0.0)),
    "sampled": (1, SAMPLED),
    "sampled, penalty": (1, replace(SAMPLED, repetition_penalty=1.1)),
    "greedy, 4 conversations": (4, replace(SAMPLED, temperature=0.0)),
}


@dataclass(frozen=True)
class Call:
    """Of native code: seconds by the clock and of the thread's processor time, at its start and end."""

    entered: float
    entered_cpu: float
    left: float
    left_cpu: float


class Watched:
    """Stands before the native executor and notes when it is called."""

    def __init__(self, executor: Any) -> None:
        self._executor = executor
        self.calls: list[Call] = []

    def step_runs(self, *args: Any) -> Any:
        cpu, clock = time.thread_time(), time.perf_counter()
        outcome = self._executor.step_runs(*args)
        left = time.perf_counter()
        self.calls.append(Call(clock, cpu, left, time.thread_time()))
        return outcome

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executor, name)


def answer(engine: BenchEngine, prompt: Tokens, conversations: int, sampling: Sampling) -> None:
    for number in range(conversations):
        turn = TurnId(f"{time.monotonic_ns()}")
        engine.client.send(Submit(turn, ConversationId(f"{turn}/{number}"), prompt, sampling))
    ended = 0
    while ended < conversations:
        ended += isinstance(engine.next_event()[1], TurnFinished)


def gaps(calls: list[Call], skip: int) -> Iterator[tuple[float, float, float]]:
    """Milliseconds: between two calls by the clock, of processor time, and in the call before."""
    for before, after in pairwise(calls[skip:]):
        between = after.entered - before.left, after.entered_cpu - before.left_cpu, before.left - before.entered
        yield between[0] * 1e3, between[1] * 1e3, between[2] * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--answer", type=int, default=256)
    parser.add_argument("--depth", type=int, default=256, help="tokens of the prompt")
    parser.add_argument("--no-speculation", action="store_true")
    options = parser.parse_args()
    settings = EngineSettings(threads=options.threads, speculation=not options.no_speculation)
    with BenchEngine(options.model, settings, None) as engine:
        running, handle = engine.client._service.running, engine.client.model
        assert running is not None
        assert handle is not None
        backend: Any = running.model.backend
        backend._executor = watched = Watched(backend._executor)
        prompt = Tokens.prompt(handle.tokenizer.encode(README)[: options.depth])
        for name, (conversations, sampling) in WAYS.items():
            watched.calls.clear()
            answer(engine, prompt, conversations, replace(sampling, max_tokens=options.answer))
            clock, cpu, native = zip(*gaps(watched.calls, 2 * conversations), strict=True)
            low, middle, high = statistics.quantiles(clock, n=4)
            print(
                f"{name}: {len(clock)} steps, between two {middle:.3f} ms (quartiles {low:.3f} to {high:.3f}), "
                f"processor time {statistics.median(cpu):.3f} ms; native step {statistics.median(native):.3f} ms"
            )


if __name__ == "__main__":
    main()
