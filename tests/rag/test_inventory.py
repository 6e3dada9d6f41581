from dataclasses import replace

import pytest

from rag import Document, Library
from rag.inventory import Entry, answer, subject
from rag.scope import chapters

NAMES = ["pagekeep-sample.pdf", "gap-ref.pdf"]


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("How many files do you have?", "files"),
        ("Which documents are in this conversation?", "files"),
        ("List all PDFs", "files"),
        ("Which chapters does gap-ref have?", "chapters"),
        ("What are the chapters of this book?", "chapters"),
        ("How many pages does the document have?", "pages"),
        ("How long is pagekeep-sample.pdf?", "pages"),
        ("How many chapters mention the trash?", None),
        ("Which files does the installer delete?", None),
        ("How many files can be open at once?", None),
        ("Please show me", None),
        ("these documents", None),
        ("", None),
    ],
)
def test_what_is_asked_for(question: str, asked: str | None) -> None:
    assert subject(question, NAMES) == asked


def entries(library: Library, sample: Document) -> list[Entry]:
    other = replace(sample, name="second.pdf", pages=520, unreadable_pages=(3, 4))
    return [Entry(sample, tuple(chapters(library.outline(sample.id), sample.pages))), Entry(other)]


def test_files(library: Library, sample: Document) -> None:
    shelf = entries(library, sample)
    assert answer("How many documents are there?", shelf) == (
        "There are 2 documents:\n- pagekeep-sample.pdf: 10 pages\n- second.pdf: 520 pages, 2 of them could not be read"
    )
    assert answer("How many documents are there?", shelf[:1]).startswith("There is 1 document:")  # type: ignore
    assert answer("How many documents are there?", []) is None
    assert answer("What is the deposit?", shelf) is None


def test_chapters_and_pages_of_a_named_document(library: Library, sample: Document) -> None:
    shelf = entries(library, sample)
    listed = answer("Which chapters does pagekeep-sample have?", shelf)
    assert listed is not None
    assert "second" not in listed
    top = [entry.title for entry in library.outline(sample.id) if entry.level == 0]
    assert [line[2:] for line in listed.splitlines()[1:]] == top
    assert "has no outline" in str(answer("List the chapters of second.pdf", shelf))
    assert answer("How many pages does second.pdf have?", shelf) == (
        "second.pdf: 520 pages, 2 of them could not be read"
    )
