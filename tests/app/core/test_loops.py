import pytest

from app.core.loops import goes_in_circles


@pytest.mark.parametrize(
    "text",
    [
        "Well. " + "The desk is a computer. " * 3,
        "It costs 3.\n\nThe answer is: 12 euros.\n\nThe answer is: 12 euros.\n\nThe answer is: 12 euros.\n\n",
        "a" + "x, and again " * 3,
    ],
)
def test_repeated_sentences(text: str) -> None:
    assert goes_in_circles(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ha ha ha ha ha",
        "The desk is a computer. The desk is a computer. The shelf is a computer.",
        "The desk is a computer. " * 2,
        "| 1 | 2 |\n" * 9,
        "-" * 300,
        "Monday: closed.\nTuesday: closed.\nWednesday: open.\n",
    ],
)
def test_other_texts(text: str) -> None:
    assert not goes_in_circles(text)
