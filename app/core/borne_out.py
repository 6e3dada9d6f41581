"""Whether anything in the documents bears an answer out, in words. Light: the window's first paint needs it."""

from __future__ import annotations

from app.core.records import Message

NOT_BORNE_OUT = "No passage of the documents bears this answer out."
PAGES_SAY = "The pages themselves, nearest to the question (quoted by Pagekeep):"


def not_borne_out(answer: Message) -> str:
    """NOT_BORNE_OUT where that is so of a complete answer from documents; "" where it is not, or where the report says
    more about what it rests on."""
    report = answer.report
    if report is None or report.coverage or not report.pages_in_context or report.mode == "catalogue":
        return ""
    if answer.state != "complete" or not answer.text.strip() or any(c.ranges for c in answer.citations):
        return ""
    return NOT_BORNE_OUT
