import pytest

from rag.question_language import question_language


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("How much?", "english"),
        ("What is the deposit?", "english"),
        ("Who wrote it?", "english"),
        ("When does the desk open in May?", "english"),
        ("Wie hoch ist die Kaution?", "german"),
        ("Wer hat das geschrieben?", "german"),
        ("Quel est le montant de la caution ?", "french"),
        ("Combien coûte la carte ?", "french"),
        ("¿Cuál es el depósito?", "spanish"),
        ("¿Quién lo escribió?", "spanish"),
        ("Wat is de borg?", "dutch"),
        ("Qual è il deposito?", "italian"),
        ("Jaka jest kaucja?", ""),
        ("保証金はいくらですか", ""),
        ("deposit", ""),
        ("", ""),
    ],
)
def test_a_few_common_words_tell_the_language(question: str, language: str) -> None:
    assert question_language(question) == language
