"""Copies of a sentence: word for word, in part, and with words changed."""

import pytest

from rag.compared import stem
from rag.evidence import Evidence, Evidences
from rag.figures import other_unit

SOURCE = (
    "Every Debian package must have a Description control field which contains a synopsis and extended description of "
    "the package. A package does not replace a lawyer, a physician or a librarian. A deleted conversation is kept in "
    "the trash for 30 days and can be restored from there with all its answers and citations."
)
RULE = SOURCE[: SOURCE.index(".")]
TRASH = "A deleted conversation is kept in the trash for 30 days"


def copied(answer: str) -> Evidence:
    found = Evidences({1: SOURCE}).copied(answer, [1])
    assert found is not None
    return found


@pytest.mark.parametrize(
    "answer",
    [
        RULE.replace("Every", "No"),
        RULE.replace("Every", "Not every"),
        f"Nowadays {RULE}",
        RULE.replace("the package", "the kernel"),
        f"{RULE} only in contrib.",
        f"{RULE}, but only in contrib.",
        RULE.replace("must have", "must not have"),
        RULE.replace("must have", "may have"),
        "No Debian package must have a Description control field.",
        "Some Debian package must have a Description control field.",
        "A Debian package may have a Description control field which contains a synopsis.",
        "It may well be said of every package to replace a lawyer, a physician or a librarian.",
        "According to the rules it is kept in the trash for 30 days and can be found nowhere else.",
        f"It is not true that {TRASH} and can be restored from there.",
        f"The manual does not say that {TRASH}.",
        f"{TRASH} unless it was emptied.",
    ],
)
def test_words_changed_at_any_place_make_a_copy_altered(answer: str) -> None:
    found = copied(answer)
    assert found.verdict == "altered"
    assert SOURCE[slice(*found.source)].endswith("."), "the difference shows in the whole sentence"


@pytest.mark.parametrize(
    "answer",
    [
        RULE,
        f"{TRASH}.",
        f"The policy says that {RULE[0].lower()}{RULE[1:]}.",
        f"According to the policy, {RULE[0].lower()}{RULE[1:]}.",
        f"In short, {RULE}.",
        f"For example, {RULE[0].lower()}{RULE[1:]}.",
        "It is kept in the trash for 30 days and can be",
        "Whoever loses one may look: it is kept in the trash for 30 days and can be opened by its reader.",
    ],
)
def test_an_honest_copy_is_exact_and_only_what_is_copied(answer: str) -> None:
    found = copied(answer)
    assert found.verdict == "exact"
    assert answer[slice(*found.claim)] == SOURCE[slice(*found.source)]


WIDTHS = (
    "The default line width is 0.5 bp; this value may be changed. The variants Sin and Cos of the standard functions "
    "use degrees rather than radians. It retains 1,000 previous lines in two files of the home directory."
)


@pytest.mark.parametrize(
    ("claim", "agrees"),
    [
        ("The default line width of a pen is 0.5 bp.", True),
        ("The default line width of a pen is 0.5 cm.", False),
        ("The variants Sin and Cos of the functions use degrees.", True),
        ("The variants Sin and Cos of the functions use radians.", False),
        ("The variants Sin and Cos of the standard functions do not use degrees.", False),
        ("It retains 1000 previous lines in 2 files of the directory.", True),
        ("It retains 1000 previous lines in 3 files of the directory.", False),
        ("The default width of the window is changed by the frame and by its value.", False),
        ("1,000 0.5", False),
    ],
)
def test_what_contradicts_a_sentence_does_not_agree_with_it(claim: str, agrees: bool) -> None:
    assert (Evidences({1: WIDTHS}).agreeing(claim, [1]) is not None) == agrees


@pytest.mark.parametrize(
    ("claim", "agrees"),
    [
        ("The archive asks for a sampling rate of 44 kHz in each recording.", True),
        ("The archive asks for a sampling rate of 44kHz in each recording.", True),
        ("The archive asks for a sampling rate of 44 MHz in each recording.", False),
        ("The archive asks for a sampling rate of 44MHz in each recording.", False),
        ("The archive asks for a sampling rate of 44 in each recording.", True),
    ],
)
def test_a_unit_right_behind_its_number_is_one(claim: str, agrees: bool) -> None:
    evidences = Evidences({1: "The archive asks for a sampling rate of 44kHz, in each recording that is sent in."})
    assert (evidences.agreeing(claim, [1]) is not None) == agrees


