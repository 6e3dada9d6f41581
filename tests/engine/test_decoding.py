"""Runs of several steps within one native call: answers, KV and what is told are those of single steps, and whoever
asks for the engine waits for no more than the step in progress.

Over 300 lines: every kind of answer goes through one comparison of single steps with runs.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.answer import AnswerText
from engine.citation_limit import CitationLimit
from engine.drafts import LONGEST_MATCH
from engine.messages import (
    Cancel,
    ConversationId,
    Focus,
    Role,
    Sampling,
    Submit,
    TokenDelta,
    Tokens,
    TurnFinished,
    TurnId,
)
from engine.runner import RowRun, Runner
from engine.scheduler import Scheduler
from engine.speculation import Speculation
from engine.timings import Rates
from engine.turn import Phase, Turn
from kernels.native_program import Decoded, Draw
from kernels.program import StepResult
from tests.engine.engine_driver import GREEDY, Driver
from tests.engine.test_service import LONG, model
from tests.engine.test_service import prompt as words
from tests.engine.test_speculation import DATA, DENSE, PENALISED, SAMPLED, Bench, prompt
from tests.engine.test_speculation import GREEDY as GREEDY_ANSWER

__all__ = ["model"]

ENDLESS = 1e6  # milliseconds
TEXTS = ("the ", "[", "]", "1", "2", "9", "0", "12", "13", "[1", " [99", "[5]", ",", " 7", "word [3", "2024", "a", ". ")


class Marked:
    """A vocabulary and a stream in which markers are frequent."""

    def token_bytes(self, token_id: int, *, special: bool = True) -> bytes:
        return self.push(token_id).encode()

    def push(self, token: int) -> str:
        return TEXTS[token % len(TEXTS)]

    def flush(self) -> str:
        return ""


@dataclass
class RunBench(Bench):
    """`lengths`: of the runs so far; `told`: what was said of each turn's tokens."""

    drafts: bool = False
    marked: bool = False
    lengths: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        context, ends = self.model.handle.context, self.model.handle.tokenizer.eog_ids
        runner = Runner(self.model.backend, self.settings.micro_batch)
        citations = CitationLimit(Marked(), self.model.handle.spec.vocabulary) if self.marked else None
        speculation = Speculation(ends, context, on=self.drafts)
        self.scheduler = Scheduler(
            runner, self.admission, Rates(), self.scheduler._limits, self.events.append, citations, speculation
        )
        self.scheduler._decoding.run = watched(self.scheduler._decoding.run, self.lengths)  # type: ignore[method-assign]

    def submit(self, name: str, tokens: Tokens, sampling: Sampling) -> None:
        request = Submit(TurnId(name), ConversationId(name), tokens, sampling)
        stream = Marked() if self.marked else self.model.handle.chat.reply_stream()
        self.scheduler.submit(Turn(request, AnswerText(stream, sampling.stop)))

    def answer(self, sampling: Sampling, turns: int = 1, tokens: Callable[[int], Tokens] = prompt) -> None:
        for turn in range(turns):
            self.submit(f"c{turn}", tokens(turn), replace(sampling, seed=sampling.seed + turn))
        self.finish()

    @property
    def told(self) -> dict[str, list[tuple[str, tuple[int, ...]]]]:
        """Texts and ids as they came: who watches an answer sees it grow in the same steps."""
        told: dict[str, list[tuple[str, tuple[int, ...]]]] = defaultdict(list)
        for event in self.events:
            if isinstance(event, TokenDelta):
                told[event.turn].append((event.text, event.ids))
        return told


def watched(run: Callable[..., Decoded], lengths: list[int]) -> Callable[..., Decoded]:
    def watching(*args: Any) -> Decoded:
        found = run(*args)
        lengths.append(len(found.milliseconds))
        return found

    return watching


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, TurnFinished]]:
    """Answers in single steps and in runs, compared; those in runs."""

    def compare(
        path: Path, sampling: Sampling, turns: int = 1, tokens: Callable[[int], Tokens] = prompt, drafts: bool = False,
        marked: bool = False, **settings: Any,
    ) -> dict[str, TurnFinished]:  # fmt: skip
        benches = []
        for ms in (0.0, ENDLESS):
            monkeypatch.setattr("engine.decoding.RUN_MS", ms)
            bench = RunBench(path, drafts=bool(drafts and ms), marked=marked)
            bench.scheduler._runner._micro_batch = settings.get("micro_batch", 0)
            bench.answer(sampling, turns, tokens)
            benches.append(bench)
        single, several = benches
        assert not single.lengths
        assert max(several.lengths) > 2
        wanted, found = single.finish(), several.finish()
        assert found.keys() == wanted.keys()
        for name, turn in wanted.items():
            other = found[name]
            assert (other.generated, other.text, other.reason) == (turn.generated, turn.text, turn.reason)
            assert several.admission.kv[name] == single.admission.kv[name]
            assert several.told[name] == single.told[name]
            assert "".join(text for text, _ in several.told[name]) == turn.text
        return found

    return compare


