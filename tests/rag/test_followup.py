import pytest

from rag import Document, Library
from rag.followup import complete, leans

FIRST = "What is the deposit for guests of the reading room?"


@pytest.mark.parametrize(
    "question",
    ["And why?", "why", "How long does it take?", "And for members?", "What about children?", "Who pays it back?", "?"],
)
def test_follow_ups_carry_the_telling_words(question: str) -> None:
    searched = complete(question, FIRST)
    assert searched.startswith(question)
    assert {"deposit", "guests", "reading", "room"} <= set(searched.split())
    assert "the" not in searched.split()[len(question.split()) :]


@pytest.mark.parametrize(
    "question",
    [
        "How long is a deleted conversation kept?",
        "When does the desk open on Saturday?",
        "Where can readers buy a new key when theirs is lost on a trip abroad?",
    ],
)
def test_questions_that_stand_alone_stay(question: str) -> None:
    assert not leans(question)
    assert complete(question, FIRST) == question


def test_words_that_both_have_are_not_repeated() -> None:
    assert complete("And the guests?", FIRST).split().count("guests") == 0  # "guests?" is the question's own
    assert complete("And the guests?", None) == "And the guests?"


def test_the_search_finds_what_was_meant(library: Library, sample: Document) -> None:
    before = "When is the desk open on weekdays?"
    alone = library.search("And on Saturday?")
    asked = library.search(complete("And on Saturday?", before))
    assert asked[0].page_label == "2"
    assert "10:00 and 18:30" in " ".join(asked[0].text.split())
    assert asked[0].score >= alone[0].score
