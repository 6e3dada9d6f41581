from __future__ import annotations

import time
from pathlib import Path

import pytest

from engine.bench_compare import Lengths
from engine.bench_roofline import Machine, active_work, matrix_rate, reached, stream
from engine.gguf import GgufFile
from engine.messages import EngineSettings
from engine.model_report import describe_model

DATA = Path(__file__).parent.parent / "data" / "models"
DENSE = DATA / "type-dense-q4_1.gguf"


def test_work_counts_only_chosen_experts_and_once_what_one_token_meets() -> None:
    for name in ("type-dense-q4_1.gguf", "qwen2moe-mini.gguf", "gemma3-mini.gguf"):
        work, once, size = active_work(DATA / name)
        report = describe_model(DATA / name)
        with GgufFile.open(DATA / name) as gguf:
            vectors = sum(info.shape[0] for info in gguf.tensors.values() if len(info.shape) == 1)
        assert work + once == pytest.approx(report.active_parameters - vectors, abs=1)
        head = report.vocabulary * report.channels
        assert head < once < head + work / (report.layers - 1)
        assert 0 < size < report.bytes


def test_shares_are_those_of_the_machine_that_was_measured() -> None:
    found = reached(DENSE, EngineSettings(threads=1), Lengths(0, 40, 3), Machine(1, 50.0, 400.0, 100.0))
    work, once, size = active_work(DENSE)
    assert found.prefill_gops == pytest.approx(2e-9 * (work + once / 40) * found.prefill)
    assert found.prefill_share == pytest.approx(found.prefill_gops / 400)
    assert found.decode_gb_s == pytest.approx(size * 1e-9 * found.decode)
    assert found.decode_share == pytest.approx(found.decode_gb_s / 50)


def test_a_stream_reads_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "some"
    path.write_bytes(bytes(1_000_003))
    assert 0.01 < stream(path, 3) < 10_000


def test_a_product_without_vectors_is_told_apart_and_not_waited_for() -> None:
    asked = []

    def slow(rows: int) -> None:
        asked.append(rows)
        time.sleep(0.04)  # 134 million operations: 3.4 G a second

    assert matrix_rate(slow) == 0.0
    assert set(asked) == {16}
    assert matrix_rate(lambda rows: None) > 100
