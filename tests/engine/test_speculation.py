"""Drafts change how many steps an answer takes, and nothing else: text, tokens and KV are those of plain decoding.

Over 300 lines: every kind of model and of ending goes through the same comparison.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from collections.abc import Sequence as Rows
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.admission import Admission
from engine.answer import AnswerText
from engine.drafts import Draft
from engine.kv.cache import KvCache
from engine.kv.layout import copy_rows
from engine.kv.pool import KvMemoryFull, PageBuffer
from engine.limits import Limits
from engine.loading import load
from engine.messages import ConversationId, EngineSettings, Event, Sampling, Submit, Tokens, TurnFinished, TurnId
from engine.row_runs import decode_run
from engine.runner import Runner
from engine.scheduler import Scheduler
from engine.speculation import LONGEST_DRAFT, Chances, Speculation, StepCosts
from engine.timings import Rates
from engine.turn import Turn

DATA = Path(__file__).parent.parent / "data" / "models"
DENSE = DATA / "type-dense-q4_1.gguf"
ANSWER = 70
GREEDY = Sampling(temperature=0.0, max_tokens=ANSWER)
SAMPLED = Sampling(temperature=0.4, top_k=3, seed=11, max_tokens=ANSWER)
PENALISED = replace(SAMPLED, repetition_penalty=1.2, presence_penalty=0.3, penalty_window=9)


@pytest.fixture(autouse=True, params=["in runs", "in steps of their own"])
def ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drafts are checked within one native call, which ends soon, or by the scheduler."""
    if request.param == "in runs":
        monkeypatch.setattr("engine.decoding.RUN_MS", 1e6)
        monkeypatch.setattr("engine.decoding.MOST_TOKENS", 1)
    else:
        monkeypatch.setattr("engine.decoding.RUN_MS", 0.0)


class Foretold(Speculation):
    """Drafts that are known to be right up to a place that chance says, whatever they cost."""

    answers: Mapping[str, tuple[int, ...]]

    def _find(self, turn: Turn) -> Draft:
        done = len(turn.generated)
        chance = random.Random(done)
        ids = list(self.answers[turn.request.conversation][done : done + chance.randint(0, 6)])
        wrong = chance.randrange(9)
        if wrong < len(ids):
            ids[wrong] = (ids[wrong] + 1) % 200
        return Draft(tuple(ids), 2)

    def _lengths(self, found: Rows[Draft]) -> list[int]:
        return [len(draft.ids) for draft in found]


class RecordingAdmission(Admission):
    """`kv`: by conversation, what its turn leaves behind: whole pages, and the rows of the tail."""

    kv: dict[str, list[bytes]]

    def end(self, turn: Turn, *, keep: bool) -> int:
        sequence, layout = turn.kv, self._cache.layout
        left = [page.buffer.view.tobytes() for page in sequence.pages if page.buffer is not None]
        if sequence.tail_tokens:
            rows = np.zeros_like(sequence.tail_buffer().view)
            copy_rows(sequence.tail_buffer().view, layout, rows, layout, sequence.tail_tokens)
            left.append(rows.tobytes())
        self.kv[turn.request.conversation] = left
        return super().end(turn, keep=keep)


@dataclass
class Bench:
    """A scheduler on this thread. `events`: everything it said."""

    path: Path
    foretold: Mapping[str, tuple[int, ...]] | None = None
    settings: EngineSettings = field(default_factory=lambda: EngineSettings(threads=2))
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.model = load(self.path, self.settings, lambda stage: None)
        model, settings = self.model, self.settings
        self.cache = KvCache(model.layout, model.fingerprint, model.numerics, None, settings.ram_budget_bytes)
        limits = Limits(model.handle.context, settings.prefill_chunk, model.handle.tokenizer.eog_ids)
        self.admission = RecordingAdmission(self.cache, Rates(), limits.context, self.events.append)
        self.admission.kv = {}
        speculation = Foretold(limits.end_tokens, limits.context) if self.foretold is not None else None
        if speculation:
            speculation.answers = self.foretold
        runner = Runner(model.backend, settings.micro_batch)
        self.scheduler = Scheduler(runner, self.admission, Rates(), limits, self.events.append, speculation=speculation)

    def submit(self, name: str, tokens: Tokens, sampling: Sampling) -> None:
        request = Submit(TurnId(name), ConversationId(name), tokens, sampling)
        self.scheduler.submit(Turn(request, AnswerText(self.model.handle.chat.reply_stream(), sampling.stop)))

    def finish(self) -> dict[str, TurnFinished]:
        while self.scheduler.busy:
            self.scheduler.step()
        return {event.conversation: event for event in self.events if isinstance(event, TurnFinished)}


