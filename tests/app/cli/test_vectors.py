"""Search by meaning on the command line, with the real embedder."""

import io
import shutil
from argparse import Namespace
from pathlib import Path

import pytest

from app.cli import vectors
from app.cli.console import Console
from app.cli.session import open_session
from app.core.paths import Paths
from app.core.settings import Settings
from assets import sample_pdf
from tests.engine.embedding.test_embedder import folder
from tests.rag.pdf_files import write_pdf

NO_PIP = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/nowhere", "PIP_CONFIG_FILE": "/dev/null"}


@pytest.mark.model
@pytest.mark.slow
def test_a_question_without_the_words_of_the_page(pagekeep, minilm_folder: Path) -> None:
    shutil.copytree(minilm_folder, pagekeep.home / "data" / "embedder" / "all-MiniLM-L6-v2")
    (document,) = pagekeep("index", "add", sample_pdf(), "--json").json["documents"]
    assert (document["state"], document["embedded"]) == ("ready", True)
    hits = pagekeep("index", "search", "How much money do I lose if I misplace my token?", "--top", 3, "--json").json[
        "hits"
    ]
    assert any("lost key costs 12" in hit["text"].replace("\n", " ") for hit in hits)
    assert any(hit["why"]["vectors"] != 0 for hit in hits)


@pytest.mark.slow
def test_without_the_embedder_words_are_searched_and_that_is_told(pagekeep) -> None:
    done = pagekeep("index", "add", sample_pdf(), "--json", **NO_PIP)
    (document,), (notice,) = done.json["documents"], done.json["notices"]
    assert (document["state"], document["embedded"]) == ("words", False)
    assert "words only" in notice["what"]
    assert notice["next"]
    assert pagekeep("index", "search", "trash 30 days", "--json").json["hits"]


def test_after_an_answer_its_documents_get_their_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not where their model is not there; only for so long; what is left over goes on after the next answer."""
    monkeypatch.setenv("PAGEKEEP_HOME", str(tmp_path / "home"))
    Paths.default().create()
    console = Console(as_json=False, out=io.StringIO(), err=io.StringIO())
    with open_session(console, Settings()) as session:
        document = session.import_file(sample_pdf()).id
        vectors.after_answer(session, [document], told=False)
        assert console.err.getvalue() == ""  # type: ignore[attr-defined]
        vectors.after_answer(session, [document], told=True)
        assert "found by words only. To find by meaning too: pagekeep index vectors" in console.err.getvalue()  # type: ignore[attr-defined]
    with open_session(console, Settings(embedder=folder(tmp_path / "model"))) as session:
        monkeypatch.setattr(vectors, "AFTER_ANSWER_S", -1.0)
        vectors.after_answer(session, [document], told=True)
        assert "pagekeep-sample.pdf is not yet found by meaning" in console.err.getvalue()  # type: ignore[attr-defined]
        assert not session.workspace.library.document(document).embedded
        monkeypatch.setattr(vectors, "AFTER_ANSWER_S", 60.0)
        vectors.after_answer(session, [document], told=True)
        assert session.workspace.library.document(document).embedded
        session.import_file(write_pdf(tmp_path / "other.pdf", [["Another document about lanterns."]]))
        vectors.vectors(Namespace(), console, session)
        assert console.out.getvalue().endswith("Found by meaning: 2 of 2 documents.\n")  # type: ignore[attr-defined]