Pair = Callable[..., dict[str, TurnFinished]]


@pytest.mark.parametrize("turns", [1, 3])
@pytest.mark.parametrize("sampling", [GREEDY_ANSWER, SAMPLED, PENALISED], ids=["greedy", "sampled", "penalties"])
@pytest.mark.parametrize("file", ["type-dense-q4_1.gguf", "ds2-lite-mini.gguf", "gptoss-mini.gguf"])
def test_answers_and_kv_are_those_of_single_steps(pair: Pair, file: str, sampling: Sampling, turns: int) -> None:
    assert len(pair(DATA / file, sampling, turns)) == turns


@pytest.mark.parametrize("file", ["type-dense-q4_1.gguf", "ds2-lite-mini.gguf", "gptoss-mini.gguf"])
@pytest.mark.parametrize("turns", [1, 2])
def test_drafts_within_runs_change_nothing(pair: Pair, file: str, turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A prompt whose pieces come again and again; drafts are tried behind every match."""
    tried = np.full(LONGEST_MATCH + 1, 5, np.int32)
    monkeypatch.setattr(Speculation, "lengths", lambda self, answers: (tried if self._on else tried[:0], 16))

    def repeated(seed: int) -> Tokens:
        return Tokens.prompt(random.Random(seed).choices(range(3, 12), k=220))

    found = pair(DATA / file, replace(SAMPLED, max_tokens=100), turns, repeated, drafts=True)
    assert all(len(turn.generated) > 60 and turn.accepted <= turn.drafted for turn in found.values())
    assert sum(turn.accepted for turn in found.values()) > 0


def test_a_stop_string_ends_the_answer_where_it_did(pair: Pair) -> None:
    text = pair(DENSE, GREEDY_ANSWER)["c0"].text
    assert pair(DENSE, replace(GREEDY_ANSWER, stop=(text[-8:-5],)), 2)["c0"].reason == "stop_string"


def test_the_context_is_filled_to_the_same_token(pair: Pair) -> None:
    assert pair(DENSE, replace(GREEDY_ANSWER, max_tokens=1000), 2)["c0"].reason in ("context", "stop")


@pytest.mark.parametrize("citations", [1, 13, 99])
def test_numbers_of_passages_are_limited_as_in_single_steps(pair: Pair, citations: int) -> None:
    found = pair(DENSE, replace(SAMPLED, top_k=0, temperature=3.0, citations=citations), 2, marked=True)
    for turn in found.values():
        written = "".join(TEXTS[token % len(TEXTS)] for token in turn.generated.ids)
        assert "[" in written
        assert all(1 <= int(number) <= citations for number in re.findall(r"\[(\d+)", written)), written


def test_more_conversations_than_rows_of_a_batch_go_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.decoding.RUN_MS", ENDLESS)
    bench = RunBench(DENSE)
    bench.scheduler._runner._micro_batch = 2
    for turn in range(3):
        bench.submit(f"c{turn}", prompt(turn), replace(GREEDY_ANSWER, max_tokens=30 + 20 * turn))
    while len(bench.scheduler._turns) == 3:
        assert not bench.lengths
        bench.scheduler.step()
    bench.finish()
    assert bench.lengths


def test_a_run_ends_at_the_border_of_its_page_where_others_would_have_to_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next page is taken when a token needs it, not before."""
    monkeypatch.setattr("engine.decoding.RUN_MS", ENDLESS)
    plain, bench = RunBench(DENSE), RunBench(DENSE)
    plain.answer(GREEDY_ANSWER)
    bench.submit("other", prompt(1), replace(GREEDY_ANSWER, max_tokens=2))
    bench.finish()
    bench.submit("c0", prompt(0), GREEDY_ANSWER)
    turn = bench.scheduler._turns[TurnId("c0")]
    while not turn.generated:
        bench.scheduler.step()
    bench.cache.pool.budget_bytes = bench.cache.pool.used_bytes
    gone: list[str] = []
    remove = bench.cache.tree.remove
    monkeypatch.setattr(bench.cache.tree, "remove", lambda node, why: (gone.append(why), remove(node, why)))
    border = -(-len(turn.prompt) // turn.kv.page_tokens) * turn.kv.page_tokens
    while turn.kv.num_tokens < border:
        bench.scheduler.step()
    assert turn.kv.num_tokens == border
    assert max(bench.lengths) > 1
    assert not gone
    assert bench.finish()["c0"].generated == plain.finish()["c0"].generated
    assert gone


def test_a_run_on_lost_memory_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sequence is cut, and what was sampled is computed and sampled again."""
    monkeypatch.setattr("engine.decoding.RUN_MS", ENDLESS)
    plain, bench = RunBench(DENSE), RunBench(DENSE)
    plain.answer(SAMPLED)
    sound, lost = bench.admission.sound, []

    def losing(turn: Turn) -> bool:
        if len(bench.lengths) == 1 and not lost:
            lost.append(turn.kv.keep_first(100))
            turn.phase = Phase.PREFILL
            turn.cut()
            return False
        return sound(turn)

    monkeypatch.setattr(bench.admission, "sound", losing)
    bench.answer(SAMPLED)
    assert lost == [100]
    assert bench.finish()["c0"].generated == plain.finish()["c0"].generated
    assert bench.told == plain.told


# --- who asks for the engine --------------------------------------------------------------------------


@pytest.fixture
def driver(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    monkeypatch.setattr("engine.decoding.RUN_MS", ENDLESS)
    monkeypatch.setattr("engine.decoding.MOST_TOKENS", 32)
    with Driver(model, tmp_path / "kv", speculation=False) as driver:
        yield driver


@dataclass
class Watch:
    """`log`: native calls, the number of a run's steps, or 0 for a step with prompt tokens and -1 for one without.
    `most`: tokens that the runs might have drawn."""

    runner: Runner
    asks: Callable[[], None]  # at the beginning of the third run, as another thread would during it
    log: list[int] = field(default_factory=list)
    most: list[int] = field(default_factory=list)

    def decode(self, runs: Sequence[RowRun], draws: Sequence[Draw], rows: int, milliseconds: float) -> Decoded:
        self.most.append(min(draw.most for draw in draws))
        if len(self.most) == 3:
            self.asks()
        found = Runner.decode(self.runner, runs, draws, rows, milliseconds)
        self.log.append(len(found.milliseconds))
        return found

    def step(self, runs: Sequence[RowRun], *, parkable: bool = False) -> StepResult:
        self.log.append(0 if any(Role.PROMPT in run.roles for run in runs) else -1)
        return Runner.step(self.runner, runs, parkable=parkable)


@pytest.fixture
def watch(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> Watch:
    running = driver.client._service.running
    assert running is not None
    watch = Watch(running.runner, lambda: None)
    monkeypatch.setattr(running.runner, "decode", watch.decode)
    monkeypatch.setattr(running.runner, "step", watch.step)
    return watch


def test_stop_ends_a_run_behind_the_step_in_progress(driver: Driver, watch: Watch) -> None:
    watch.asks = lambda: driver.client.send(Cancel(TurnId("long")))
    driver.submit("long", "a", words(64), LONG)
    done = driver.result("long")
    assert done.reason == "cancelled"
    assert watch.most[2] > 8
    runs = [length for length in watch.log if length > 0]
    assert len(runs) == 3
    assert runs[:2] == watch.most[:2]
    assert runs[2] == 1


def test_turning_to_another_conversation_ends_a_run(driver: Driver, watch: Watch) -> None:
    watch.asks = lambda: driver.client.send(Focus(ConversationId("b"), words(40, 3)))
    driver.run("long", "a", words(64), Sampling(temperature=0.0, max_tokens=200))
    assert [length for length in watch.log if length > 0][2] == 1


def test_another_conversations_prompt_does_not_wait_for_a_run(driver: Driver, watch: Watch) -> None:
    watch.asks = lambda: driver.submit("b", "b", words(2000, 2), GREEDY)
    driver.submit("long", "a", words(64), LONG)
    driver.result("b")
    driver.client.send(Cancel(TurnId("long")))
    driver.result("long")
    third = [place for place, length in enumerate(watch.log) if length > 0][2]
    assert watch.log[third] == 1
    read = [place for place, length in enumerate(watch.log) if length == 0 and place > third]
    assert read[0] == third + 1
    assert not any(length > 0 for length in watch.log[third + 1 : read[-1]])
    assert any(length > 1 for length in watch.log[read[-1] :])


def test_steps_that_take_long_go_one_by_one(driver: Driver, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of which one that was begun can be parked."""
    running = driver.client._service.running
    assert running is not None
    monkeypatch.setattr("engine.decoding.RUN_MS", 33.0)
    monkeypatch.setattr(running.scheduler._speculation.costs, "of", lambda rows: 17.0)
    driver.run("t", "c", words(64))
    assert all(length <= 0 for length in watch.log)


def test_the_clock_counts_every_step(driver: Driver, watch: Watch) -> None:
    """An answer takes as long as its steps, without what lies between."""
    took: list[float] = []
    decode = watch.decode

    def timed(*args: Any) -> Decoded:
        found = decode(*args)
        took.extend(found.milliseconds)
        return found

    watch.runner.decode = timed  # type: ignore[method-assign]
    done = driver.run("t", "c", words(64), Sampling(temperature=0.0, max_tokens=150))
    alone = sum(length < 0 for length in watch.log)
    assert len(took) > 60
    assert alone + len(took) == len(done.generated.ids) - 1
    assert sum(took) < done.timings.decode < sum(took) + 1000 * alone
