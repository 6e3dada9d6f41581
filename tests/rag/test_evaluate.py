import json
from pathlib import Path

import pytest

from rag import Document, Library
from rag.errors import DocumentError
from rag.evaluate import Question, evaluate, main, rank_of, read_questions, wilson

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
    assert everything.at_1_interval == wilson(2, 3)


def test_intervals() -> None:
    # Newcombe 1998, table I, method 3: 81 of 263, 15 of 148, 0 of 20.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)


def test_the_second_set_is_half_paraphrases() -> None:
    questions = read_questions(Path(__file__).parents[1] / "data" / "questions.jsonl")
    assert len(questions) >= 60
    assert 2 * sum(q.kind == "paraphrase" for q in questions) >= len(questions)


ALSO_A_LIST = '{"pdf": "a", "question": "b", "pages": [1], "also": [2]}'


@pytest.mark.parametrize("content", ["", "not json", '{"pdf": "a.pdf"}', "[1]", ALSO_A_LIST])
def test_a_file_that_is_no_set(content: str, tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(content)
    with pytest.raises(DocumentError) as error:
        read_questions(path)
    assert error.value.kind == "set"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("not json", "Line 3: it is not JSON."),
        ("[1]", "Line 3: it is not an object in braces."),
        ('{"pdf": "a.pdf", "pages": [1]}', "Line 3: question is missing or no text."),
        ('{"pdf": "a.pdf", "question": "b", "pages": "9"}', "Line 3: pages is not a list"),
        ('{"pdf": "a.pdf", "question": "b", "pages": [-1]}', "Line 3: pages is not a list"),
        ('{"pdf": "a.pdf", "question": "b", "pages": [0.5]}', "Line 3: pages is not a list"),
        ('{"pdf": "a.pdf", "question": "b", "pages": [0], "also": {"c.pdf": "1"}}', "Line 3: also of c.pdf is not"),
    ],
)
def test_a_wrong_line_is_told_with_its_number(line: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text('{"pdf": "a.pdf", "question": "b", "pages": [1]}\n\n' + line + "\n")
    with pytest.raises(DocumentError) as told:
        read_questions(path)
    assert told.value.why.startswith(why)


def test_a_page_that_a_document_does_not_have(library: Library, sample: Document, tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(json.dumps({"pdf": NAME, "question": "b", "pages": [0, 999]}))
    with pytest.raises(DocumentError, match="Line 1 of the set") as told:
        evaluate(library, read_questions(path))
    assert "0 to 9" in told.value.why


def test_pages_are_counted_once(library: Library, sample: Document) -> None:
    hits = library.search("desk reader library", top=10)
    assert rank_of([hits[0], hits[0], hits[1]], {(sample.id, hits[1].page_index)}) == 2
    assert rank_of(hits, {(sample.id, 99)}) is None


def test_pages_of_other_documents_that_answer_too(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text('{"pdf": "a.pdf", "question": "b", "pages": [1], "also": {"c.pdf": [4, 5]}}')
    assert read_questions(path)[0].answers == {"a.pdf": (1,), "c.pdf": (4, 5)}


def test_command(library: Library, sample: Document, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(
        "".join(json.dumps({"pdf": q.pdf, "question": q.question, "pages": q.pages}) + "\n" for q in QUESTIONS)
    )
    assert [q.question for q in read_questions(path)] == [q.question for q in QUESTIONS]
    main([str(library.folder), str(path), "--alone"])
    assert json.loads(capsys.readouterr().out)["questions"] == 3
