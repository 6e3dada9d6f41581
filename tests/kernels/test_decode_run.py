"""Several steps of answers in one call: what single steps and draws give, in tokens, K and V; and what ends a run."""

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
        self.pages: Pages = model.pages(len(PROMPTS), 3 * PAGE)
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
        self, rule: Plain, struck: np.ndarray = NO_IDS, steps: int = STEPS, ms: float = 1e6, **draw: Any
    ) -> Decoded:
        draws = [
            Draw(sampler(replace(rule, seed=rule.seed + number)), array("i", [*TOKENS[:count].tolist(), 7]), count,
                 **({"ends": NO_IDS, "struck": struck} | draw))
            for number, count in enumerate(PROMPTS)
        ]  # fmt: skip
        return self.native.decode(self.runs([7] * len(PROMPTS), PROMPTS), draws, self.cancel, steps, ms)

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


def test_it_ends_where_a_draft_may_follow_and_tells_of_shorter_matches() -> None:
    """Greedy answers of random weights repeat themselves."""
    model = small_model()
    looked: dict[str, int] = {"shortest": 1, "longest": 16}
    free = Answers(model).at_once(RULES["greedy"], steps=30, **looked, least=17)
    assert len(free.milliseconds) == 30
    assert min(free.passed) >= 1
    longest = max(free.passed)
    assert longest > 1
    found = Answers(model).at_once(RULES["greedy"], steps=30, **looked, least=longest)
    assert 1 < len(found.milliseconds) < 30
    assert found.tokens == [tokens[: len(found.milliseconds)] for tokens in free.tokens]
    assert all(1 <= length < longest for length in found.passed)
    assert not found.looked
    assert len(Answers(model).at_once(RULES["greedy"], **looked, least=0).milliseconds) == 1
    short = Answers(model).at_once(RULES["greedy"], ms=0.0, **looked, least=17)
    assert short.looked
    assert len(short.passed) <= len(PROMPTS)
    assert not Answers(model).at_once(RULES["greedy"], **looked, least=-1).passed


def test_the_flag_ends_it_behind_the_step_in_progress_or_that_too() -> None:
    model = small_model()
    answers = Answers(model)
    answers.cancel[0] = PARK
    assert [len(tokens) for tokens in answers.at_once(RULES["greedy"]).tokens] == [1, 1, 1]
    answers.cancel[0] = STOP
    found = answers.at_once(RULES["greedy"])
    assert found == ([[], [], []], [], [], False)
    answers.cancel[0] = 0
    assert answers.at_once(RULES["greedy"]).tokens == Answers(model).singly(RULES["greedy"], NO_IDS)


def test_a_flag_that_another_thread_sets_ends_it() -> None:
    model = small_model()
    native, pages, cancel = NativeProgram(model.program, 1), model.pages(1, LONG), np.zeros(1, np.uint8)
    draw = Draw(sampler(RULES["greedy"]), array("i", [7]), 0, NO_IDS, NO_IDS)
    timer = threading.Timer(0.02, lambda: cancel.fill(PARK))
    timer.start()
    found = native.decode([((7,), (1,), 0, pages.table[0], True, 1)], [draw], cancel, LONG, 1e6)
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
        answers.at_once(RULES["greedy"], steps=3 * PAGE)
    with pytest.raises(ValueError, match="one token and one output"):
        answers.at_once(RULES["greedy"], steps=0)
    draw = Draw(sampler(RULES["greedy"]), array("i", [7]), 0, NO_IDS, NO_IDS)
    two_rows = ((7, 8), (1, 1), 0, answers.pages.table[0], True, 1)
    one_row = ((7,), (1,), 0, answers.pages.table[0], True, 1)
    wrong: list[tuple[str, TokenRun, list[Draw]]] = [
        ("one token and one output", two_rows, [draw]),
        ("one token and one output", one_row, []),
        ("struck must be a int32", one_row, [draw._replace(struck=np.zeros(1, np.int64))]),
        ("an answer begins", one_row, [draw._replace(answer=2)]),
    ]
    for text, run, draws in wrong:
        with pytest.raises(ValueError, match=text):
            answers.native.decode([run], draws, answers.cancel, 2, 1e6)
