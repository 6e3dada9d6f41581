"""Whether the documents bear an answer out, and whether its state was sound, in words. Light: the window's first paint
needs it."""

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


def doubt(message: Message) -> str:
    """Why an answer may be wrong that was written on damaged state; empty for others."""
    report = message.report
    if report is None or not report.doubtful:
        return ""
    part = "This" if report.doubtful >= len(message.tokens) else f"The first {report.doubtful:,} tokens of this"
    verb = "was" if part == "This" else "were"
    return f"{part} {verb} written on saved state that was found damaged since, and may be wrong."
