"""Models in words: errors that say first what is wrong."""

from __future__ import annotations

import pytest

from app.core.errors import UserError
from app.core.events import FetchProgress, JobId
from app.models.fetch import fetch_words
from app.models.words import plain_error


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
    words = fetch_words(FetchProgress(JobId("j"), "search by meaning", 1_000_000, 80_000_000))
    assert words == "Downloading the small model that searches by meaning: 1.00 MB of 80.0 MB"
