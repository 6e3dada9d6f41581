import re

import pytest

from rag import Document, Library
from rag.context import fit, passages_text, reflowed, whole_document_text, with_neighbours


def count(text: str) -> int:
    return len(re.findall(r"\w+|[^\w\s]", text))


def test_passages_carry_ids_and_no_page_numbers(library: Library, sample: Document) -> None:
    hits = library.search("deleted conversation in the trash", top=2)
    text = passages_text(hits, first=4)
    assert text.startswith("[4] ")
    assert "\n\n[5] " in text
    assert "kept in the trash for 30 days" in text


def test_the_whole_document_in_reading_order(library: Library, sample: Document) -> None:
    text = library.whole(sample.id)
    passages = library.passages(sample.id)
    assert text == whole_document_text(sample, passages)
    ids = [int(number) for number in re.findall(r"^\[(\d+)\] ", text, re.MULTILINE)]
    assert ids == list(range(1, len(passages) + 1))
    order = [text.index(words) for words in ("keeps one computer", "deposit of 20 euros", "A lost key costs 12 euros")]
    assert order == sorted(order)


@pytest.mark.parametrize("budget", [0, 50, 180, 400, 1000, 5000])
def test_the_budget_is_kept_and_used(library: Library, sample: Document, budget: int) -> None:
    hits = library.search("which rules are there for documents, fees and readers of the desk", top=10)
    chosen = fit(hits, budget, count)
    assert count(passages_text(chosen)) <= budget
    for hit in hits:
        assert hit in chosen or count(passages_text([*chosen, hit])) > budget


def test_neighbours_come_after_the_hits(library: Library, sample: Document) -> None:
    hits = library.search("trash", top=1)
    more = with_neighbours(hits, library)
    assert more[0] == hits[0]
    assert [hit.passage.index - hits[0].passage.index for hit in more[1:]] == [1, -1]
    assert all(hit.why == {"neighbour": 1.0} for hit in more[1:])
    assert len(fit(more, 10_000, count)) == 3


def test_lines_are_joined_but_short_ones_stay() -> None:
    text = (
        "3.1 The trash\nA deleted conversation is kept in the\ntrash for 30 days and can be restored.\nDesk key\nToken"
    )
    assert reflowed(text) == (
        "3.1 The trash\nA deleted conversation is kept in the trash for 30 days and can be restored. Desk key\nToken"
    )
