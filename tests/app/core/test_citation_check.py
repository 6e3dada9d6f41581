"""The check of citations finds what is wrong with them."""

from dataclasses import replace
from pathlib import Path

import pypdfium2
import pytest

from app.core.citation_check import Answered, PdfPages, check, figures
from app.core.lookups import StoredRange
from app.core.records import StoredCitation
from assets import sample_pdf


@pytest.fixture(scope="module")
def cited() -> StoredCitation:
    """Forty characters of the second page, as they are."""
    document = pypdfium2.PdfDocument(sample_pdf())
    text = document[1].get_textpage().get_text_range(10, 40)
    document.close()
    label = PdfPages().label(sample_pdf(), 1)
    place = (StoredRange(1, 10, 40),)
    return StoredCitation(1, 1, "a.pdf", place, (label,), text, "exact", 0, len(text))


def path_of(_: StoredCitation) -> Path:
    return sample_pdf()


def test_what_is_as_it_is_shown_passes(cited: StoredCitation) -> None:
    assert check(cited.quote, cited, sample_pdf(), PdfPages()) == []


def test_each_fault_is_found(cited: StoredCitation) -> None:
    pages, path = PdfPages(), sample_pdf()
    (label,) = check(cited.quote, replace(cited, page_labels=("xx",)), path, pages)
    assert label.startswith("label 'xx'")
    (quote,) = check(cited.quote, replace(cited, quote="Something else"), path, pages)
    assert "is not what is marked" in quote
    words = "Quite other words than there."
    (claim,) = check(words, replace(cited, answer_count=len(words)), path, pages)
    assert "not verbatim" in claim
    assert check(words, replace(cited, verified="altered"), path, pages) == []


def test_figures(cited: StoredCitation) -> None:
    gone = replace(cited, document_id=None, ranges=(), page_labels=(), quote="", verified="not_found")
    answers = [
        Answered("One?", cited.quote, (cited, replace(cited, verified="matched"))),
        Answered("Two?", "No.", (gone,)),
        Answered("Three?", "No.", ()),
        Answered("Four?", cited.quote, (replace(cited, page_labels=("xx",)),)),
    ]
    found = figures(answers, path_of)
    assert (found.answers, found.borne_out, found.uncited) == (4, 2, 1)
    assert (found.exact, found.altered, found.matched, found.missing) == (2, 0, 1, 1)
    (wrong,) = found.wrong
    assert wrong.startswith("Four?: label")


def test_what_the_application_quotes_is_counted_apart_and_checked(cited: StoredCitation) -> None:
    quoted = replace(cited, answer_count=0)
    found = figures([Answered("One?", "No.", (), (quoted,)), Answered("Two?", cited.quote, (cited,), ())], path_of)
    assert (found.borne_out, found.quoted, found.exact, found.wrong) == (1, 1, 1, ())
    (wrong,) = figures([Answered("One?", "No.", (), (replace(quoted, quote="Other words"),))], path_of).wrong
    assert "is not what is marked" in wrong
