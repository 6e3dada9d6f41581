"""`pagekeep index evaluate`, as a process of its own."""

import json
from pathlib import Path

import pytest

from assets import sample_pdf
from tests.app.cli.conftest import CommandLine


def test_recall_over_a_set(pagekeep: CommandLine, tmp_path: Path) -> None:
    pagekeep("index", "add", sample_pdf(), "--words-only", "--json")
    asked = {"pdf": "pagekeep-sample.pdf", "question": "How long is a conversation kept in the trash?", "pages": [5]}
    path = tmp_path / "set.jsonl"
    path.write_text(json.dumps(asked | {"kind": "exact"}) + "\n" + json.dumps(asked | {"pages": [0]}) + "\n")
    found = pagekeep("index", "evaluate", path, "--json").json
    assert found["vectors"] is False
    everything, exact = found["recall"]
    assert (everything["questions"], everything["at_1"]) == (2, 0.5)
    assert everything["at_1_interval"] == pytest.approx([0.095, 0.905], abs=0.001)
    assert (exact["kind"], exact["at_1"], exact["mrr"]) == ("exact", 1.0, 1.0)
    assert "0.500" in pagekeep("index", "evaluate", path).out


def test_what_is_wrong_with_a_set(pagekeep: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text('{"pdf": "gone.pdf", "question": "x", "pages": [0]}')
    assert "not in the library" in pagekeep("index", "evaluate", path, "--json").error["what"]
    assert "no set" in pagekeep("index", "evaluate", tmp_path / "no.jsonl", "--json").error["what"]


@pytest.mark.model
@pytest.mark.slow
def test_citations_of_answers_are_checked(pagekeep: CommandLine, tmp_path: Path, starter_model: Path) -> None:
    pagekeep("index", "add", sample_pdf(), "--words-only", "--json")
    asked = {"pdf": "pagekeep-sample.pdf", "question": "How long is a conversation kept in the trash?", "pages": [5]}
    path = tmp_path / "set.jsonl"
    path.write_text(json.dumps(asked) + "\n")
    found = pagekeep("index", "evaluate", path, "--answers", "--model", starter_model, "--json").json
    (line,) = found["lines"]
    assert found["answers"] == 1
    assert found["exact"] + found["altered"] + found["matched"] + found["missing"] == len(line["citations"])
    assert found["wrong"] == []
    assert pagekeep("chat", "ls", "--json").json["conversations"] == []
