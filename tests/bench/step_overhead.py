"""What the engine does between two native steps of an answer: python tests/bench/step_overhead.py MODEL.gguf.

The time from the end of one step to the start of the next, by the clock and, outside of native calls, as processor
time of the engine's thread, for a greedy answer, for one as the application samples it, and for several conversations.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
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
    """Of native code: seconds by the clock and of the thread's processor time, at its start and end; the steps in it,
    and the milliseconds they took in all."""

    entered: float
    entered_cpu: float
    left: float
    left_cpu: float
    steps: int
    computed: float


class Watched:
    """Stands before the native executor and notes when it is called."""

    def __init__(self, executor: Any) -> None:
        self._executor = executor
        self.calls: list[Call] = []

    def step_runs(self, *args: Any) -> Any:
        return self._call(lambda: self._executor.step_runs(*args), lambda outcome: None)

    def decode(self, *args: Any) -> Any:
        return self._call(lambda: self._executor.decode(*args), lambda found: found[2])

    def _call(self, call: Callable[[], Any], times: Callable[[Any], list[float] | None]) -> Any:
        cpu, clock = time.thread_time(), time.perf_counter()
        found = call()
        left = time.perf_counter()
        steps = times(found) or [(left - clock) * 1e3]
        self.calls.append(Call(clock, cpu, left, time.thread_time(), len(steps), sum(steps)))
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executor, name)


def answer(engine: BenchEngine, prompt: Tokens, conversations: int, sampling: Sampling) -> None:
    for number in range(conversations):
        turn = TurnId(f"{time.monotonic_ns()}")
        engine.client.send(Submit(turn, ConversationId(f"{turn}/{number}"), prompt, sampling))
    ended = 0
    while ended < conversations:
        ended += isinstance(engine.next_event()[1], TurnFinished)


@dataclass(frozen=True)
class Between:
    """Milliseconds for each step: between the steps of a call and up to the next one, by the clock; between calls, of
    processor time; in the step."""

    clock: float
    cpu: float
    step: float


def between(calls: list[Call]) -> Iterator[tuple[int, Between]]:
    """With the number of steps that it is the mean of."""
    for call, after in pairwise(calls):
        clock, cpu = (after.entered - call.entered) * 1e3 - call.computed, (after.entered_cpu - call.left_cpu) * 1e3
        yield call.steps, Between(clock / call.steps, cpu / call.steps, call.computed / call.steps)


def mean(found: list[tuple[int, Between]], of: Callable[[Between], float]) -> float:
    return sum(steps * of(one) for steps, one in found) / sum(steps for steps, _ in found)


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
            found = list(between(watched.calls[2 * conversations :]))
            steps = sum(count for count, _ in found)
            low, middle, high = statistics.quantiles([one.clock for count, one in found for _ in range(count)], n=4)
            print(
                f"{name}: {steps} steps in {len(found)} calls, between two {mean(found, lambda one: one.clock):.3f} ms "
                f"(median {middle:.3f}, quartiles {low:.3f} to {high:.3f}), processor time "
                f"{mean(found, lambda one: one.cpu):.3f} ms; native step {mean(found, lambda one: one.step):.3f} ms"
            )


if __name__ == "__main__":
    main()