def prompt(seed: int) -> Tokens:
    """Ends before the border of a page, at an odd place."""
    return Tokens.prompt(random.Random(seed).choices(range(3, 200), k=226 + 3 * seed))


def run(
    path: Path,
    sampling: Sampling,
    foretold: Mapping[str, tuple[int, ...]] | None = None,
    turns: int = 1,
    **settings: Any,
) -> Bench:
    bench = Bench(path, foretold, EngineSettings(**({"threads": 2} | settings)))
    for turn in range(turns):
        bench.submit(f"c{turn}", prompt(turn), replace(sampling, seed=sampling.seed + turn))
    bench.finish()
    return bench


def compare(path: Path, sampling: Sampling, turns: int = 1, **settings: Any) -> dict[str, TurnFinished]:
    """Plain decoding against drafts of its own answers; the answers with drafts."""
    plain = run(path, sampling, None, turns, **settings)
    expected = plain.finish()
    known = {name: done.generated.ids for name, done in expected.items()}
    drafting = run(path, sampling, known, turns, **settings)
    found = drafting.finish()
    for name, turn in expected.items():
        other = found[name]
        assert (other.generated, other.text, other.reason) == (turn.generated, turn.text, turn.reason)
        assert drafting.admission.kv[name] == plain.admission.kv[name]
        assert turn.drafted == 0
        assert len(other.generated) // 4 < other.accepted < other.drafted
    return found


@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED, PENALISED], ids=["greedy", "sampled", "penalties"])
@pytest.mark.parametrize(
    ("file", "settings"),
    [
        ("type-dense-q4_1.gguf", {}),
        ("type-dense-q4_1.gguf", {"kv_type_k": "q8", "kv_type_v": "q8", "micro_batch": 3}),
        ("ds2-lite-mini.gguf", {}),
        ("gptoss-mini.gguf", {}),
    ],
    ids=["dense", "q8-micro-batch", "mla", "sliding-window-experts"],
)
def test_text_and_kv_are_those_of_plain_decoding(file: str, settings: dict[str, Any], sampling: Sampling) -> None:
    assert len(compare(DATA / file, sampling, turns=2, **settings)) == 2


def test_a_stop_string_within_drafts_ends_the_answer_where_it_did() -> None:
    text = run(DENSE, GREEDY).finish()["c0"].text
    assert compare(DENSE, replace(GREEDY, stop=(text[-8:-5],)))["c0"].reason == "stop_string"


@pytest.mark.parametrize("steps", [4, 9])
def test_a_cancelled_answer_keeps_only_what_was_accepted(steps: int) -> None:
    known = {"c0": run(DENSE, GREEDY).finish()["c0"].generated.ids}
    drafting = Bench(DENSE, known)
    drafting.submit("c0", prompt(0), GREEDY)
    for _ in range(steps):
        drafting.scheduler.step()
    drafting.scheduler.cancel(TurnId("c0"))
    found = drafting.finish()["c0"]
    assert found.reason == "cancelled"
    assert len(found.generated) > steps
    plain = run(DENSE, replace(GREEDY, max_tokens=len(found.generated)))
    assert plain.finish()["c0"].generated == found.generated
    assert drafting.admission.kv == plain.admission.kv


def test_the_context_is_filled_to_the_same_token() -> None:
    assert compare(DENSE, replace(GREEDY, max_tokens=1000))["c0"].reason in ("context", "stop")


def test_a_draft_is_left_out_where_memory_is_short() -> None:
    """The answer ends right before the border of a page, in a pool without room for the next one."""
    known = {"c0": run(DENSE, GREEDY).finish()["c0"].generated.ids}
    bench = Bench(DENSE, known)
    bench.submit("c0", prompt(0), replace(GREEDY, max_tokens=31))
    turn = bench.scheduler._turns[TurnId("c0")]
    while not turn.generated:
        bench.scheduler.step()
    turn.kv.reserve(30)
    bench.cache.allocate = refuse  # type: ignore[method-assign]
    assert len(decode_run(turn, tuple(range(40))).ids) == 1
    assert len(decode_run(turn, (5, 6)).ids) == 3


def refuse(pages: int) -> list[PageBuffer]:
    raise KvMemoryFull("No room.", f"{pages} pages.", "")


# --- when it pays -----------------------------------------------------------------------------------


def turn_with(prompt: list[int], generated: list[int], **sampling: object) -> Turn:
    request = Submit(TurnId("t"), ConversationId("c"), Tokens.prompt(prompt), Sampling(**sampling))  # type: ignore[arg-type]
    turn = Turn(request, AnswerText(Silent(), ()))
    turn.generated = generated
    return turn


