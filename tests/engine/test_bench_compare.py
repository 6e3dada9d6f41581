"""Runs of the comparison: the product's own are real; no peer is installed here, so its side is tested in parts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from app.cli.parser_models import PEERS as NAMED
from engine import bench_peers, bench_process
from engine.bench_compare import PEERS, Comparison, Lengths, Rates, Spread, peer_source, run_pagekeep, run_peer
from engine.errors import EngineError
from engine.messages import EngineSettings
from tests.engine.checkouts import other_checkout  # noqa: F401  (a fixture)

DENSE = Path(__file__).parent.parent / "data" / "models" / "type-dense-q4_1.gguf"
ONE = EngineSettings(threads=1)


def test_a_run_measures_this_engine_and_says_which_kernels_it_has(other_checkout: Path) -> None:  # noqa: F811
    rates = run_pagekeep(DENSE, ONE, Lengths(depth=65, prompt=33, generate=3))
    assert rates.prefill > 0
    assert rates.decode > 0
    assert rates.build.startswith("Pagekeep: ")


@pytest.mark.parametrize("python", [sys.executable, "/no/such/python"])
def test_a_peer_that_is_not_there_is_named_with_a_way_on(python: str) -> None:
    with pytest.raises(EngineError) as caught:
        run_peer(DENSE, ONE, Lengths(0, 8, 2), "xllamacpp", python)
    assert "--peer-python" in caught.value.next
    assert "xllamacpp" in caught.value.why or "No such file" in caught.value.why


def test_a_run_that_fails_tells_its_last_line_and_a_way_on() -> None:
    with pytest.raises(EngineError, match="A run of the benchmark failed") as caught:
        run_pagekeep(DENSE.with_name("missing.gguf"), ONE, Lengths(0, 8, 2))
    assert "missing.gguf" in caught.value.why
    assert "pagekeep model check" in caught.value.next


@pytest.mark.parametrize("printed", ["", "loading", "{ggml: threads}", "[1, 2]"])
def test_a_run_without_figures_tells_what_it_said(printed: str) -> None:
    with pytest.raises(EngineError, match="gave no figures") as caught:
        bench_process.run_peer_source(sys.executable, "import sys; print(sys.argv[1])", printed)
    assert (printed or "It said nothing.") in caught.value.why
    assert "--peer-python" in caught.value.next


def test_the_last_object_of_a_run_is_taken() -> None:
    source = "print('{}'); print('{\"rate\": 2}'); print('{bye')"
    assert bench_process.run_peer_source(sys.executable, source, "") == {"rate": 2}


def test_a_run_without_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_process, "_RUN_SECONDS", 0.2)
    with pytest.raises(EngineError, match="took too long") as caught:
        bench_process.run_peer_source(sys.executable, "import time; time.sleep(60)", "")
    assert "0.2 seconds" in caught.value.why
    assert caught.value.next


def test_every_peer_has_a_run_and_its_source_needs_nothing_of_this_program() -> None:
    assert tuple(bench_peers.RUNS) == tuple(bench_peers.MODULES) == PEERS == NAMED
    ours = ("from engine", "import engine", "import numpy", "from kernels")
    assert not any(line.strip().startswith(ours) for line in peer_source().splitlines())


def test_a_peer_is_fed_depth_prompt_and_then_token_by_token() -> None:
    fed: list[list[int]] = []
    job = {"depth": 3, "prompt": 4, "generate": 2}
    prefill, decode = bench_peers.timed(fed.append, list(range(9)), job)
    assert fed == [[0, 1, 2], [3, 4, 5, 6], [7], [8]]
    assert prefill > 0
    assert decode > 0


def test_ratios_are_taken_pair_by_pair() -> None:
    def pair(ours: float, theirs: float) -> tuple[Rates, Rates]:
        return Rates(ours, 2 * ours, "a"), Rates(theirs, theirs, "b")

    found = Comparison.of([pair(10, 5), pair(30, 10), pair(8, 8)])
    assert found.prefill_ratio == Spread(1.0, 1.5, 2.0, 2.5, 3.0)
    assert found.decode_ratio == Spread(2.0, 3.0, 4.0, 5.0, 6.0)
    assert (found.prefill, found.peer_prefill, found.decode, found.peer_decode) == (10, 8, 20, 8)
    assert Spread.of([2.0]) == Spread(2.0, 2.0, 2.0, 2.0, 2.0)
