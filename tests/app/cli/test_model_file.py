"""What a model file would take, and whether it is sound."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from engine.gguf import GgufFile

MODELS = Path(__file__).parents[2] / "data" / "models"
GLM = MODELS / "glm4moe-mini.gguf"


@pytest.mark.model
def test_plan_adds_up(pagekeep, starter_model: Path) -> None:
    plan = pagekeep("model", "plan", starter_model, "--ctx", 1000, "--kv", "f32", "--json").json
    with GgufFile.open(starter_model) as file:
        weights = sum(info.nbytes for info in file.tensors.values())
    (cpu,) = plan["devices"]
    assert cpu["device"] == "cpu"
    assert cpu["weights"] == weights == sum(part["bytes"] for part in plan["classes"])
    heads, channels, layers = 3, 64, 30
    assert cpu["kv"] >= 1000 * layers * heads * channels * 2 * 4
    assert cpu["total"] == cpu["weights"] + cpu["kv"] + cpu["compute"]
    assert (plan["context"], plan["crossings"]) == (1000, 0)


def test_experts_stay_where_they_are_told(pagekeep) -> None:
    command = ("model", "plan", GLM, "-ngl", "all", "--cpu-moe", "--ctx", 256)
    plan = pagekeep(*command, "--json").json
    assert [part["device"] for part in plan["classes"] if part["class"] == "experts"] == ["cpu"]
    assert [part["device"] for part in plan["classes"] if part["class"] == "head"] == ["gpu0"]
    assert plan["crossings"] > 0
    text = pagekeep(*command).out
    assert "gpu0" in text
    assert f"{plan['crossings']} times" in text
    here = pagekeep("model", "plan", GLM, "--vram", 1, "--ctx", 256, "--json").json
    assert "gpu0" in [part["device"] for part in here["classes"] if part["class"] == "experts"]


def test_a_plan_has_no_more_context_than_the_model(pagekeep) -> None:
    own = pagekeep("model", "plan", GLM, "--json").json
    more = pagekeep("model", "plan", GLM, "--ctx", own["context"] + 1, "--json").json
    assert more["context"] == own["context"]
    assert "was made for" in more["warnings"][-1]


def test_wrong_options_are_named(pagekeep) -> None:
    error = pagekeep("model", "plan", GLM, "-ot", "exps=moon", "--json").error
    assert "moon" in error["what"]
    assert "kv" in str(pagekeep("model", "plan", GLM, "--kv", "f7", "--json").error)


def test_a_sound_file(pagekeep) -> None:
    checked = pagekeep("model", "check", GLM, "--json").json
    assert checked["sound"] is True
    assert checked["smoke_tokens"] == 32
    assert checked["smoke_text"]
    assert checked["sampled_values"] > checked["tensors"] == 59
    assert "is sound" in pagekeep("model", "check", GLM).out


def test_weights_that_are_no_numbers_are_found(pagekeep, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.gguf"
    shutil.copy(GLM, damaged)
    with GgufFile.open(GLM) as file:
        info = file.tensors["blk.1.attn_k.weight"]
    with damaged.open("r+b") as target:
        target.seek(info.offset)
        target.write(b"\xff" * 4)
    error = pagekeep("model", "check", damaged, "--json").error
    assert "damaged.gguf" in error["what"]
    assert "blk.1.attn_k.weight" in error["why"]


def test_a_cut_file_is_told(pagekeep, tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(GLM.read_bytes()[:-5000])
    for action in ("plan", "check"):
        error = pagekeep("model", action, cut, "--json").error
        assert "cut.gguf" in error["what"] + error["why"]
