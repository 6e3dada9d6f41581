"""What a model file would take, and whether it is sound."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from engine.gguf import GgufFile
from tests.engine.gguf_bytes import U32, gguf, pair

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


def test_a_micro_batch_needs_less_memory(pagekeep) -> None:
    command = ("model", "plan", GLM, "--batch", 2048, "--json")
    (whole,), (parts,) = (pagekeep(*command, *more).json["devices"] for more in ((), ("--ubatch", 64)))
    assert parts["compute"] < whole["compute"] / 16


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


def test_a_later_part_is_no_damage(pagekeep, tmp_path: Path) -> None:
    for number in (0, 1):
        split = [pair("split.no", U32, number), pair("split.count", U32, 2)]
        (tmp_path / f"big-0000{number + 1}-of-00002.gguf").write_bytes(gguf(split, []))
    error = pagekeep("model", "check", tmp_path / "big-00002-of-00002.gguf", "--json").error
    assert "cannot be used" in error["what"]
    assert "part 2 of 2" in error["why"]
    assert "-00001-of-00002.gguf" in error["next"]


def test_logits_keep_their_state_as_references_do(pagekeep, tmp_path: Path) -> None:
    """In float32, unless a type is named."""
    tokens, logits = tmp_path / "t.json", {}
    tokens.write_text(str(list(range(20, 60))))
    for kv in ((), ("--kv", "f32"), ("--kv", "f16")):
        out = tmp_path / "o.npz"
        pagekeep("model", "logits", GLM, "--tokens", tokens, "--out", out, *kv)
        with np.load(out) as arrays:
            logits[kv[-1:]] = arrays["logits"]
    assert np.array_equal(logits[()], logits["f32",])
    assert not np.array_equal(logits[()], logits["f16",])


def test_logits_tell_what_was_not_done_as_asked(pagekeep, tmp_path: Path) -> None:
    tokens = tmp_path / "t.json"
    tokens.write_text("[20, 21, 22]")
    command = ("model", "logits", GLM, "--tokens", tokens, "--out", tmp_path / "o.npz")
    assert pagekeep(*command).err == ""
    assert "gpu0; there is none" in pagekeep(*command, "-ngl", "all").err
    assert "3 tokens are more than the context of 2" in pagekeep(*command, "--ctx", 2).err


def test_a_cut_file_is_told(pagekeep, tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(GLM.read_bytes()[:-5000])
    for action in ("plan", "check"):
        error = pagekeep("model", action, cut, "--json").error
        assert "cut.gguf" in error["what"] + error["why"]
