"""Numbers of an answer against those of texts that write them in other ways."""

import pytest

from rag.figures import KnownNumbers, numbers_told


def invented(said: str, text: str) -> list[str]:
    answer = f"It is {said} here."
    return [answer[slice(*span)] for span in KnownNumbers([text]).invented(answer, 0, len(answer))]


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("10,000", "10.000"),
        ("10 000", "10,000"),
        ("10000", "10 000"),
        ("10000", "10\u202f000"),
        ("10\u00a0000", "10'000"),
        ("100,000", "1,00,000"),
        ("12 300", "12, 300"),
        ("3.5", "3,5"),
        ("1234.5", "1.234,5"),
        ("1,234.50", "1234.5"),
        ("0.50", "0.5"),
        ("0.5", "0.50"),
        ("3.14", "3.14159"),
        ("2:30", "14:30"),
        ("14:30", "2:30 pm"),
        ("14:00", "2 pm"),
        ("17", "5 p.m."),
        ("14:30", "14h30"),
        ("14:30", "14.30 Uhr"),
        ("24", "twenty-four"),
        ("24", "Twenty four"),
        ("21", "the twenty-first"),
        ("15", "Fifteen"),
        ("250", "two hundred and fifty"),
        ("5,000", "five thousand"),
        ("24", "vierundzwanzig"),
        ("97", "quatre-vingt-dix-sept"),
        ("34", "treinta y cuatro"),
        ("1.5 million", "1,500,000"),
        ("3,000,000", "3 million"),
        ("5.00 euros", "5 euros"),
        ("€5.00", "€5"),
        ("2024-04-07", "7 April 2024"),
        ("07/04/2024", "7 avril 2024"),
        ("7.4.2024", "2024-04-07"),
        ("12.10.2021", "12 October 2021"),
    ],
)
def test_the_same_number_written_otherwise_is_not_invented(said: str, text: str) -> None:
    assert invented(said, f"There is {text}.") == []


@pytest.mark.parametrize(
    ("said", "text", "told"),
    [
        ("20,000", "20", "20,000"),
        ("20", "20,000", "20"),
        ("500", "20,500", "500"),
        ("0.50", "0.57", "0.50"),
        ("3.5", "35", "3.5"),
        ("2.0", "two of 20", "2.0"),
        ("10:15", "10:30", "10:15"),
        ("2.30", "14.30", "2.30"),
        ("12 300", "12 400", "300"),
        ("10 000", "20 500", "10 000"),
        ("24", "twenty", "24"),
        ("7.4.2024", "7 May 2024", "7.4.2024"),
        ("1.6 million", "1,500", "1.6"),
        ("2.0", "2 of 20", "2.0"),
        ("2.0 euros", "section 2 of 12 euros", "2.0"),
        ("11", "once more", "11"),
        ("9" * 5000, "8" * 5000, "9" * 5000),
    ],
)
def test_another_number_is(said: str, text: str, told: str) -> None:
    assert invented(said, f"There is {text}.") == [told]


def test_number_words_bear_digits_out() -> None:
    assert numbers_told("two or twenty-four of 3") == {"2", "24", "3"}