@pytest.mark.parametrize(
    "text", ["the 2nd archive", "the 2x drive", "page 2x80", "a 2s of it", "2 archives", "the 2D one"]
)
def test_letters_behind_a_number_that_are_no_unit(text: str) -> None:
    assert other_unit("It has 2 rings.", text, stem) == (text == "2 archives")


@pytest.mark.parametrize(("days", "agrees"), [("30", True), ("90", False), ("30 or 90", True)])
def test_a_number_of_the_sentence_beside_does_not_bear_out_another(days: str, agrees: bool) -> None:
    beside = f"{TRASH}. What was thrown away from the library is there for 90 days."
    found = Evidences({1: beside}).agreeing(f"A deleted conversation in the trash is kept {days} days.", [1])
    assert (found is not None) == agrees


def test_a_quotation_is_exact_only_as_a_whole() -> None:
    evidences = Evidences({1: "Other words.", 2: SOURCE})

    def verdict(quote: str) -> str | None:
        found = evidences.quoted(quote, [1, 2])
        return found and found.verdict

    assert verdict("in the trash") == verdict("every Debian package must") == verdict(RULE) == "exact"
    assert verdict(f"{RULE} and more") == verdict("in the Trash") == "altered"
    assert verdict("in the bin") is None
    invented = "and whatever else a model likes to put between quotation marks, as long as it goes on and on"
    assert verdict("It is kept in the trash for 30 days, " + invented) is None, "most of it stands nowhere"


MANUAL = (
    "floor(real x)\nThe functions floor, ceil and round all return an int value in their usual definitions. "
    "getFusion(map)\nIt returns the stored map of two tables or nothing.\n\n? forstep(x=5, 10, 2, print(x))\n\n"
    "2.4.3 General Options\n\nAll of them are shown.\n\n2.4 Options of oil\n\nOf the engine: 2.5 litres of oil fit "
    "into the tank of the pump, and no more. The cache keeps so many entries: max_\nsize limits them. It is over.\n"
    "The Mc-\nDonald family sold their farm near the river in autumn. The archive asks of recordings a sampling rate "
    "of 44kHz."
)


@pytest.mark.parametrize(
    ("claim", "matched"),
    [
        ("The functions floor and round return an int value by their definition.", True),
        ("The function Degrees returns an int value, as the usual definitions do.", False),
        ("getFusion returns the map of the two tables that is stored.", True),
        ("setFusion returns the map of the two tables that is stored.", False),
        ("The step s of forstep is 2.", False),
        ("2.4.3 General Options", False),
        ("2.4.3 General Options (2.4.4)", False),
        ("2.4 Options of oil", False),
        ("2.5 litres of oil fit into the tank of the pump", True),
        ("The entry max_size limits how many entries the cache keeps.", True),
        ("The family McDonald sold their farm near the river in autumn.", True),
        ("The sampling rate that the archive asks of recordings is 44 kHz.", True),
        ("The family McDougal sold their farm near the river in autumn.", False),
        ("In PostgreSQL, the farm near the river was sold in autumn.", False),
    ],
)
def test_what_is_said_of_another_thing_is_no_match(claim: str, matched: bool) -> None:
    found = Evidences({1: MANUAL, 2: "Another passage about the weather and the sea."}).agreeing(claim, [1, 2])
    assert bool(found) is matched


def test_a_passage_need_not_name_what_it_stands_under_or_most_passages_speak_of() -> None:
    claim, text = "In LaTeX, the option draft shows black boxes.", "The option draft shows black boxes beside lines."
    others = {n: f"LaTeX sets page {n} of a book." for n in (2, 3, 4)}
    assert Evidences({1: text, 2: "The sea."}).agreeing(claim, [1, 2]) is None
    assert Evidences({1: text, 2: "The sea."}, {1: "LaTeX > Options"}).agreeing(claim, [1, 2])
    assert Evidences({1: text, **others}).agreeing(claim, [1, 2])
    del others[2]
    assert Evidences({1: text, **others}).agreeing(claim, [1, 3]) is None
