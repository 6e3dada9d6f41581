"""Several steps of answers in one call: what single steps and draws give, in tokens, K and V, whatever is drafted; and
what ends a run."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernels.native_program import Decoded, Draw, NativeProgram, TokenRun
from kernels.program import PARK, STOP
from kernels.sample.cpu import sampler
from tests.kernels.kv_cases import Pages
from tests.kernels.small_model import PAGE, SmallModel, small_model
from tests.kernels.test_native_program import TOKENS, batch_of
from tests.kernels.test_sample import Plain

PROMPTS = (PAGE - 5, 20, 2 * PAGE + 30)  # the first ends right before the border of a page
STEPS = 12
LONG = 32_768  # steps: many times as long as a thread may be kept waiting
NO_IDS = np.zeros(0, np.int32)
STRUCK = np.arange(0, 300, 3, dtype=np.int32)
RULES = {
    "greedy": Plain(temperature=0.0),
    "sampled": Plain(temperature=0.9, top_k=40, top_p=0.95, seed=5),
    "penalties": Plain(temperature=0.7, seed=9, repetition_penalty=1.3, presence_penalty=0.4, penalty_window=4),
}


class Answers:
    """Conversations whose prompts are computed: token 7 of each was drawn and is to be fed next."""

    def __init__(self, model: SmallModel, threads: int = 2) -> None:
        self.native = NativeProgram(model.program, threads)
        self.pages: Pages = model.pages(len(PROMPTS), 4 * PAGE)
        self.cancel = np.zeros(1, np.uint8)
        for number, count in enumerate(PROMPTS):
            assert self.native.step(batch_of(self.pages, [(number, TOKENS[:count], 0)])).completed

    def runs(self, tokens: Sequence[int], positions: Sequence[int]) -> list[TokenRun]:
        return [
            ((token,), (1,), position, self.pages.table[number], True, 1)
            for number, (token, position) in enumerate(zip(tokens, positions, strict=True))
        ]

    def singly(self, rule: Plain, struck: np.ndarray, steps: int = STEPS) -> list[list[int]]:
        """By single steps, what each draws."""
        drawn: list[list[int]] = [[7] for _ in PROMPTS]
        samplers = [sampler(replace(rule, seed=rule.seed + number)) for number in range(len(PROMPTS))]
        for step in range(steps):
            runs = self.runs([ids[-1] for ids in drawn], [count + step for count in PROMPTS])
            logits = self.native.step_runs(runs, self.cancel).logits.copy()
            logits[:, struck] = -np.inf
            for number, ids in enumerate(drawn):
                ids.append(samplers[number].pick(logits, number, ids, PROMPTS[number] + step + 1))
        return [ids[1:] for ids in drawn]

    def at_once(
        self, rule: Plain, struck: np.ndarray = NO_IDS, steps: int = STEPS, ms: float = 1e6, rows: int = 64,
        drafts: Sequence[Sequence[int]] = ((), (), ()), **draw: Any
    ) -> Decoded:  # fmt: skip
        """`steps`: tokens of each at most, of which `drafts` are fed in the first."""
        draws = [
            Draw(sampler(replace(rule, seed=rule.seed + number)), array("i", [*TOKENS[:count].tolist(), 7]), count,
                 **({"most": steps, "ends": NO_IDS, "struck": struck} | draw))
            for number, count in enumerate(PROMPTS)
        ]  # fmt: skip
        runs = [
            ((7, *draft), (1,) * (1 + len(draft)), count, self.pages.table[number], True, 1 + len(draft))
            for number, (count, draft) in enumerate(zip(PROMPTS, drafts, strict=True))
        ]
        return self.native.decode(runs, draws, self.cancel, rows, ms)

    def stored(self, steps: int) -> list[np.ndarray]:
        return [part.numpy() for number, count in enumerate(PROMPTS) for part in self.pages.read(number, count + steps)]


@pytest.mark.parametrize("struck", [NO_IDS, STRUCK], ids=["", "struck"])
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
@pytest.mark.parametrize("threads", [1, 2])
def test_tokens_and_kv_are_those_of_single_steps(threads: int, rule: Plain, struck: np.ndarray) -> None:
    model = small_model()
    single, several = Answers(model, threads), Answers(model, threads)
    wanted, found = single.singly(rule, struck), several.at_once(rule, struck)
    assert found.tokens == wanted
    assert not set(struck) & {token for tokens in wanted for token in tokens}
    assert len(found.milliseconds) == STEPS
    assert all(np.array_equal(*pair) for pair in zip(single.stored(STEPS), several.stored(STEPS), strict=True))


def test_it_ends_behind_a_token_that_nothing_may_follow() -> None:
    model = small_model()
    wanted = Answers(model).singly(RULES["sampled"], NO_IDS)
    seen = {token: step for step in reversed(range(STEPS)) for token in (tokens[step] for tokens in wanted)}
    end, first = max(seen.items(), key=lambda item: item[1])
    found = Answers(model).at_once(RULES["sampled"], ends=np.array(sorted({end, 299}), np.int32))
    assert found.tokens == [tokens[: first + 1] for tokens in wanted]
    assert 1 < len(found.milliseconds) == first + 1


def test_shorter_matches_are_told_of_and_nothing_is_tried_behind_them() -> None:
    """Greedy answers of random weights repeat themselves."""
    model = small_model()
    found = Answers(model).at_once(RULES["greedy"], steps=30, **behind(17))
    assert len(found.milliseconds) == 30
    passed = [one for tries in found.tries for one in tries]
    assert max(passed)[0] > 1
    assert all(one.match >= 1 and one[1:] == (0, 0) for one in passed)
    short = Answers(model).at_once(RULES["greedy"], ms=0.0, **behind(17))
    assert short.looked
    assert sum(map(len, short.tries)) <= len(PROMPTS)
    assert not any(Answers(model).at_once(RULES["greedy"]).tries)


def behind(least: int, drafted: int = 5) -> dict[str, Any]:
    """So many tokens are drafted behind matches of `least` ids or more."""
    return {"shortest": 1, "lengths": np.array([0] * least + [drafted] * (17 - least), np.int32)}


@pytest.mark.parametrize("rows", [4, 8, 64])
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
def test_drafts_within_a_run_change_nothing_but_the_number_of_steps(rule: Plain, rows: int) -> None:
    """The run ends with the first of three answers that has all its tokens."""
    model, steps = small_model(), 40
    single, several = Answers(model), Answers(model)
    wanted = single.singly(rule, NO_IDS, steps)
    found = several.at_once(rule, steps=steps, rows=rows, **behind(1))
    assert max(map(len, found.tokens)) == steps
    for number, tokens in enumerate(found.tokens):
        assert tokens == wanted[number][: len(tokens)]
        for pair in zip(single.pages.read(number, PROMPTS[number] + len(tokens)),
                        several.pages.read(number, PROMPTS[number] + len(tokens)), strict=True):  # fmt: skip
            assert np.array_equal(*(part.numpy() for part in pair))
    tries = [one for tried in found.tries for one in tried]
    assert all(one.accepted <= one.drafted <= 5 for one in tries)
    assert sum(found.rows) == 3 * len(found.rows) + sum(one.drafted for one in tries)
    assert sum(map(len, found.tokens)) == 3 * len(found.rows) + sum(one.accepted for one in tries)
    assert 3 < max(found.rows) <= rows
    if rule is RULES["greedy"]:
        assert len(found.milliseconds) < steps


def test_it_goes_on_from_what_was_drafted_before() -> None:
    model, rule = small_model(), RULES["sampled"]
    wanted = Answers(model).singly(rule, NO_IDS)
    drafts = (wanted[0][:3], [(wanted[1][0] + 1) % 300], ())
    answers = Answers(model)
    found = answers.at_once(rule, drafts=drafts, match=9)
    assert found.tries == [[(9, 3, 3)], [(9, 1, 0)], []]
    assert found.rows[:2] == [7, 3]
    assert found.tokens == [wanted[0], wanted[1][: STEPS - 3], wanted[2][: STEPS - 3]]
    first = Answers(model).at_once(rule, drafts=drafts, steps=4)
    assert first.tokens == [wanted[0][:4], wanted[1][:1], wanted[2][:1]]


def test_nothing_is_drafted_from_a_token_on_that_would_end_the_run() -> None:
    model = small_model()
    free = Answers(model).at_once(RULES["greedy"], steps=40, **behind(1))
    ends = np.unique([tokens[-1] for tokens in free.tokens]).astype(np.int32)
    found = Answers(model).at_once(RULES["greedy"], steps=40, ends=ends, **behind(1))
    assert [tokens[:-1] for tokens in found.tokens if set(tokens[:-1]) & set(ends.tolist())] == []
    assert any(tokens[-1] in ends for tokens in found.tokens)


def test_the_flag_ends_it_behind_the_step_in_progress_or_that_too() -> None:
    model = small_model()
    answers = Answers(model)
    answers.cancel[0] = PARK
    assert [len(tokens) for tokens in answers.at_once(RULES["greedy"]).tokens] == [1, 1, 1]
    answers.cancel[0] = STOP
    found = answers.at_once(RULES["greedy"])
    assert found == ([[], [], []], [[], [], []], [], [], False)
    answers.cancel[0] = 0
    assert answers.at_once(RULES["greedy"]).tokens == Answers(model).singly(RULES["greedy"], NO_IDS)


def test_a_flag_that_another_thread_sets_ends_it() -> None:
    model = small_model()
    native, pages, cancel = NativeProgram(model.program, 1), model.pages(1, LONG), np.zeros(1, np.uint8)
    draw = Draw(sampler(RULES["greedy"]), array("i", [7]), 0, LONG, NO_IDS, NO_IDS)
    timer = threading.Timer(0.02, lambda: cancel.fill(PARK))
    timer.start()
    found = native.decode([((7,), (1,), 0, pages.table[0], True, 1)], [draw], cancel, 1, 1e6)
    timer.join()
    assert 0 < len(found.tokens[0]) == len(found.milliseconds) < LONG // 2


def test_no_step_begins_that_would_end_too_late() -> None:
    answers = Answers(small_model())
    assert len(answers.at_once(RULES["greedy"], ms=0.0).milliseconds) == 1
    steps = [ms for _ in range(5) for ms in answers.at_once(RULES["greedy"]).milliseconds]
    limit = 0.3 * STEPS * min(steps)  # a step of a quiet moment: that none is three times as fast is sure
    assert len(answers.at_once(RULES["greedy"], ms=limit).milliseconds) < STEPS


def test_beside_a_parked_step() -> None:
    """Which waits, and goes on as if nothing had been."""
    model = small_model()
    wanted = Answers(model).singly(RULES["greedy"], NO_IDS)
    answers, others = Answers(model), model.pages(1, 128)
    prompt = [(tuple(TOKENS[:90].tolist()), (0,) * 90, 0, others.table[0], True, 1)]
    logits = Answers(model).native.step_runs(prompt, answers.cancel).logits
    assert answers.native.step_runs(prompt, np.array([PARK], np.uint8), parkable=True).parked
    assert answers.at_once(RULES["greedy"]).tokens == wanted
    result = answers.native.resume()
    while result.parked:
        result = answers.native.resume()
    assert np.array_equal(result.logits, logits)


def test_what_does_not_fit_is_refused() -> None:
    answers = Answers(small_model())
    with pytest.raises(ValueError, match="pages are needed"):
        answers.at_once(RULES["greedy"], steps=4 * PAGE)
    draw = Draw(sampler(RULES["greedy"]), array("i", [7]), 0, 2, NO_IDS, NO_IDS)
    two_rows = ((7, 8), (1, 1), 0, answers.pages.table[0], True, 1)
    one_row = ((7,), (1,), 0, answers.pages.table[0], True, 1)
    wrong: list[tuple[str, TokenRun, list[Draw]]] = [
        ("wanted rows of each", two_rows, [draw]),
        ("wanted rows of each", one_row, []),
        ("more rows than may be drawn", one_row, [draw._replace(most=0)]),
        ("struck must be a int32", one_row, [draw._replace(struck=np.zeros(1, np.int64))]),
        ("an answer begins", one_row, [draw._replace(answer=2)]),
    ]
    for text, run, draws in wrong:
        with pytest.raises(ValueError, match=text):
            answers.native.decode([run], draws, answers.cancel, 2, 1e6)
