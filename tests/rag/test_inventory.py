from dataclasses import replace

import pytest

from rag import Document, Library
from rag.inventory import Entry, answer, no_such_page, subjects

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
        ("What does this document contain?", None),
        ("What is in this document?", None),
        ("What is in these documents?", None),
        ("What is this file?", None),
        ("What does this chapter contain?", None),
        ("What is in this section?", None),
        ("What are the contents of this file?", None),
        ("List the contents of this chapter", None),
        ("Which document is it in?", None),
        ("Which page is it on?", None),
        ("How long is it?", None),
        ("Name all chapters", "chapters"),
        ("What files are there?", "files"),
        ("What are these files?", "files"),
        ("What is the name of this file?", "files"),
        ("Which document is attached?", "files"),
        ("Please show me the table of contents", "chapters"),
        ("What is the outline of gap-ref?", "chapters"),
        ("What sections are in this document?", "chapters"),
        ("What is the number of pages?", "pages"),
        ("List the titles and authors of all documents", "files"),
        ("List all files with their titles", "files"),
        ("Who is the author of this document?", None),
        ("What is the title of gap-ref?", None),
        ("List all authors", None),
        ("Please show me", None),
        ("these documents", None),
        ("", None),
    ],
)
def test_what_is_asked_for(question: str, asked: str | None) -> None:
    assert subjects(question, NAMES) == ((asked,) if asked else ())


def entries(library: Library, sample: Document) -> list[Entry]:
    sample = replace(sample, metadata={})
    other = replace(sample, name="second.pdf", pages=520, unreadable_pages=(3, 4))
    return [Entry(sample, tuple(library.chapters(sample.id))), Entry(other)]


def test_two_things_asked_at_once(library: Library, sample: Document) -> None:
    asked = "How many files are there and which chapters?"
    assert subjects(asked, NAMES) == subjects("How many files and chapters are there?", NAMES) == ("files", "chapters")
    told = str(answer(asked, entries(library, sample)))
    assert told.startswith("There are 2 documents:")
    assert "second.pdf has no outline" in told


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


BOOK = ("book.pdf", ["i", "ii", *map(str, range(1, 249))])
LEAFLET = ("leaflet.pdf", ["1"])


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("What is on page 999?", "999"),
        ("Compare page 3 and page 999.", "999"),
        ("Summarise pages 240 to 260", "260"),
        ("What is on page 0?", "0"),
        ("What is on page 248?", None),
        ("What is on page 250?", None),  # the file has so many
        ("What does page ii say?", None),
        ("How many pages mention 999 euros?", None),
        ("Which page mix do they use?", None),
    ],
)
def test_a_page_that_is_not_there(question: str, missing: str | None) -> None:
    told = no_such_page(question, [BOOK])
    expected = f"There is no page {missing}.\nbook.pdf has 250 pages, i to 248."
    assert told == (expected if missing else None)


def test_a_page_that_one_of_several_has_is_there() -> None:
    assert no_such_page("What is on page 7?", [LEAFLET, BOOK]) is None
    assert no_such_page("What is on page 7?", [LEAFLET, ("new.pdf", [])]) is None, "not read yet"
    assert no_such_page("What is on page 7?", []) is None
    told = no_such_page("What is on page 999?", [LEAFLET, BOOK])
    assert told == "There is no page 999.\n- leaflet.pdf has 1 page.\n- book.pdf has 250 pages, i to 248."


def test_what_files_say_of_themselves_stands_in_the_list(library: Library, sample: Document) -> None:
    said = {"title": "A Manual", "author": "A. Writer", "created": "2024-04-07"}
    told = answer("List the titles and authors of my documents", [Entry(replace(sample, metadata=said))])
    line = "- pagekeep-sample.pdf: 10 pages; title “A Manual”, author “A. Writer”, created “2024-04-07”"
    assert told is not None
    assert told.splitlines() == ["There is 1 document:", line]
