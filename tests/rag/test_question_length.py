import pytest

from rag.question_length import says_length


@pytest.mark.parametrize(
    "question",
    [
        "Explain in detail how the index is made.",
        "List all fields of control files.",
        "Summarise this document.",
        "What are the steps to install it?",
        "Describe it in three sentences.",
        "Give me some examples of a signal handler.",
        "Erkläre die Regeln für Pakete.",
        "Explique le fonctionnement du cache.",
        "Explica el formato.",
    ],
)
def test_a_question_may_say_how_long_its_answer_is_to_be(question: str) -> None:
    assert says_length(question)


@pytest.mark.parametrize(
    "question",
    [
        "What is the default line width of a pen?",
        "As what is lists:flatmap(Fun, List1) defined?",
        "How do I bring a slide back later in the talk?",
        "Wann darf ein Paket entfernt werden?",
        "",
    ],
)
def test_most_questions_do_not(question: str) -> None:
    assert not says_length(question)
