"""Several conversations on one prefix: how soon the last of them speaks, how fast they go each and together.

For n conversations, n - 1 are started; when all of them write, one more asks. The prefix is computed before all this
and found in memory by each of them. The peer (llama-cpp-python) reads the prefix once and shares it the same way.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.bench_compare import peer_source
from engine.bench_driver import BenchEngine
from engine.bench_process import run_peer_source
from engine.errors import EngineError
from engine.messages import EngineSettings, Event, TokenDelta, Tokens, TurnFailed, TurnFinished, TurnId

COUNTS = (1, 2, 4, 8, 10)


@dataclass(frozen=True)
class Load:
    """Tokens of the common prefix, of each question behind it, and of each answer at most."""

    prefix: int
    question: int
    answer: int


@dataclass(frozen=True)
class ParallelRow:
    """`first_token_ms`: of the last one, beside the others' answers. Tokens per second: `each` is the median of the
    conversations over their answers, `together` counts while all of them write. `busy`: share of the conversations
    that were served, over the time of the run. `prefix_hits`: conversations that computed nothing of the prefix's
    whole pages. `drafted`, `accepted`: tokens by speculation.
    """

    conversations: int
    first_token_ms: float
    each: float
    together: float
    busy: float
    prefix_hits: int
    drafted: int
    accepted: int


@dataclass(frozen=True)
class PeerRow:
    conversations: int
    first_token_ms: float
    together: float


@dataclass
class _Timeline:
    """What came of the turns of one run: milliseconds on the engine's clock."""

    sent: dict[TurnId, float] = field(default_factory=dict)
    tokens: dict[TurnId, list[float]] = field(default_factory=dict)
    done: dict[TurnId, tuple[float, TurnFinished]] = field(default_factory=dict)

    def take(self, at: float, event: Event) -> None:
        if isinstance(event, TurnFailed):
            raise EngineError(event.what, event.why, event.next)
        if isinstance(event, TokenDelta) and event.ids and event.turn in self.sent:
            self.tokens.setdefault(event.turn, []).extend([at] * len(event.ids))
        elif isinstance(event, TurnFinished) and event.turn in self.sent:
            self.done[event.turn] = at, event

    def together(self) -> float:
        """Tokens per second between the last first token and the first end."""
        begin = max(times[0] for times in self.tokens.values())
        end = min(at for at, _ in self.done.values())
        within = sum(begin < at <= end for times in self.tokens.values() for at in times)
        return within * 1e3 / (end - begin) if end > begin else 0.0

    def busy(self) -> float:
        served = sum(at - self.tokens[turn][0] for turn, (at, _) in self.done.items())
        begin, end = min(times[0] for times in self.tokens.values()), max(at for at, _ in self.done.values())
        return served / (len(self.sent) * (end - begin)) if end > begin else 1.0


def measure(path: Path, settings: EngineSettings, load: Load, counts: Sequence[int] = COUNTS) -> Iterator[ParallelRow]:
    """Rows as they come. EngineError: it does not fit context or memory."""
    with BenchEngine(path, settings, None) as engine:
        handle = engine.client.model
        assert handle is not None
        needed = load.prefix + load.question + load.answer
        if needed > handle.context:
            raise EngineError(
                "The benchmark does not fit the model's context.",
                f"It needs {needed:,} tokens, the context has {handle.context:,}.",
                "Choose a smaller --prefix.",
            )
        prefix = _text(load.prefix, 0, handle.spec.vocabulary)
        engine.ask("prefix", prefix, 1)
        for count in counts:
            yield _run(engine, prefix, load, count, handle.spec.vocabulary)


def _text(count: int, seed: int, vocabulary: int) -> Tokens:
    return Tokens.prompt([(7919 * (index + 1) + 104729 * seed) % vocabulary for index in range(count)])


def _run(engine: BenchEngine, prefix: Tokens, load: Load, count: int, vocabulary: int) -> ParallelRow:
    line = _Timeline()
    last = TurnId("")
    for number in range(count):
        if number == count - 1:
            while len(line.tokens) < number:
                line.take(*engine.next_event())
        question = _text(load.question, 1 + number, vocabulary)
        last, sent = engine.send(f"{count}-{number}", prefix + question, load.answer)
        line.sent[last] = sent
    while len(line.done) < count:
        line.take(*engine.next_event())
    return _row(line, last, engine.loaded.page_tokens, len(prefix))


def _row(line: _Timeline, last: TurnId, page_tokens: int, prefix: int) -> ParallelRow:
    finished = [event for _, event in line.done.values()]
    rates = [(len(times) - 1) * 1e3 / (times[-1] - times[0]) for times in line.tokens.values() if times[-1] > times[0]]
    whole = prefix // page_tokens * page_tokens
    return ParallelRow(
        conversations=len(line.sent),
        first_token_ms=line.tokens[last][0] - line.sent[last],
        each=statistics.median(rates) if rates else 0.0,
        together=line.together(),
        busy=line.busy(),
        prefix_hits=sum(event.reused.total >= whole for event in finished),
        drafted=sum(event.drafted for event in finished),
        accepted=sum(event.accepted for event in finished),
    )


def measure_peer(
    path: Path, settings: EngineSettings, load: Load, python: str, counts: Sequence[int] = COUNTS
) -> tuple[list[PeerRow], str]:
    """The same with llama-cpp-python's library, and which build that is. EngineError."""
    job = {
        "peer": "llama-cpp-python", "path": str(path), "threads": settings.threads, "counts": list(counts),
        "prefix": load.prefix, "question": load.question, "answer": load.answer,
    }  # fmt: skip
    found = run_peer_source(python, peer_source(), json.dumps(job))
    rows = [PeerRow(int(row["conversations"]), row["first_token_ms"], row["together"]) for row in found["rows"]]
    return rows, str(found["build"])
