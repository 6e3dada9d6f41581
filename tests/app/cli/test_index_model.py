"""`pagekeep index model`: another model that finds by meaning."""

from pathlib import Path

from assets import sample_pdf
from tests.engine.embedding.test_embedder import folder


def test_switching_and_what_it_refuses(pagekeep, tmp_path: Path) -> None:
    model = folder(tmp_path / "model")
    pagekeep("index", "add", sample_pdf(), "--words-only")
    assert pagekeep("index", "model", "--json").json == {
        "embedder": "default", "documents": 1, "embedded": 0, "switched": False
    }  # fmt: skip
    told = pagekeep("index", "model", model, "--json").json
    assert told == {"embedder": str(model), "documents": 1, "embedded": 1, "switched": True}
    hits = pagekeep("index", "search", "deposit", "--json").json["hits"]
    assert all(hit["why"]["vectors"] != 0 for hit in hits)
    assert "not there" in pagekeep("index", "model", tmp_path, "--json").error["what"]
    assert pagekeep("index", "model", "--json").json["embedder"] == str(model)
    assert pagekeep("index", "model", "default", "--json").json["embedder"] == "default"
    assert pagekeep("index", "search", "deposit", "--json").json["hits"][0]["why"]["vectors"] == 0