class Silent:
    """No text."""

    def push(self, token: int) -> str:
        return ""

    def flush(self) -> str:
        return ""


def speculation(times: dict[int, float]) -> Speculation:
    made = Speculation(frozenset({2}), 4096)
    for rows, ms in times.items():
        made.costs.saw(rows, ms)
    return made


COPYING = list(range(10, 60))


def test_cheap_rows_are_used_and_dear_ones_are_not() -> None:
    turn = turn_with(COPYING, COPYING[:10])
    cheap = speculation({1: 10.0, 17: 12.0}).drafts([turn], beside_prefill=False)[0]
    assert cheap == tuple(COPYING[10 : 10 + len(cheap)])
    assert len(cheap) >= 4
    assert speculation({1: 10.0, 2: 19.0, 17: 150.0}).drafts([turn], beside_prefill=False) == [()]


def test_rows_fill_a_pass_of_the_kernels_where_one_more_would_cost_another() -> None:
    made = speculation({1: 10.0, 8: 13.0, 9: 25.0, 17: 60.0})
    turn = turn_with(COPYING, COPYING[:10])
    for _ in range(10):
        made.chances.judged(10, 7, 7)
    assert made.drafts([turn], beside_prefill=False) == [tuple(COPYING[10:17])]
    two = [turn_with(COPYING, COPYING[:10]), turn_with(COPYING, COPYING[5:15])]
    made.costs.saw(2, 10.0)
    assert [len(draft) for draft in made.drafts(two, beside_prefill=False)] == [3, 3]


def test_nothing_is_drafted_before_a_plain_step_was_measured_nor_when_it_is_off() -> None:
    turn = turn_with(COPYING, COPYING[:10])
    assert speculation({}).drafts([turn], beside_prefill=False) == [()]
    off = Speculation(frozenset(), 4096, on=False)
    off.costs.saw(1, 10.0)
    assert off.drafts([turn], beside_prefill=False) == [()]


def test_a_draft_ends_before_the_end_token_the_longest_answer_and_the_context() -> None:
    costs = {1: 10.0, 17: 10.1}
    text = [*COPYING[:12], 2, *COPYING[12:]]
    assert speculation(costs).drafts([turn_with(text, COPYING[:10])], beside_prefill=False) == [(20, 21)]
    last = turn_with(COPYING, COPYING[:10], max_tokens=13)
    assert speculation(costs).drafts([last], beside_prefill=False) == [(20, 21)]
    small = speculation(costs)
    small._context = 63
    assert small.drafts([turn_with(COPYING, COPYING[:10])], beside_prefill=False) == [(20, 21)]


def test_wrong_drafts_switch_it_off_and_time_brings_it_back() -> None:
    turn, made = turn_with(COPYING, COPYING[:10]), speculation({1: 10.0, 2: 12.0, 17: 30.0})
    tries = 0
    while drafts := made.drafts([turn], beside_prefill=False)[0]:
        made.judged(turn, len(drafts), 0)
        tries += 1
    assert 1 <= tries < 12
    for _ in range(20):
        made.judged(turn, 1, 0)
    rests = 0
    while not made.drafts([turn], beside_prefill=False)[0]:
        rests += 1
    assert 50 < rests < 500


def test_right_drafts_grow_longer() -> None:
    turn, made = turn_with(COPYING, COPYING[:10]), speculation({1: 10.0, 17: 40.0})
    first = len(made.drafts([turn], beside_prefill=False)[0])
    for _ in range(10):
        made.judged(turn, 8, 8)
    assert first < len(made.drafts([turn], beside_prefill=False)[0]) <= LONGEST_DRAFT


def test_costs_lie_between_what_was_measured() -> None:
    costs = StepCosts()
    assert costs.of(3) == 0.0
    for ms in (10.0, 500.0, 10.0):
        costs.saw(1, ms)
    assert costs.of(1) == 10.0  # one slow step is no measure
    assert 10.0 < costs.of(5) < 20.0
    costs.saw(5, 30.0)
    assert costs.of(3) == 20.0


def test_old_costs_are_measured_again() -> None:
    costs = StepCosts()
    costs.saw(5, 1000.0)
    for _ in range(600):
        costs.saw(1, 10.0)
    assert costs.of(5) < 20.0


def test_chances_follow_what_happens_by_length_of_the_match() -> None:
    chances = Chances()
    before = chances.of(3)
    for _ in range(20):
        chances.judged(9, 4, 0)
    assert chances.of(9) < 0.2
    assert chances.of(3) == before
