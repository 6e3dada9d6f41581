"""Numbers of citations on the terminal."""

from dataclasses import replace

from app.cli.citations import citation_lines
from app.core.lookups import StoredRange
from app.core.records import StoredCitation

CITED = StoredCitation(19, 1, "a.pdf", (StoredRange(3, 10, 20),), ("iv",), "Kept", "matched", 0, 4)


def test_without_numbers_in_the_text_they_count_from_one() -> None:
    second = replace(CITED, marker=2, page_labels=("v",), answer_start=6, answer_count=5)
    assert list(citation_lines("Kept. Long.", [second, CITED])) == [
        "  → [1] a.pdf, page iv: “Kept”",
        "  → [2] a.pdf, page v: “Kept”",
        "    (→ matched by Pagekeep)",
    ]


def test_numbers_that_the_model_wrote_stay_those_of_the_text() -> None:
    invented = replace(CITED, marker=77, ranges=(), page_labels=(), verified="not_found", answer_start=11)
    lines = list(citation_lines("Kept [19]. Never [77].", [CITED, invented]))
    assert lines == [
        "  → [19] a.pdf, page iv: “Kept”",
        "  ✗ [77] not found in the documents",
        "    (→ matched by Pagekeep, ✗ not in the documents)",
    ]


def test_further_places_of_a_passage_do_not_look_like_another_with_its_number() -> None:
    copied = replace(CITED, marker=1, verified="exact")
    again = replace(CITED, marker=1, page_labels=("v",), answer_start=6, answer_count=5)
    assert list(citation_lines("Kept [1]. Long.", [copied, again])) == [
        "  ✓ [1] a.pdf, page iv: “Kept”",
        "  → and a.pdf, page v: “Kept”",
        "    (✓ word for word, → matched by Pagekeep)",
    ]


def test_the_same_words_are_told_once_below_a_number() -> None:
    again = replace(CITED, answer_start=6, answer_count=5)
    other = replace(again, verified="exact")
    assert list(citation_lines("Kept. Long.", [CITED, again, other])) == [
        "  → [1] a.pdf, page iv: “Kept”",
        "  ✓ and a.pdf, page iv: “Kept”",
        "    (✓ word for word, → matched by Pagekeep)",
    ]
