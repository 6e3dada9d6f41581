import json
from pathlib import Path

import pytest

from rag.inventory import subjects
from rag.question_kinds import question_kind, wants_summary, wants_whole
from rag.question_lists import collects, counted, wants_list
from rag.question_sides import compared

TABLE = Path(__file__).parents[1] / "data" / "question-kinds.jsonl"


@pytest.mark.parametrize(("half", "least"), [(1, 128), (2, 128)])
def test_questions_of_all_kinds_are_told_apart(half: int, least: int) -> None:
    asked = [json.loads(line) for line in TABLE.read_text(encoding="utf-8").splitlines()]
    mine = [one for one in asked if one["half"] == half]
    wrong = [one for one in mine if _kind(one["question"]) != (one["kind"], one.get("sides"))]
    assert len(mine) - len(wrong) >= least, wrong
    assert not [one for one in wrong if one["kind"] == "normal"], "a passage answers it; everything would be read"


def _kind(question: str) -> tuple[str, list[str] | None]:
    if subjects(question, ["pagekeep-sample.pdf", "gap-ref.pdf"]):
        return "catalogue", None
    sides = compared(question)
    return question_kind(question), list(sides) if sides else None


def test_pasted_text_is_looked_at_quickly_and_its_question_is_found() -> None:
    pasted = "How many of the rules are compared with all the others in that text " * 20_000
    assert question_kind(pasted) == "normal"
    assert question_kind(f"{pasted}. Summarise this text.") == "summary"
    assert question_kind(f"Summarise this text: {pasted}") == "summary"


@pytest.mark.parametrize(
    ("question", "whole"),
    [
        ("Summarise chapter 2", True),
        ("Please summarize this", True),
        ("List all fees", True),
        ("How many functions does the manual describe?", True),
        ("How many functions does the module have?", False),
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
        ("Please tell me what it is about", False, True),
        ("What is the purpose of this document?", False, True),
        ("What is this manual for?", False, True),
        ("Tell me about this book", False, True),
        ("Tell me about the fees", False, False),
        ("What is the purpose of the deposit?", False, False),
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
        ("How many kinds of keys does the document describe?", "List all kinds of keys that the document describes."),
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
        (
            "How many exceptions does the policy list for guests?",
            "List all exceptions that the policy lists for guests.",
        ),
        ("How many rules does the author describe?", "List all rules that the author describes."),
        ("How many rules do the authors discuss?", "List all rules that the authors discuss."),
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
