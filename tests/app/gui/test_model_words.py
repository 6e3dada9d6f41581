"""Models in words: names readers know, errors that say first what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.core.errors import UserError
from app.core.events import FetchProgress, JobId
from app.models.fetch import fetch_words
from app.models.words import model_name, plain_error


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
    assert model_name(Path("/models") / file, general) == shown


@pytest.mark.parametrize(
    ("why", "plain"),
    [
        ("tensor 'a', offset 17: shape [5] in Q8_0 needs 30 bytes, the whole file has 5.", "damaged or incomplete"),
        ("Architecture 'zz' is not supported; supported: llama.", "does not know"),
        ("It is not a GGUF file but a file that starts with 6e 6f 70 65.", "not a model file"),
    ],
)
def test_plain_words_come_before_the_detail(why: str, plain: str) -> None:
    told = plain_error(UserError("The model file a.gguf cannot be used.", why, "Do something."))
    assert plain in told.why
    assert told.why.endswith("Do something.")
    assert told.next == f"Details: {why}"


def test_plain_reasons_stay() -> None:
    error = UserError("The model file a cannot be used.", "It is a folder, expected a GGUF file.", "Choose.")
    assert plain_error(error) == error


def test_download_says_what_it_is_for() -> None:
    words = fetch_words(FetchProgress(JobId("j"), "search by meaning", 1 << 20, 80 << 20))
    assert words == "Downloading the small model that searches by meaning: 1.00 MB of 80.0 MB"
