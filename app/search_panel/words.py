"""What the Search tab says in words. No widgets."""

from __future__ import annotations

from app.core.events import TurnPhase
from app.core.lookups import FoundPassage, Lookup
from app.widgets.format import plural

USE_WORDS = {
    "new": "in the context",
    "known": "in the context before",
    "no room": "left out",
}
USE_COLORS = {"new": "good", "known": "good", "no room": "muted"}


def head_words(lookup: Lookup) -> list[str]:
    """How it was searched, a line each."""
    lines = []
    if lookup.query:
        lines.append(f"Searched for: {lookup.query}")
    if lookup.scope:
        lines.append(f"In: {lookup.scope}" + (" (named in the question)" if lookup.from_words else ""))
    if lookup.fell_back:
        lines.append("Nothing was found there; the model got how it begins.")
    if lookup.passages and not lookup.query:
        lines.append("All of it is in the context; nothing had to be searched.")
    elif lookup.by_meaning:
        lines.append("By words and by meaning")
    elif lookup.passages:
        lines.append("By words only: finding by meaning was not ready (no vectors, or its model not loaded)")
    return lines


def running_words(phase: TurnPhase, is_listed: bool) -> str:
    """Of a turn that runs. `is_listed`: its question is stored, else there is nothing of it yet."""
    which = "this question" if is_listed else "the question just asked"
    if phase.phase == "queued":
        return f"{which.capitalize()} waits for its turn."
    if phase.phase == "retrieving":
        return f"The documents are being looked through for {which}."
    return "This question is being answered. How its documents were read is told with the answer." if is_listed else ""


def page_words(found: FoundPassage) -> str:
    """`p. iv (file page 4)`."""
    if found.page_label == str(found.page_index + 1):
        return f"p. {found.page_label}"
    return f"p. {found.page_label} (file page {found.page_index + 1})"


def score_words(found: FoundPassage) -> str:
    """`words 12.4, meaning 0.61, together 2.93`, or why there is no score."""
    if found.why == "neighbour":
        return "next to a better one"
    if found.why == "scope":
        return "part of what was chosen"
    if found.why == "opening":
        return "where the document says what it is"
    if found.why == "beginning":
        return "not found: only where it begins"
    parts = [
        f"words {found.words:.1f}" if found.words else "",
        f"meaning {found.vectors:.2f}" if found.vectors else "",
        f"together {found.score:.2f}",
    ]
    return ", ".join(part for part in parts if part)


def use_words(found: FoundPassage, tried: bool, cited_as: int | None = None) -> str:
    """`tried`: the query was only tried, so nothing of it is in any context. `cited_as`: its number in the answer."""
    if tried:
        return ""
    cited = f", cited as [{cited_as}]" if cited_as and found.use != "no room" else ""
    return f"{USE_WORDS[found.use]}{cited}"


def nothing_words(lookup: Lookup) -> str:
    where = f" in {lookup.scope}" if lookup.scope else ""
    hint = "" if lookup.by_meaning else " Only words were searched: try others, or the document's own."
    return f"Nothing was found{where}.{hint}"


def count_words(lookup: Lookup) -> str:
    used = sum(1 for found in lookup.passages if found.use != "no room")
    return f"{plural(len(lookup.passages), 'passage')} found, {used} in the context{_why_left_out(lookup, used)}"


def _why_left_out(lookup: Lookup, used: int) -> str:
    """`; the passage budget of 1,134 tokens is reached`."""
    if used == len(lookup.passages) or not lookup.budget:
        return ""
    if lookup.full:
        return f"; the {lookup.budget:,} tokens left in the context hold no more"
    return f"; the passage budget of {lookup.budget:,} tokens is reached"
