"""The one name of a model: what its file is called, in words, however it is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.gguf import GgufFile
from engine.models.families import spec_from_gguf
from engine.models.naming import readable_name, title_of
from tests.engine.gguf_bytes import STRING
from tests.engine.tiny_model import saved


@pytest.mark.parametrize(
    ("file", "general", "shown"),
    [
        ("SmolLM2-135M-Instruct.Q4_1.gguf", "Smollm2 135M 8k Lc100K Mix1 Ep2", "SmolLM2-135M-Instruct Q4_1"),
        ("qwen2.5-0.5b-instruct-q4_k_m.gguf", "", "qwen2.5-0.5b-instruct q4_k_m"),
        ("big-Q8_0-00001-of-00003.gguf", "Big", "big Q8_0"),
        ("ggml-model-f16.gguf", "Orchard 1B", "Orchard 1B"),
        ("plain.gguf", "Other", "plain"),
    ],
)
def test_name_is_the_one_the_file_was_chosen_by(file: str, general: str, shown: str) -> None:
    assert readable_name(Path("/models") / file, general) == shown
    assert readable_name(Path("/models") / file, shown) == shown


def test_loaded_models_have_it(tmp_path: Path) -> None:
    file = saved(tmp_path, {"general.name": (STRING, "Checkpoint 7 of run 4")})
    file = file.rename(tmp_path / "Tiny-Chat.Q8_0.gguf")
    with GgufFile.open(file) as gguf:
        assert spec_from_gguf(gguf).name == "Tiny-Chat Q8_0"


@pytest.mark.parametrize(("value", "title"), [(" Orchard ", "Orchard"), (None, ""), (7, ""), ("  ", "")])
def test_title_is_a_text_or_none(value: object, title: str) -> None:
    assert title_of(value) == title
