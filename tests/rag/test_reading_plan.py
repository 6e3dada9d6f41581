import random

import pytest

from rag import Document, DocumentId, Library, Passage
from rag.reading_plan import (
    ReadingPlan,
    collects,
    compared,
    counted,
    reading_plan,
    wants_list,
    wants_summary,
    wants_whole,
)


def words(text: str) -> int:
    return len(text.split())


def made(headings: list[str], sizes: list[int]) -> list[Passage]:
    return [
        Passage(n, DocumentId(1), n, " ".join(["word"] * size), heading, ())
        for n, (heading, size) in enumerate(zip(headings, sizes, strict=True))
    ]


def check(plan: ReadingPlan, passages: list[Passage], budget: int) -> None:
    """Every passage once, in order, within the budget; the notes end in one."""
    covered = [n for part in plan.parts for n in range(part.first, part.last + 1)]
    assert covered == list(range(len(passages)))
    for part in plan.parts:
        assert part.tokens == sum(words(p.text) for p in passages[part.first : part.last + 1])
        assert part.tokens <= budget or part.first == part.last
    notes = len(plan.parts)
    for groups in plan.rounds:
        assert [n for group in groups for n in group] == list(range(notes))
        notes = len(groups)
    assert notes == min(1, len(passages))
    assert plan.tokens == sum(words(p.text) for p in passages)


def test_chapters_stay_together() -> None:
    headings = ["1 A", "1 A > 1.1", "1 A > 1.2", "2 B", "2 B > 2.1", "3 C", "3 C"]
    passages = made(headings, [40, 30, 20, 60, 50, 30, 20])
    plan = reading_plan(passages, 110, 30, words)
    check(plan, passages, 110)
    assert [(part.title, part.first, part.last) for part in plan.parts] == [
        ("1 A", 0, 2),
        ("2 B", 3, 4),
        ("3 C", 5, 6),
    ]
    assert plan.rounds == (((0, 1, 2),),)
    assert plan.steps == 4


def test_a_long_chapter_is_cut_at_its_sections() -> None:
    headings = ["1 A > 1.1"] * 3 + ["1 A > 1.2"] * 3 + ["2 B"]
    passages = made(headings, [30] * 6 + [10])
    plan = reading_plan(passages, 100, 50, words)
    check(plan, passages, 100)
    assert [part.title for part in plan.parts] == ["1 A > 1.1", ""]
    assert [part.title for part in reading_plan(passages[:6], 100, 50, words).parts] == ["1 A > 1.1", "1 A > 1.2"]


def test_what_fits_is_one_part() -> None:
    passages = made(["", "1 A"], [10, 10])
    plan = reading_plan(passages, 20, 5, words)
    assert (len(plan.parts), plan.rounds, plan.steps) == (1, (), 1)
    assert reading_plan([], 20, 5, words) == ReadingPlan((), ())


@pytest.mark.parametrize("seed", range(20))
def test_any_document(seed: int) -> None:
    chance = random.Random(seed)
    headings = sorted(
        " > ".join(str(chance.randrange(1, 5)) for _ in range(chance.randrange(4))) for _ in range(chance.randrange(60))
    )
    passages = made(headings, [chance.randrange(1, 90) for _ in headings])
    budget = chance.randrange(20, 200)
    check(reading_plan(passages, budget, chance.randrange(1, 60), words), passages, budget)


def test_the_sample(library: Library, sample: Document) -> None:
    passages = library.passages(sample.id)
    check(reading_plan(passages, 500, 100, words), passages, 500)


@pytest.mark.parametrize(
    ("question", "whole"),
    [
        ("Summarise chapter 2", True),
        ("Please summarize this", True),
        ("List all fees", True),
        ("How many functions does the module have?", True),
        ("Compare the two editions", True),
        ("What is this document about?", True),
        ("What is the deposit for guests?", False),
        ("How much does a lost key cost?", False),
        ("What does the list on page 3 say?", False),
    ],
)
def test_questions_for_the_whole(question: str, whole: bool) -> None:
    assert wants_whole(question) == whole


