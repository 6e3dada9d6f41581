"""A turn that computes while what it came from is still being checked, and turns that lose what they share.

Models of this size are restored too fast for the first by themselves: here any restore counts as a long one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.admission import Admission
from engine.answer import AnswerText
from engine.kv.cache import KvCache
from engine.limits import Limits
from engine.loading import load
from engine.messages import (
    ConversationId,
    EngineSettings,
    Event,
    Sampling,
    Submit,
    Tokens,
    TurnFinished,
    TurnId,
    TurnRestored,
)
from engine.runner import Runner
from engine.scheduler import Scheduler
from engine.store import KvStore
from engine.store.mapping import can_map
from engine.timings import Rates
from engine.turn import Phase, Turn
from tests.engine.store.test_damage import flip
from tests.engine.store.test_early import Gate
from tests.engine.test_lost_state import pages
from tests.engine.test_service import model, prompt  # noqa: F401  (model is a fixture)

pytestmark = pytest.mark.skipif(not can_map(), reason="this system cannot populate a mapping")
DOCUMENT = prompt(900)
SAMPLING = Sampling(temperature=1.0, seed=3, max_tokens=20)


class Bench:
    """A scheduler on this thread, with a store. `events`: everything it said; `turns`: by name."""

    def __init__(self, path: Path, folder: Path, heard: Callable[[Event], None] = lambda event: None) -> None:
        self.events: list[Event] = []
        self.turns: dict[str, Turn] = {}
        self._heard = heard
        settings = EngineSettings(threads=2)
        self.loaded = loaded = load(path, settings, lambda stage: None)
        self.store = KvStore(folder, loaded.layout, loaded.fingerprint)
        self.cache = KvCache(loaded.layout, loaded.fingerprint, loaded.numerics, self.store, 1 << 30)
        limits = Limits(loaded.handle.context, settings.prefill_chunk, loaded.handle.tokenizer.eog_ids)
        self.admission = Admission(self.cache, Rates(), limits.context, self._say, long_check_ms=0.0)
        runner = Runner(loaded.backend, settings.micro_batch)
        self.scheduler = Scheduler(runner, self.admission, Rates(), limits, self._say)

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self.scheduler.cancel_all()
        self.cache.flush(240)
        self.store.close(240)

    def _say(self, event: Event) -> None:
        self.events.append(event)
        self._heard(event)

    def turn(self, name: str, tokens: Tokens, history: int = 0) -> Turn:
        request = Submit(TurnId(name), ConversationId(name), tokens, SAMPLING, history_tokens=history)
        self.turns[name] = Turn(request, AnswerText(self.loaded.handle.chat.reply_stream(), ()))
        return self.turns[name]

    def step(self) -> None:
        if not self.scheduler.step():
            self.scheduler.wait(5)
        for turn in self.turns.values():
            if turn.phase in (Phase.PREFILL, Phase.DECODE):
                assert turn.reused_in_all.total <= turn.kv.num_tokens

    def run(self, name: str, tokens: Tokens, history: int = 0) -> TurnFinished:
        self.scheduler.submit(self.turn(name, tokens, history))
        return self.finished(name)

    def finished(self, name: str) -> TurnFinished:
        while True:
            for event in self.events:
                if isinstance(event, TurnFinished) and event.turn == name:
                    return event
            self.step()

    def restored(self) -> list[int]:
        return [event.reused.total for event in self.events if isinstance(event, TurnRestored)]


def gate_opens(event: Event) -> None:
    """Nothing is checked before the turn computes."""
    if isinstance(event, TurnRestored):
        Gate.open.set()


@pytest.fixture
def kept(model: Path, tmp_path: Path) -> Iterator[tuple[Bench, Tokens, TurnFinished]]:  # noqa: F811
    """An engine that has not read its pages yet and checks none so far, the prompt, and the answer to it of one that
    never left."""
    with Bench(model, tmp_path / "kv") as bench:
        bench.run("c", DOCUMENT)
    with Bench(model, tmp_path / "twin") as bench:
        tokens = DOCUMENT + bench.run("c", DOCUMENT).generated + prompt(9, 2)
        twin = bench.run("twin", tokens)
    Gate.open = threading.Event()
    with Bench(model, tmp_path / "kv", gate_opens) as bench:
        packer = bench.store._packer
        bench.store._reader._packer = Gate(packer.layout, packer.fingerprint)
        yield bench, tokens, twin
        Gate.open.set()


def damage(bench: Bench, page: int) -> None:
    path, record = pages(bench.store.folder)[page]
    flip(path, record.offset + record.header.payload_offset + 5)


def test_a_turn_alone_computes_before_its_pages_are_checked(kept: tuple[Bench, Tokens, TurnFinished]) -> None:
    bench, tokens, twin = kept
    done = bench.run("c", tokens, len(tokens) - 10)
    assert Gate.open.is_set()
    assert done.generated == twin.generated
    assert bench.restored() == [len(tokens) - 10]
    assert done.reused.total == len(tokens) - 10
    assert [part.reason for part in done.computed] == ["last sampled", "new"]


def test_what_was_computed_on_a_damaged_page_does_not_count(kept: tuple[Bench, Tokens, TurnFinished]) -> None:
    bench, tokens, twin = kept
    damage(bench, 3)
    done = bench.run("c", tokens, len(tokens) - 10)
    size, all_of_it = bench.cache.layout.page_tokens, len(tokens) - 10
    told = [all_of_it, 3 * size, all_of_it - size]
    assert bench.restored() == told, "before the check, after it, and with what is intact behind the page"
    assert (done.reused.total, done.computed[0].reason) == (all_of_it - size, "damaged")
    assert sum(part.tokens for part in done.computed) == 10 + size
    assert done.generated == twin.generated


@pytest.mark.parametrize("damaged", [False, True])
def test_what_was_checked_meanwhile_is_not_read_again(kept: tuple[Bench, Tokens, TurnFinished], damaged: bool) -> None:
    bench, tokens, _ = kept
    admission = bench.admission
    if damaged:
        damage(bench, 3)
    early, second, third = (bench.turn(name, tokens) for name in ("early", "second", "third"))
    Gate.open.clear()
    admission.begin(early)
    admission.wait(early, alone=True, seconds=60)
    admission.begin(second)
    admission.poll(second, alone=False)
    assert second.sequence is None, "others would have to wait for the checks of a turn that is not alone"
    bench._heard = lambda event: None
    admission.poll(early, alone=True)
    restore = early.restore
    assert restore is not None
    assert early.kv.num_tokens == len(tokens) - 10
    admission.end(second, keep=False)
    Gate.open.set()
    assert restore.wait(240)
    assert restore.stays() is not damaged
    admission.begin(third)
    assert third.match is not None
    assert third.match.memory_tokens == (0 if damaged else len(tokens) - 10)
    assert (early.restore is None) is not damaged
    assert admission.sound(early) is not damaged
    assert early.reused.total == early.kv.num_tokens
    for turn in (early, third):
        admission.end(turn, keep=False)


def test_a_loss_takes_off_what_came_from_another_turn_too(model: Path, tmp_path: Path) -> None:  # noqa: F811
    """The document's beginning comes from disk for both, its rest is computed by the first and taken over by the
    second; then the file is cut short under them."""
    questions = {name: DOCUMENT + prompt(seed, seed) for name, seed in (("a", 7), ("b", 11))}
    with Bench(model, tmp_path / "twin") as bench:
        twins = {name: bench.run(name, tokens) for name, tokens in questions.items()}
    with Bench(model, tmp_path / "kv") as bench:
        bench.run("c", Tokens.prompt(DOCUMENT.ids[:500]))
    with Bench(model, tmp_path / "kv") as bench:
        size = bench.cache.layout.page_tokens
        for name, tokens in questions.items():
            bench.scheduler.submit(bench.turn(name, tokens))
        second = bench.turns["b"]
        while not second.taken:
            bench.step()
        assert second.reused_in_all.total == len(DOCUMENT) // size * size
        path, record = pages(tmp_path / "kv")[2]
        with path.open("r+b") as file:
            file.truncate(record.offset)
        bench.step()
        assert second.reused_in_all.total == 2 * size
        done = {name: bench.finished(name) for name in questions}
    for name, twin in twins.items():
        assert done[name].generated == twin.generated
        assert done[name].reused.total + sum(part.tokens for part in done[name].computed) == len(questions[name])
    assert bench.restored()[-1] == 2 * size
