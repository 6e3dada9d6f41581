"""Search by meaning on the command line, with the real embedder."""

import shutil
from pathlib import Path

import pytest

from assets import sample_pdf

pytestmark = [pytest.mark.model, pytest.mark.slow]
NO_PIP = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/nowhere", "PIP_CONFIG_FILE": "/dev/null"}


def test_a_question_without_the_words_of_the_page(pagekeep, minilm_folder: Path) -> None:
    shutil.copytree(minilm_folder, pagekeep.home / "data" / "embedder" / "all-MiniLM-L6-v2")
    (document,) = pagekeep("index", "add", sample_pdf(), "--json").json["documents"]
    assert (document["state"], document["embedded"]) == ("ready", True)
    hits = pagekeep("index", "search", "How much money do I lose if I misplace my token?", "--top", 3, "--json").json[
        "hits"
    ]
    assert any("lost key costs 12" in hit["text"].replace("\n", " ") for hit in hits)
    assert any(hit["why"]["vectors"] != 0 for hit in hits)


def test_without_the_embedder_words_are_searched_and_that_is_told(pagekeep) -> None:
    done = pagekeep("index", "add", sample_pdf(), "--json", **NO_PIP)
    (document,), (notice,) = done.json["documents"], done.json["notices"]
    assert (document["state"], document["embedded"]) == ("words", False)
    assert "words only" in notice["what"]
    assert notice["next"]
    assert pagekeep("index", "search", "trash 30 days", "--json").json["hits"]
