import pytest

from rag.sentences import count_words, sentences


def cut(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


def test_full_stops_end_sentences_but_abbreviations_do_not() -> None:
    text = "See Fig. 3, e.g. the left one. Dr. Weiss agrees. It is 3.5 m high! Is it? Yes."
    assert cut(text) == ["See Fig. 3, e.g. the left one.", "Dr. Weiss agrees.", "It is 3.5 m high!", "Is it?", "Yes."]


def test_a_single_letter_at_the_end_is_no_abbreviation_unless_it_is_a_capital() -> None:
    assert cut("Both x and y. As it says.") == ["Both x and y.", "As it says."]
    assert cut("By J. Smith. He wrote.") == ["By J. Smith.", "He wrote."]


def test_lines_of_a_paragraph_stay_together_and_short_lines_end_it() -> None:
    text = "3.1 The trash\nA deleted conversation is kept in the trash for\n30 days and can be restored."
    text += "\nDesk key\nThe token."
    assert cut(text) == [
        "3.1 The trash",
        "A deleted conversation is kept in the trash for\n30 days and can be restored.",
        "Desk key",
        "The token.",
    ]


def test_chinese_stops() -> None:
    assert cut("这是第一句。这是第二句！") == ["这是第一句。", "这是第二句！"]
    assert count_words("第一句话") == 2


@pytest.mark.parametrize("words", [79, 81, 161, 500])
def test_no_sentence_is_longer_than_eighty_words(words: int) -> None:
    text = " ".join(["word"] * words)
    parts = cut(text)
    assert max(count_words(part) for part in parts) <= 80
    assert " ".join(parts) == text


def test_nothing_but_white_space_is_lost() -> None:
    text = 'One. Two (see p. 4). three\n\nFour… "Five!" Six'
    assert "".join("".join(cut(text)).split()) == "".join(text.split())
