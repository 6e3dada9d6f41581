import pytest

from rag import Document, Library, Outline
from rag.scope import chapters, named_chapter

OUTLINE = [
    Outline("Preface", 1, 0),
    Outline("1 Tools", 4, 0),
    Outline("1.1 Hammers and Nails", 4, 1),
    Outline("1.2 Saws", 7, 1),
    Outline("2 Wood", 10, 0),
    Outline("Nowhere", None, 1),
    Outline("A Tables of Weights", 15, 0),
]
PLAIN = [Outline("Departure", 0, 0), Outline("The Road", 3, 0), Outline("A short rest", 4, 1), Outline("Return", 9, 0)]


def test_pages_of_chapters_and_sections() -> None:
    found = {chapter.title: (chapter.first, chapter.last) for chapter in chapters(OUTLINE, 20)}
    assert found == {
        "Preface": (1, 3),
        "1 Tools": (4, 9),
        "1.1 Hammers and Nails": (4, 7),  # 1.2 may begin in the middle of the page
        "1.2 Saws": (7, 10),
        "2 Wood": (10, 14),
        "A Tables of Weights": (15, 19),
    }


def test_chapters_that_share_a_page_have_it_both() -> None:
    first, second = chapters([Outline("One", 2, 0), Outline("Two", 2, 0)], 4)
    assert (list(first.pages), list(second.pages)) == ([2], [2, 3])


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("Summarise chapter 2", "2 Wood"),
        ("what does Section 1.2 say?", "1.2 Saws"),
        ("what does section 1.2 say?", "1.2 Saws"),
        ("What is in appendix A?", "A Tables of Weights"),
        ("List the tools of the chapter hammers and nails", "1.1 Hammers and Nails"),
        ("Do hammers and nails rust?", None),
        ("chapter 7", None),
    ],
)
def test_chapters_by_number_and_title(question: str, title: str | None) -> None:
    found = named_chapter(question, chapters(OUTLINE, 20))
    assert (found.title if found else None) == title


def test_chapters_without_numbers_are_counted() -> None:
    found = named_chapter("Sum up chapter 3, please", chapters(PLAIN, 12))
    assert found is not None
    assert found.title == "Return"
    roman = named_chapter("chapter II", chapters(PLAIN, 12))
    assert roman is not None
    assert roman.title == "The Road"


def test_the_sample(library: Library, sample: Document) -> None:
    found = named_chapter("Summarise chapter 3", chapters(library.outline(sample.id), sample.pages))
    assert found is not None
    assert found.number == "3"
    assert 5 in found.pages
