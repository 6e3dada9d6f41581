"""Names of conversations: from the first question, without asking the model (never blocks)."""

from __future__ import annotations

UNTITLED = "New conversation"
TITLE_LENGTH = 60


def title_from_question(question: str) -> str:
    """The first line, cut at a word; UNTITLED when there is none."""
    line = next((" ".join(part.split()) for part in question.splitlines() if part.strip()), "")
    if len(line) <= TITLE_LENGTH:
        return line.rstrip("?!. ") or UNTITLED
    cut = line[:TITLE_LENGTH].rsplit(" ", 1)[0]
    return cut.rstrip(" ,;:.-") + "…"
