"""A step that waits between two units of its phases while others run ends as an undisturbed one does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernels.native_program import NativeProgram, TokenRun
from kernels.program import PARK, STOP, StepBatch, StepResult
from tests.kernels.kv_cases import Pages
from tests.kernels.small_model import small_model
from tests.kernels.test_native_program import TOKENS, batch_of


def flagged(batch: StepBatch, flag: int = PARK) -> StepBatch:
    return replace(batch, cancel=np.array([flag], np.uint8))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_parked_step_and_those_between_end_as_undisturbed_ones(threads: int) -> None:
    model = small_model()
    native, pages, quiet = NativeProgram(model.program, threads), model.pages(2, 400), model.pages(2, 400)
    wanted = native.step(batch_of(quiet, [(0, TOKENS[:333], 0)]))
    short = [native.step(batch_of(quiet, [(1, TOKENS[at : at + 1], at)])).logits for at in range(100)]

    result, times = native.step_parkable(flagged(batch_of(pages, [(0, TOKENS[:333], 0)]))), 0
    while result.parked:
        assert not result.completed
        at = times % len(short)
        between = native.step(batch_of(pages, [(1, TOKENS[at : at + 1], at)]))
        assert np.array_equal(between.logits, short[at])
        result, times = native.resume(), times + 1
    assert result.completed
    assert times > 200, "the flag stays up: a unit of each thread at a time, of some 30 phases"
    assert np.array_equal(result.logits, wanted.logits)
    assert np.array_equal(result.hidden, wanted.hidden)


def test_a_second_long_step_is_stopped_and_a_dropped_one_is_gone() -> None:
    model = small_model()
    native, pages = NativeProgram(model.program, 2), model.pages(2, 128)
    assert native.step_parkable(flagged(batch_of(pages, [(0, TOKENS[:90], 0)]))).parked
    second: StepResult = native.step_parkable(flagged(batch_of(pages, [(1, TOKENS[:90], 0)])))
    assert not second.parked
    assert not second.completed
    native.drop()
    with pytest.raises(ValueError, match="no step is parked"):
        native.resume()
    assert native.step_parkable(flagged(batch_of(pages, [(1, TOKENS[:90], 0)]))).parked


def test_only_who_asks_is_parked_and_a_parked_step_can_be_stopped() -> None:
    model = small_model()
    native, pages = NativeProgram(model.program, 2), model.pages(1, 128)
    batch = flagged(batch_of(pages, [(0, TOKENS[:90], 0)]))
    assert native.step(batch).parked is False
    assert native.step_parkable(batch).parked
    batch.cancel[0] = STOP
    result = native.resume()
    assert not result.completed
    assert not result.parked


def test_pages_of_parked_runs_may_move() -> None:
    """Before each piece they lie elsewhere, and where they were is overwritten."""
    model = small_model()
    native, cancel = NativeProgram(model.program, 2), np.array([PARK], np.uint8)
    quiet, pages = model.pages(1, 400), model.pages(1, 400)
    wanted = native.step(batch_of(quiet, [(0, TOKENS[:333], 0)]))

    def run(pages: Pages) -> TokenRun:
        return tuple(TOKENS[:333].tolist()), (0,) * 333, 0, pages.table[0], True, 333

    result, times = native.step_runs([run(pages)], cancel, parkable=True), 0
    while result.parked:
        assert native.step_runs([run(quiet)], np.zeros(1, np.uint8), parkable=True).completed
        moved = model.pages(1, 400)
        for page in range(pages.table.shape[1]):
            moved.page(0, page)[:] = pages.page(0, page)
            pages.page(0, page)[:] = 0xFF
        pages = moved
        result, times = native.resume(tables=[pages.table[0]]), times + 1
    assert times > 10
    assert np.array_equal(result.logits, wanted.logits)


def test_pages_of_other_sequences_are_refused() -> None:
    model = small_model()
    native, pages = NativeProgram(model.program, 1), model.pages(2, 128)
    run = tuple(TOKENS[:90].tolist()), (0,) * 90, 0, pages.table[0], True, 1
    assert native.step_runs([run], np.array([PARK], np.uint8), parkable=True).parked
    for tables in ([], [pages.table[0], pages.table[1]], [pages.table[0][:1]]):
        with pytest.raises(ValueError, match=r"sequences|pages has shape"):
            native.resume(tables=tables)
    while native.resume(tables=[pages.table[0]]).parked:
        pass
