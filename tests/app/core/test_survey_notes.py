"""What becomes of the notes on a survey's parts: markers, empty notes, cut ends, entries of lists."""

import pytest

from app.core.survey_notes import (
    UNUSABLE,
    entries,
    kept_entries,
    listed,
    renumbered,
    says_nothing,
    tidied,
    without_labels,
    without_markers,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("So [1], [2; 3].", "So [11], [12][13]."),
        ("Made up [9].", "Made up ."),
        ("A [link](x) [1](y)", "A [link](x) [1](y)"),
    ],
)
def test_markers_of_a_part_become_those_of_the_survey(text: str, shown: str) -> None:
    assert renumbered(text, 11, 3) == shown
    assert without_markers("Thirty days [2] [3; 4].") == "Thirty days."
    assert without_markers("It is in the .deb [2] file") == "It is in the .deb  file"


@pytest.mark.parametrize(
    ("note", "nothing"),
    [
        ("Not here.", True),
        ("", True),
        ("None", True),
        ("The passages do not mention it.", True),
        ("No more than 30 days are allowed [2].", False),
        ("1. The answer is not here.\n2. The rule is not here.", True),
        ("The document is not here.", True),
        ("1. 2.\n3. 4.", True),
        ("42.", False),
        ("Names must not contain spaces.", False),
        ("The passages do not mention it. Keys cost 12 euros.", False),
    ],
)
def test_notes_that_say_nothing(note: str, nothing: bool) -> None:
    assert says_nothing(note) is nothing


@pytest.mark.parametrize(
    ("note", "cut", "shown"),
    [
        ("Keys cost 12 euros. The desk is op", True, "Keys cost 12 euros. …"),
        ("- Keys\n- Desks\n- Read", True, "- Keys\n- Desks …"),
        ("1. Keys 2. D", True, "1. Keys 2. D …"),
        ("鍵は十二ユーロ。窓口は", True, "鍵は十二ユーロ。 …"),
        ("- Keys [1]\n- keys [2]\n\n- Desks", False, "- Keys [1]\n\n- Desks"),
        (" All of it. ", False, "All of it."),
        ("1. Keys\n2. Desks\n3.", False, "1. Keys\n2. Desks"),
        ("Keys cost\n12", False, "Keys cost\n12"),
        ("The answer to this question is: The answer to the question is: Keys.", False, "Keys."),
        ("The main points of the passage are:\n\n1. Keys\n2. Desks", False, "1. Keys\n2. Desks"),
        ("Here are the fees:\n- Keys", False, "- Keys"),
        ("The fee of the desk: 12 euros", False, "The fee of the desk: 12 euros"),
    ],
)
def test_notes_are_tidied(note: str, cut: bool, shown: str) -> None:
    assert tidied(note, cut) == shown


def test_entries_are_the_items_of_a_list_or_all_of_a_note() -> None:
    assert entries("Here they are:\n- Keys [1]\n2. Desks\n* A chair …") == ["Keys [1]", "Desks", "A chair"]
    assert entries("Keys cost\n12 euros. …") == ["Keys cost 12 euros."]
    assert entries("Keys cost 12 euros. Desks are free.") == ["Keys cost 12 euros.", "Desks are free."]
    assert entries("The fees are:\n- Fees of the desk:") == []
    assert listed(["Keys [1]", "the keys [4]", "12", "12"]) == "- Keys [1]\n- 12\n- 12"
    assert listed(["5.6.23 Closes a bug", "5.6.25 Closes a bug"]) == "- 5.6.23 Closes a bug"
    assert listed(["12 keys", "30 keys", "3.5 euros", "4.5 euros"]).count("\n") == 3
    assert listed(["A list", "Another list"]) == "- A list\n- Another list"


def test_only_entries_that_are_true_are_kept() -> None:
    def prove(entry: str) -> str:
        return f"{entry} [4]" if "Keys" in entry else ""

    assert kept_entries("- Keys cost 12 euros [1]\n- Penguins\n- Keys cost 12 euros …", prove) == (
        "- Keys cost 12 euros [4]\n…"
    )
    assert kept_entries("- Penguins\n- Whales", prove) == UNUSABLE
    assert says_nothing(UNUSABLE)
    assert kept_entries("Not here.", prove) == "Not here."


@pytest.mark.parametrize(
    ("note", "kept"),
    [
        ("[14] Boxplot\nIt shows quartiles [14].\n[15] Boxxyerror …", "It shows quartiles [14].\n…"),
        ("[1] Time data\nDates are read. [1]", "Dates are read. [1]"),
        ("[3] Boxplot", "[3] Boxplot"),
        ("[3] It shows quartiles.", "[3] It shows quartiles."),
    ],
)
def test_lines_that_only_name_a_heading_say_nothing(note: str, kept: str) -> None:
    assert without_labels(note) == kept


def test_an_abbreviation_is_no_entry_of_its_own() -> None:
    note = "Phys. Rev. 94, 262 was read. Ann. Math. 7 too. No."
    assert entries(note) == ["Phys. Rev. 94, 262 was read.", "Ann. Math. 7 too.", "No."]
