from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernels.native_program import NativeProgram, TokenRun, available_isas
from kernels.program import Attention, Linear, Route, StepBatch, StepResult, TensorRef
from tests.kernels.kv_cases import Pages
from tests.kernels.small_model import VOCABULARY, SmallModel, small_model

TOKENS = np.random.default_rng(8).integers(0, VOCABULARY, 700).astype(np.int32)


def batch_of(pages: Pages, parts: list[tuple[int, np.ndarray, int]]) -> StepBatch:
    """parts: (sequence, tokens, position of the first one); logits of all rows are wanted."""
    counts, starts = [len(t) for _, t, _ in parts], [s for _, _, s in parts]
    batch = pages.batch(counts, starts)
    tokens = np.concatenate([t for _, t, _ in parts]).astype(np.int32)
    table = np.ascontiguousarray(pages.table[[s for s, _, _ in parts]])
    return replace(batch, tokens=tokens, pages=table, out_rows=np.arange(sum(counts), dtype=np.int32))


def logits_in_chunks(model: SmallModel, sizes: list[int], threads: int, isa: str) -> np.ndarray:
    native = NativeProgram(model.program, threads, isa)
    pages = model.pages(1, len(TOKENS))
    results, at = [], 0
    while at < len(TOKENS):
        size = sizes[len(results) % len(sizes)]
        result = native.step(batch_of(pages, [(0, TOKENS[at : at + size], at)]))
        assert result.completed
        results.append(result.logits)
        at += size
    return np.concatenate(results)


@pytest.mark.parametrize("kind", ["Q4_1", "F32"])
def test_chunks_and_threads_do_not_change_a_bit(isa: str, kind: str) -> None:
    model = small_model(kind)
    whole = logits_in_chunks(model, [len(TOKENS)], 1, isa)
    assert np.isfinite(whole).all()
    for sizes, threads in [([1], 1), ([1], 2), ([7, 64, 1, 130], 2), ([512], 2)]:
        assert np.array_equal(whole, logits_in_chunks(model, sizes, threads, isa)), (sizes, threads)


def test_other_sequences_in_the_batch_do_not_change_a_bit(isa: str) -> None:
    model = small_model()
    native = NativeProgram(model.program, 2, isa)
    alone, shared = model.pages(3, 128), model.pages(3, 128)
    streams = [TOKENS[:60], TOKENS[100:101], TOKENS[200:290]]
    wanted = [native.step(batch_of(alone, [(i, t, 0)])).logits for i, t in enumerate(streams)]
    together = native.step(batch_of(shared, [(2, streams[2], 0), (0, streams[0], 0), (1, streams[1], 0)]))
    order = np.concatenate([wanted[2], wanted[0], wanted[1]])
    assert np.array_equal(together.logits, order)


@pytest.mark.parametrize("rows", [[41], [0, 7, 59, 60, 61], [61, 3, 3, 40]])
def test_wanted_rows_do_not_depend_on_which_others_are_wanted(isa: str, rows: list[int]) -> None:
    model = small_model()
    native = NativeProgram(model.program, 2, isa)
    pages = model.pages(3, 128)
    batch = batch_of(pages, [(0, TOKENS[:42], 0), (1, TOKENS[50:69], 0), (2, TOKENS[70:71], 0)])
    whole = native.step(batch)
    some = native.step(replace(batch, out_rows=np.array(rows, np.int32)))
    assert np.array_equal(some.logits, whole.logits[rows])
    assert np.array_equal(some.hidden, whole.hidden[rows])


def test_full_hit_recomputes_the_last_token_without_writing(isa: str) -> None:
    model = small_model()
    native = NativeProgram(model.program, 1, isa)
    pages = model.pages(1, 100)
    first = native.step(batch_of(pages, [(0, TOKENS[:90], 0)]))
    before = pages.raw.copy()
    again = batch_of(pages, [(0, TOKENS[89:90], 89)])
    result = native.step(replace(again, seq_write=np.zeros(1, np.uint8)))
    assert np.array_equal(result.logits[0], first.logits[-1])
    assert np.array_equal(pages.raw, before)


def test_kept_hidden_vector_gives_the_same_logits(isa: str) -> None:
    model = small_model()
    native = NativeProgram(model.program, 2, isa)
    pages = model.pages(1, 64)
    result = native.step(batch_of(pages, [(0, TOKENS[:20], 0)]))
    assert np.array_equal(native.head(result.hidden), result.logits)
    assert np.array_equal(native.head(result.hidden[7:8].copy()), result.logits[7:8])