@pytest.mark.parametrize(
    ("question", "listing", "summary"),
    [
        ("List the fees", True, False),
        ("Please enumerate the rules.", True, False),
        ("What are all the exceptions?", True, False),
        ("How many rules are there?", False, False),
        ("Summarise the document", False, True),
        ("Give me a short overview of policy-2.1.pdf, please", False, True),
        ("What is this book about?", False, True),
        ("Summarise what it says about fees", False, False),
        ("What does the list on page 3 say?", False, False),
        ("Please tell me what it is about", False, False),
    ],
)
def test_lists_and_summaries(question: str, listing: bool, summary: bool) -> None:
    assert (wants_list(question), wants_summary(question)) == (listing, summary)


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("How many init systems are mentioned?", "List all init systems that are mentioned."),
        ("How many ways are there to pause?", "List all ways to pause."),
        ("how many rules are there in chapter 3?", "List all rules in chapter 3."),
        ("How many kinds of keys does the document describe?", "List all kinds of keys of the document."),
        ("Count the fees", "List all fees."),
        ("How many rules\n are there?", "List all rules."),
        (f"{'Guests pay fees. ' * 20} How many fees are there?", ""),
        ("Please count all exceptions.", "List all exceptions."),
        ("Could you please count the fees?", "List all fees."),
        ("How many ways are there to pause or load?", "List all ways to pause or load."),
        ("How many kinds of tickets are there for guests?", "List all kinds of tickets for guests."),
        ("How many rules are there about smoking?", "List all rules about smoking."),
        ("How many rules about time are there?", "List all rules about time."),
        ("How many rules are there in the second chapter?", "List all rules in the second chapter."),
        ("How many animals are there in this book?", "List all animals in this book."),
        ("How many people are mentioned in the report?", "List all people that are mentioned in the report."),
        ("How many animals are there described in it?", "List all animals described in it."),
        ("How many days are there in the notice period?", ""),
        ("How many working days are there?", ""),
        ("How many days of leave are described?", ""),
        ("How many times does the author mention God?", ""),
        ("How many times are fees mentioned?", ""),
        ("How many euros are listed?", ""),
        ("How many per cent are mentioned?", ""),
        ("How many seats are there in the hall?", ""),
        ("How many people are there?", ""),
        ("How many employees are there in the company?", ""),
        ("How many countries are there in the EU?", ""),
        ("How many teachers are there for each class?", ""),
        ("How many members are there on the board?", ""),
        ("How many votes are given to a member?", ""),
        ("How many exceptions does the policy list for guests?", ""),
        ("How many rules are there, and who made them?", ""),
        ("How many rules are there and how many apply to guests?", ""),
        ("How many rules are there? Who made them?", ""),
        ("What is a rule, and how many rules are there?", ""),
        ("How many rules are there in section 2.1?", ""),
        ("Who has to count the votes?", ""),
        ("Count the days until the hearing", ""),
        ("How many days may a guest stay?", ""),
        ("How many members are required for a vote?", ""),
        ("What does it cost?", ""),
    ],
)
def test_what_is_counted_is_asked_for_as_a_list(question: str, asked: str) -> None:
    assert counted(question) == asked
    assert collects(question) == bool(asked)


@pytest.mark.parametrize(
    ("question", "sides"),
    [
        ("Compare boxes with candlesticks.", ("boxes", "candlesticks")),
        ("What is the difference between the deposit and a fee?", ("deposit", "fee")),
        ("Give a comparison of Breaks and Conflicts", ("Breaks", "Conflicts")),
        ("Please compare late fees against a deposit!", ("late fees", "deposit")),
        ("Can you compare conflicts to breaks?", ("conflicts", "breaks")),
        ("Compare boxes versus candlesticks", ("boxes", "candlesticks")),
        ("List all differences between binary packages and source packages.", ("binary packages", "source packages")),
        ("What are the main differences between the deposit and a fee?", ("deposit", "fee")),
        ("Deposit vs. late fee?", ("Deposit", "late fee")),
        ("How does this compare to the 2019 budget, and what changed between May and June?", None),
        ("How does this compare to the 2019 budget?", None),
        (f"Please {'please ' * 60} compare fees with deposits", None),
        ("Compare notes with your colleague: what does the policy say?", None),
        ("Compare notes with your colleague.", None),
        ("Compare fees and deposits and fines", None),
        ("Compare pros and cons with costs", None),
        ("Compare the right to refuse with the duty to pay", None),
        ("Compare fees with deposits, fines and rents", None),
        ("Compare fees with deposits. Which are higher?", None),
        ("Compare fees with what guests are charged", None),
        ("Compare the budget of May with that of June", None),
        ("What is the difference between fees and deposits and who pays them?", None),
        ("Who pays the difference between the old fee and the new fee?", None),
        ("What does the court say in Miller versus California?", None),
        ("Compare policy 2.1 with policy 3.0", None),
        ("Compare chapter 2 with chapter 3", None),
        ("Compare one.pdf with two.pdf", None),
        ("Compare it with the others", None),
        ("Compare the two editions", None),
        ("Compare keys with keys", None),
        ("List all fees", None),
    ],
)
def test_sides_of_a_comparison(question: str, sides: tuple[str, str] | None) -> None:
    assert compared(question) == sides
