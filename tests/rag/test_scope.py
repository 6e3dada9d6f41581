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


TEXTS = {
    4: "4\nChapter 1\nTools\nA hammer is",
    7: "and so on.\n1.2 Saws\nA saw is",
    10: "2 Wood\nWood is",
    15: "A\nTables of Weights\n",
}


def test_pages_of_chapters_and_sections() -> None:
    found = {chapter.title: (chapter.first, chapter.last) for chapter in chapters(OUTLINE, 20, TEXTS)}
    assert found == {
        "Preface": (1, 3),
        "1 Tools": (4, 9),
        "1.1 Hammers and Nails": (4, 7),  # 1.2 begins in the middle of the page
        "1.2 Saws": (7, 9),
        "2 Wood": (10, 14),
        "A Tables of Weights": (15, 19),
    }


@pytest.mark.parametrize(
    "text", [None, "the last words of tools. 2 Wood: Wood is", "2 Wood\nof tools.\nWood\nWood is", "Timber\nIt is"]
)
def test_a_chapter_has_the_page_in_whose_middle_the_next_begins(text: str | None) -> None:
    found = chapters(OUTLINE, 20, TEXTS | {10: text} if text else None)
    assert {chapter.title: chapter.last for chapter in found}["1 Tools"] == 10


@pytest.mark.parametrize("text", ["CHAPTER\nTWO\nWOOD\nIt is", "Chapter Twenty-Two\nWood\n", "KAPITEL ZWEI\nWood\nEs"])
def test_a_chapter_whose_number_is_spelled_begins_its_page(text: str) -> None:
    found = chapters(OUTLINE, 20, TEXTS | {10: text})
    assert {chapter.title: chapter.last for chapter in found}["1 Tools"] == 9


def test_chapters_that_share_a_page_have_it_both() -> None:
    first, second = chapters([Outline("One", 2, 0), Outline("Two", 2, 0)], 4)
    assert (list(first.pages), list(second.pages)) == ([2], [2, 3])


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("Summarise chapter 2", "2 Wood"),
        ("Summarise chapter two", "2 Wood"),
        ("Was steht in Kapitel eins?", "1 Tools"),
        ("résume le chapitre un", "1 Tools"),
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


@pytest.mark.parametrize(
    "odd", ["A tour of the program", "A Tour of the Program", "64-bit systems", "64 bits explained", "I Remember"]
)
def test_a_title_that_begins_like_a_number_is_counted_with_the_others(odd: str) -> None:
    outline = [Outline("Departure", 0, 0), Outline(odd, 3, 0), Outline("Return", 9, 0), Outline("Appendix A", 11, 0)]
    found = chapters(outline, 14)
    assert [chapter.number for chapter in found] == ["1", "2", "3", "A"]
    third = named_chapter("What is in chapter 3?", found)
    assert third is not None
    assert third.title == "Return"


@pytest.mark.parametrize(
    ("titles", "numbers"),
    [
        (["Preface", "1 Tools", "2-Wood", "64-bit systems"], ["", "1", "", ""]),
        (["3 Tools", "4 Wood", "A Weights"], ["3", "4", "A"]),
        (["A. Tools", "B. Wood", "Index"], ["A", "B", ""]),
        (["Chapter 7: Tools", "Notes"], ["7", ""]),
        (["Part One", "Part Two"], ["1", "2"]),
    ],
)
def test_numberings(titles: list[str], numbers: list[str]) -> None:
    assert [one.number for one in chapters([Outline(title, 1, 0) for title in titles], 9)] == numbers


def test_the_sample(library: Library, sample: Document) -> None:
    found = named_chapter("Summarise chapter 3", library.chapters(sample.id))
    assert found is not None
    assert found.number == "3"
    assert 5 in found.pages
