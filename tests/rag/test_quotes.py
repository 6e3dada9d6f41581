"""Sentences that are quoted for a topic."""

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
    assert near("Which colour do the chairs have?", 1) == [(7, "Chairs are blue and stand in rows.")]


def test_a_rare_word_counts_more_than_one_that_all_sentences_have() -> None:
    (first,) = near("Are there keys in rows?", 1)
    assert first == (7, "Chairs are blue and stand in rows.")


def test_pages_that_say_little_of_what_is_asked_are_not_quoted() -> None:
    assert near("Which penguins of the Atlantic hunt cod near keys?") == []
    assert near("What is it?") == []
    assert nearest_sentences("keys", {}, 2) == []
