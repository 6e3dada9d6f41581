from dataclasses import replace

import pytest

from rag import Document, Library
from rag.coverage import Coverage, coverage, not_found_note, runs, says_not_found


def test_pages_of_the_passages(library: Library, sample: Document) -> None:
    passages = [p for p in library.passages(sample.id) if p.ranges[0].page_index in (2, 5)]
    other = replace(sample, id=sample.id + 1, name="other.pdf", unreadable_pages=(0,))  # type: ignore[arg-type]
    first, second = coverage(passages, [sample, other])
    assert (first.document, first.pages) == (sample.name, 10)
    assert set(first.read) == {part.page_index for p in passages for part in p.ranges}
    assert {2, 5} <= set(first.read)
    assert set(first.unread) == set(range(10)) - set(first.read)
    assert second.read == ()
    assert second.unread == tuple(range(1, 10))
    (everything,) = coverage(library.passages(sample.id), [sample])
    assert set(range(10)) - set(everything.read) == {
        page.page_index for page in library.report(sample.id).pages if page.characters == 0
    } | set(everything.unread)


def test_notes() -> None:
    some = Coverage(1, "a.pdf", 520, tuple(range(34)))  # type: ignore[arg-type]
    assert not_found_note([some]) == "Not found in the 34 of 520 pages read."
    scanned = replace(some, unreadable=(100, 101))
    assert not_found_note([scanned]).endswith("2 pages are scans or have no readable text.")
    all_read = Coverage(1, "a.pdf", 3, (0, 2), (1,))  # type: ignore[arg-type]
    assert all_read.whole
    assert not_found_note([all_read]) == "1 page is a scan or has no readable text."
    assert not_found_note([Coverage(1, "a.pdf", 2, (0, 1))]) == ""  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "missing"),
    [
        ("The passages do not mention a deposit.", True),
        ("I could not find this in the document.", True),
        ("There is no information about fees.", True),
        ("The document doesn't specify the price.", True),
        ("The deposit is 20 euros [1].", False),
        ("Not before nine.", False),
        ("It opens at nine. " * 30 + "The closing time is not given.", False),
    ],
)
def test_answers_that_found_nothing(answer: str, missing: bool) -> None:
    assert says_not_found(answer) == missing


def test_runs() -> None:
    assert runs([5, 3, 4, 9, 9, 11]) == [range(3, 6), range(9, 10), range(11, 12)]
    assert runs([]) == []