def test_cancel_stops_the_step() -> None:
    model = small_model()
    native = NativeProgram(model.program, 2)
    pages = model.pages(1, 64)
    batch = batch_of(pages, [(0, TOKENS[:20], 0)])
    assert not native.step(replace(batch, cancel=np.ones(1, np.uint8))).completed
    assert native.step(batch).completed


def test_cancel_takes_effect_while_a_step_runs() -> None:
    model = small_model("F32")
    native = NativeProgram(model.program, 2)
    pages = model.pages(120, 700)
    batch = batch_of(pages, [(s, TOKENS, 0) for s in range(120)])  # some 4 s of processor time
    results: list[bool] = []
    worker = threading.Thread(target=lambda: results.append(native.step(batch).completed))
    worker.start()
    time.sleep(0.05)
    batch.cancel[0] = 1
    start = time.process_time()
    worker.join()
    assert results == [False]
    assert time.process_time() - start < 1.0


def test_idle_threads_use_no_processor_time() -> None:
    model = small_model()
    native = NativeProgram(model.program, 3)
    pages = model.pages(1, 64)
    used = []
    for _ in range(3):  # other threads of this process may have something to do
        assert native.step(batch_of(pages, [(0, TOKENS[:20], 0)])).completed
        time.sleep(0.05)
        before = time.process_time()
        time.sleep(0.4)
        used.append(time.process_time() - before)
    assert min(used) < 0.1


def test_wrong_batches_are_refused_by_name() -> None:
    model = small_model()
    native = NativeProgram(model.program, 1)
    pages = model.pages(1, 64)
    good = batch_of(pages, [(0, TOKENS[:20], 0)])
    wrong = {
        "tokens must be a int32": {"tokens": good.tokens.astype(np.int64)},
        "token ids must lie": {"tokens": good.tokens + np.int32(VOCABULARY)},
        "do not cover": {"seq_rows": np.array([0, 19], np.int32)},
        "pages are needed": {"seq_start": np.array([60], np.int32)},
        "not 64-byte aligned": {"pages": good.pages + np.uint64(8)},
        "out_rows must lie": {"out_rows": np.array([20], np.int32)},
        r"roles has shape \(3,\), expected \(20,\)": {"roles": np.zeros(3, np.uint8)},
        r"pages has shape \(1,\), expected \(1, None\)": {"pages": np.zeros(1, np.uint64)},
        "pages must be a uint64": {"pages": good.pages.astype(np.int64)},
        "a page address is missing": {"pages": good.pages * np.uint64(0)},
        "tokens must be contiguous": {"tokens": np.repeat(good.tokens, 2)[::2]},
        "roles must be a uint8": {"roles": [0] * 20},
        "seq_write must be a uint8": {"seq_write": np.ones(1, bool)},
        "seq_rows .0, 7, 3. do not cover": {
            "seq_rows": np.array([0, 7, 3], np.int32),
            "seq_start": np.zeros(2, np.int32),
            "seq_write": np.ones(2, np.uint8),
            "pages": np.repeat(good.pages, 2, axis=0),
        },
        "seq_start has a negative": {"seq_start": np.array([-1], np.int32)},
        "cancel has shape": {"cancel": np.zeros(2, np.uint8)},
        "the batch has no rows": {
            "tokens": good.tokens[:0],
            "roles": good.roles[:0],
            "seq_rows": np.zeros(2, np.int32),
            "out_rows": good.out_rows[:0],
        },
    }
    for text, change in wrong.items():
        with pytest.raises(ValueError, match=text):
            native.step(replace(good, **change))
    assert native.step(good).completed


def runs_of(pages: Pages, parts: list[tuple[int, np.ndarray, int]], outputs: int) -> list[TokenRun]:
    return [
        (tuple(tokens.tolist()), (0,) * len(tokens), start, pages.table[number], True, outputs)
        for number, tokens, start in parts
    ]


def test_runs_of_tokens_give_what_their_arrays_give() -> None:
    model = small_model()
    native, cancel = NativeProgram(model.program, 2), np.zeros(1, np.uint8)
    pages, others = model.pages(3, 128), model.pages(3, 128)
    parts = [(2, TOKENS[:60], 0), (0, TOKENS[100:101], 0), (1, TOKENS[200:290], 0)]
    wanted = native.step(replace(batch_of(pages, parts), out_rows=np.array([59, 60, 150], np.int32)))
    found = native.step_runs(runs_of(others, parts, 1), cancel)
    assert np.array_equal(found.logits, wanted.logits)
    assert np.array_equal(found.hidden, wanted.hidden)
    assert native.step_runs(runs_of(others, parts, 0), cancel).logits.shape == (0, VOCABULARY)


