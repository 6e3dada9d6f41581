import pytest

from rag.page_names import listed_pages, missing_page, named_pages

LABELS = ["i", "ii", "iii", "1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("question", "pages"),
    [
        ("What is on page 2?", [range(4, 5)]),
        ("pages ii to 3", [range(1, 6)]),
        ("Read pages 1-4.", [range(3, 7)]),
        ("page 6", [range(5, 6)]),  # no label: the file's sixth page
        ("page 9", None),
        ("pages 3-1", [range(3, 6)]),
        ("Read pages 4 to ii", [range(1, 7)]),
        ("Read between pages 1 and 4", [range(3, 7)]),
        ("Between the pages 1 and 4, what is said?", [range(3, 7)]),
        ("between page 4 and 2", [range(4, 7)]),
        ("between page ii and page 2", [range(1, 5)]),
        ("between pages i and iii and on page 4", [range(0, 3), range(6, 7)]),
        ("the pages between 1 and 3", [range(3, 6)]),
        ("the pages from 1 to 3", [range(3, 6)]),
        ("from pages 1 to 3 and 4", [range(3, 7)]),
        ("from page 1 until 3", [range(3, 6)]),
        ("the rule from page 1 and 3", [range(3, 4), range(5, 6)]),
        ("the pages from 1", None),
        ("the difference between page 1 and page 3", [range(3, 4), range(5, 6)]),
        ("differences between pages 1 and 3", [range(3, 4), range(5, 6)]),
        ("between page 2 and I think more", [range(4, 5)]),
        ("between pages 2 and 9", None),
        ("see page 1, 2 and 4", [range(3, 5), range(6, 7)]),
        ("see page 1, 2, and 4", [range(3, 5), range(6, 7)]),
        ("See page 1, 3-4.", [range(3, 4), range(5, 7)]),
        ("What is on page 1, 2, 4?", [range(3, 5), range(6, 7)]),
        ("On page 1, 2 and 30 days are named. Why?", [range(3, 4)]),
        ("On page 1, 2 or 3 rules are named. Why?", [range(3, 4)]),
        ("On page 1, 2 and 3 percent are named. Why?", [range(3, 4)]),
        ("On page 1, 2.5 and 3 are named. Why?", [range(3, 4)]),
        ("How many pages are there?", None),
        ("Compare page 1 with page 3", [range(3, 4), range(5, 6)]),
        ("What do pages 1, 2 and 4 say?", [range(3, 5), range(6, 7)]),
        ("What is on pages ii-1 and 3?", [range(1, 4), range(5, 6)]),
        ("Go from page ii to page 2", [range(1, 5)]),
        ("What is on page 3 and 9?", None),
        ("On page 2, 30 days are named. Why?", [range(4, 5)]),
        ("On page 3, did I sign?", [range(5, 6)]),
        ("pages 3.5", None),
        ("What does page ii say?", [range(1, 2)]),
        ("What is on page i?", [range(0, 1)]),
        ("Read page I.", [range(0, 1)]),
        ("pages I to III", [range(0, 3)]),
        ("On which page I find the license?", None),
        ("on which page i find the license?", None),
        ("The page I mean names the license", None),
        ("Is this the page I'd need?", None),
        ("Which page mix do they use?", None),
    ],
)
def test_pages_of_a_question(question: str, pages: list[range] | None) -> None:
    assert named_pages(question, LABELS) == pages


@pytest.mark.parametrize(
    ("text", "pages"),
    [
        ("2", [range(4, 5)]),
        ("i-2", [range(0, 5)]),
        ("pages ii to 3", [range(1, 6)]),
        ("i, ii", [range(0, 2)]),
        ("3, 1-2", [range(3, 6)]),
        ("i-ii,3-4", [range(0, 2), range(5, 7)]),
        ("i and 3", [range(0, 1), range(5, 6)]),
        ("1,99", None),
        ("4-", None),
        ("3 2", None),
        ("3.2", None),
        ("3-1", [range(3, 6)]),
        ("1,", None),
        ("", None),
    ],
)
def test_no_part_of_a_list_is_lost(text: str, pages: list[range] | None) -> None:
    assert listed_pages(text, LABELS) == pages


def test_labels_with_letters_can_be_given() -> None:
    assert listed_pages("A-2 to B-1", ["A-1", "A-2", "B-1"]) == [range(1, 3)]


def test_a_number_after_the_page_is_not_a_page() -> None:
    assert missing_page("On page 2, 30 days are named. Why?", LABELS) is None
    assert missing_page("What do pages 2 and 30 say?", LABELS) == "30"
    assert missing_page("What stands between page 2 and 30?", LABELS) == "30"
    assert missing_page("On page 2, 3 and 30 days are named. Why?", LABELS) is None


@pytest.mark.parametrize(
    "question",
    [
        "What happened on the lost pages from 1990 to 1995?",
        "Who wrote the pages from 1990 to 1995?",
        "the diary's pages between 1914 and 1918",
        "Are there any pages from 1850 until 1900 left?",
    ],
)
def test_years_are_no_pages_where_there_are_not_so_many(question: str) -> None:
    assert (named_pages(question, LABELS), missing_page(question, LABELS)) == (None, None)
    many = [str(number) for number in range(1, 2001)]
    assert named_pages(question, many) is not None


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("What is said on pages 1990 to 1995?", "1990"),
        ("between pages 1990 and 1995", "1990"),
        ("the pages from page 1990 to 1995", "1990"),
        ("the pages from 300 to 320", "300"),
        ("the pages from 3 to 1995", "1995"),
    ],
)
def test_what_can_only_be_pages_is_missed(question: str, missing: str) -> None:
    assert missing_page(question, LABELS) == missing
