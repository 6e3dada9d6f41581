"""Whether the documents bear an answer out, and whether its state was sound, in words. Light: the window's first paint
needs it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from app.core.records import Message

MARKS = re.compile(r"\[\d[\d,; ]*\]")  # of passages, which count on

NOT_BORNE_OUT = "No passage of the documents bears this answer out."
REPEATS = "Word for word what the model answered to an earlier question of this conversation."
LEAST_REPEATED = 4  # words: "Yes, it is." may well be said twice
PAGES_SAY = "The pages themselves, nearest to the question (quoted by Pagekeep):"


def repeats(answer: str, before: Sequence[Message]) -> bool:
    """Whether that is word for word an earlier answer, to a question in other words; `before`: the conversation up to
    its question, that included."""
    said = _words(answer)
    if len(said) < LEAST_REPEATED:
        return False
    *_, question = (message for message in before if message.role == "user")
    return any(
        asked.role == "user" and told.role == "assistant" and _words(told.text) == said
        for asked, told in pairwise(before)
        if _words(asked.text) != _words(question.text)
    )


def _words(text: str) -> list[str]:
    return MARKS.sub(" ", text).casefold().split()


def not_borne_out(answer: Message) -> str:
    """NOT_BORNE_OUT where that is so of a complete answer from documents; "" where it is not, or where the report says
    more about what it rests on."""
    report = answer.report
    if report is None or report.coverage or not report.pages_in_context or report.mode == "catalogue":
        return ""
    if answer.state != "complete" or not answer.text.strip() or any(c.ranges for c in answer.citations):
        return ""
    return NOT_BORNE_OUT


def doubt(message: Message) -> str:
    """Why an answer may be wrong that was written on damaged state; empty for others."""
    report = message.report
    if report is None or not report.doubtful:
        return ""
    if report.doubtful >= len(message.tokens):
        part = "This was"
    elif report.doubtful == 1:
        part = "The first token of this was"
    else:
        part = f"The first {report.doubtful:,} tokens of this were"
    return f"{part} written on saved state that was found damaged since, and may be wrong."