def test_results_that_nobody_holds_are_written_over_and_others_are_not() -> None:
    model = small_model()
    native, pages, cancel = NativeProgram(model.program, 1), model.pages(1, 64), np.zeros(1, np.uint8)

    def step(at: int) -> StepResult:
        return native.step_runs(runs_of(pages, [(0, TOKENS[at : at + 1], at)], 1), cancel)

    address = step(0).logits.ctypes.data
    view = step(1).logits[0]  # holds the array that it is a part of
    assert view.ctypes.data == address
    kept = view.copy()
    assert step(2).logits.ctypes.data != address
    assert np.array_equal(view, kept)


def test_and_where_python_counts_one_reference_less() -> None:
    """As 3.14 does."""
    test = f"{__file__}::{test_results_that_nobody_holds_are_written_over_and_others_are_not.__name__}"
    code = (
        "import sys, pytest; count = sys.getrefcount; sys.getrefcount = lambda held: count(held) - 2; "
        f"sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', {test!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_wrong_runs_are_refused_by_name() -> None:
    model = small_model()
    native, pages = NativeProgram(model.program, 1), model.pages(1, 64)
    cancel = np.zeros(1, np.uint8)
    ids, roles, start, table, write, outputs = runs_of(pages, [(0, TOKENS[:20], 0)], 1)[0]
    wrong = {
        "token ids must lie": (*ids[1:], VOCABULARY),
        "token ids must": (*ids[1:], -1),
        "token ids": (*ids[1:], 1 << 40),
        "of 19 ids has 20 roles": ids[1:],
    }
    runs = {text: (given, roles, start, table, write, outputs) for text, given in wrong.items()}
    runs |= {
        "pages are needed": (ids, roles, 60, table, write, outputs),
        "negative position": (ids, roles, -1, table, write, outputs),
        "not 64-byte aligned": (ids, roles, start, table + np.uint64(8), write, outputs),
        "a page address is missing": (ids, roles, start, table * np.uint64(0), write, outputs),
        "pages must be a uint64": (ids, roles, start, table.tolist(), write, outputs),
        "out_rows must lie": (ids, roles, start, table, write, 21),
        "the batch has no rows": ((), (), start, table, write, 0),
    }
    for text, run in runs.items():
        with pytest.raises(ValueError, match=text):
            native.step_runs([run], cancel)
    with pytest.raises(ValueError, match="cancel has shape"):
        native.step_runs([(ids, roles, start, table, write, outputs)], np.zeros(2, np.uint8))
    assert native.step_runs([(ids, roles, start, table, write, outputs)], cancel).completed


def test_wrong_programs_are_refused_by_name() -> None:
    program = small_model().program
    ops = program.instructions
    cases = {
        "instruction 2 .Linear.: tensor 99": replace(program, instructions=(*ops[:2], Linear(2, 1, 99))),
        "instruction 0 .Linear.: buffer 6 is 160 wide": replace(program, instructions=(Linear(6, 1, 2),)),
        "do not divide into 2 KV heads": replace(program, instructions=(Attention(5, 2, 0, 5, 1.0),)),
        "no native kernel": replace(program, tensors=(TensorRef(64, 97, 1, 256), *program.tensors[1:])),
        "instruction 0 .Route.: buffer 1 is 96 wide": replace(program, instructions=(Route(6, 1, 8, 2),)),
        "multiple of 64": replace(program, page_tokens=48),
    }
    for text, wrong in cases.items():
        with pytest.raises(ValueError, match=text):
            NativeProgram(wrong, 1)


def test_isa_is_forced_by_the_environment() -> None:
    code = "import sys, kernels; print(kernels.isa(), kernels.numerics_label()); assert 'torch' not in sys.modules"
    for level in available_isas():
        env = {**os.environ, "PAGEKEEP_ISA": level}
        run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        assert run.stdout.split()[0] == level
        assert run.stdout.split()[1].startswith(f"{level}/cpu/")
    run = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PAGEKEEP_ISA": "vax"}, capture_output=True, text=True
    )
    assert "PAGEKEEP_ISA=vax cannot run" in run.stderr


STARVED = """
import resource
from kernels.native_program import NativeProgram
from tests.kernels.small_model import small_model
program, room = small_model("F32").program, 1 << 30
NativeProgram(program, 1)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + room, used + room))
try:
    NativeProgram(program, 4096)
except RuntimeError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited in Linux's way")
def test_more_threads_than_the_system_has_are_an_error() -> None:
    """Each wants a stack of its own. Running threads that nobody joins would end the process."""
    done = subprocess.run([sys.executable, "-c", STARVED], capture_output=True, text=True, timeout=500)
    assert "of 4096 threads" in done.stdout, done.stderr
