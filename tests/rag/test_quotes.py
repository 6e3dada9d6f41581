"""Sentences that are quoted for a topic."""

import pytest

from rag.quotes import nearest_sentences, telling_sentences
from rag.types import DocumentId, Passage

TEXTS = {
    4: "Keys\nThe desk keeps every lost key\nfor thirty days. Lost keys! plot with keys",
    7: "Chairs are blue and stand in rows. Whoever loses a key (or finds one) pays for a lost key at the desk. He said "
    '"lost keys are never found again" to us. The desk keeps every lost key for thirty days.',
}
PASSAGES = {
    number: Passage(number, DocumentId(1), number, text, "Rules > The desk", ()) for number, text in TEXTS.items()
}


def test_whole_sentences_with_most_words_come_first_and_each_once() -> None:
    assert telling_sentences("lost keys", PASSAGES, 9) == [
        (4, "The desk keeps every lost key for thirty days."),
        (7, "Whoever loses a key (or finds one) pays for a lost key at the desk."),
    ]
    assert telling_sentences("lost keys", PASSAGES, 1) == [(4, "The desk keeps every lost key for thirty days.")]


def test_nothing_is_quoted_for_what_no_sentence_names() -> None:
    assert telling_sentences("penguins of the Atlantic", PASSAGES, 2) == []
    assert telling_sentences("the of", PASSAGES, 2) == []


def test_a_heading_about_it_decides_between_equals() -> None:
    headed = {3: Passage(3, DocumentId(1), 3, "A key opens the door of the desk.", "Rules > Keys", ())}
    (first, *_) = telling_sentences("keys", {**PASSAGES, **headed}, 3)
    assert first == (3, "A key opens the door of the desk.")


def near(question: str, most: int = 2) -> list[tuple[int, str]]:
    found = nearest_sentences(question, PASSAGES, most)
    return [(number, " ".join(TEXTS[number][slice(*span)].split())) for number, span in found]


def test_the_sentences_with_most_of_a_question_come_first() -> None:
    assert near("How long does the desk keep a lost key?") == [
        (4, "The desk keeps every lost key for thirty days."),
        (7, "Whoever loses a key (or finds one) pays for a lost key at the desk."),
    ]
    assert near("Which colour do the chairs in rows have?", 1) == [(7, "Chairs are blue and stand in rows.")]


def test_a_rare_word_counts_more_than_one_that_all_sentences_have() -> None:
    told = {1: "The blue key opens the desk. The heavy key opens the gate.", 2: "The old key opens the gate at night."}
    passages = {n: Passage(n, DocumentId(1), n, text, "", ()) for n, text in told.items()}
    ((number, span),) = nearest_sentences("Which blue or heavy key opens the gate or the desk?", passages, 1)
    assert (number, told[number][slice(*span)]) == (1, "The blue key opens the desk.")


def test_pages_that_say_little_of_what_is_asked_are_not_quoted() -> None:
    assert near("Which penguins of the Atlantic hunt cod near keys?") == []
    assert near("What is it?") == []
    assert nearest_sentences("keys", {}, 2) == []


@pytest.mark.parametrize(
    ("question", "text", "heading"),
    [
        ("Are you sure?", "Make sure that the power cord is out of the wall.", ""),
        ("Please answer in German.", "Hotlines answer German customers on working days.", ""),
        ("How long is the notice period?", "Whoever rents it pays in the first week.", "Notice period"),
        ("Which survival did the trial report?", "The trial [12] reported survival of 40 percent.", ""),
        ("Which survival did the trial report?", "Trial reported survival (40 percent", ""),
        ("Which survival did the trial report?", "Survival Trial Reported 40 12 31", ""),
    ],
)
def test_what_has_a_single_word_of_it_or_is_cut_is_not_quoted(question: str, text: str, heading: str) -> None:
    assert nearest_sentences(question, {1: Passage(1, DocumentId(1), 0, text, heading, ())}, 2) == []


def test_a_heading_counts_for_a_sentence_with_a_word_of_its_own() -> None:
    text = "Whoever rents it has a period of six weeks."
    passages = {1: Passage(1, DocumentId(1), 0, text, "Notice", ())}
    assert nearest_sentences("How long is the notice period?", passages, 2) == [(1, (0, len(text)))]
