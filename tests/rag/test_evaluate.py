import json
from pathlib import Path

import pytest

from rag import Document, Library
from rag.evaluate import Question, evaluate, main, rank_of, read_questions

NAME = "pagekeep-sample.pdf"
QUESTIONS = [
    Question(NAME, "How long is a deleted conversation kept in the trash?", (5,), "exact"),
    Question(NAME, "What is the deposit?", (3, 7), "exact"),
    Question(NAME, "zebra quagga okapi", (2,), "hopeless"),
]


def test_recall_by_kind(library: Library, sample: Document) -> None:
    everything, exact, hopeless = evaluate(library, QUESTIONS)
    assert (everything.questions, exact.questions, hopeless.questions) == (3, 2, 1)
    assert everything.at_1 == pytest.approx(2 / 3)
    assert (exact.at_1, exact.mrr) == (1.0, 1.0)
    assert (hopeless.at_10, hopeless.mrr) == (0.0, 0.0)


def test_pages_are_counted_once(library: Library, sample: Document) -> None:
    hits = library.search("desk reader library", top=10)
    assert rank_of([hits[0], hits[0], hits[1]], sample.id, [hits[1].page_index]) == 2
    assert rank_of(hits, sample.id, [99]) is None


def test_command(library: Library, sample: Document, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(
        "".join(json.dumps({"pdf": q.pdf, "question": q.question, "pages": q.pages}) + "\n" for q in QUESTIONS)
    )
    assert [q.question for q in read_questions(path)] == [q.question for q in QUESTIONS]
    main([str(library.folder), str(path), "--alone"])
    assert json.loads(capsys.readouterr().out)["questions"] == 3
