"""What is said about documents: only what is true of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.cli.document_lines import state_words, taken_words
from app.cli.index import _beginning
from rag.types import Document, DocumentId

BOOK = Document(DocumentId(1), "book.pdf", Path("book.pdf"), "0" * 64, 3, 900, "words", added=0.0)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (BOOK, "book.pdf: 3 pages, searchable by words now"),
        (replace(BOOK, unreadable_pages=(2,)), "book.pdf: 3 pages, searchable by words now; 1 page without text"),
        (replace(BOOK, unreadable_pages=(0, 1, 2), characters=0), "book.pdf: 3 pages, none with text to search"),
    ],
)
def test_pages_without_text_are_not_called_searchable(document: Document, said: str) -> None:
    assert taken_words(document) == said


def test_an_import_that_nobody_runs_is_called_stopped() -> None:
    begun = replace(BOOK, state="importing")
    assert state_words(begun, being_read=True) == "900 characters, being imported"
    assert "stopped; add it again" in state_words(begun, being_read=False)
    assert state_words(BOOK, being_read=False) == "900 characters, searchable by words"


def test_a_hit_is_cut_between_words_and_says_so() -> None:
    assert _beginning("short") == "short"
    cut = _beginning("word " * 100)
    assert cut.endswith("word …")
    assert len(cut) <= 302
    assert _beginning("字" * 400) == "字" * 300 + " …"
