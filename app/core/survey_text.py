"""What a survey's answer looks like: notes with their pages as they come, then all of them together."""

from __future__ import annotations

from collections.abc import Mapping

from app.core.survey_plan import SurveyPart, SurveyPlan, says_nothing

TOGETHER_HEAD = "**All together**"


def part_text(part: SurveyPart, note: str, only: bool = False) -> str:
    """What was found in a part, under its title and pages; page numbers are the application's. `only`: there is no
    other part."""
    if only:
        return f"{note.strip()}\n\n"
    head = f"**{part.title}** ({part.pages})" if part.title else f"**{part.pages.capitalize()}**"
    return f"{head}\n\n{note.strip()}\n\n"


def shown_notes(plan: SurveyPlan, notes: Mapping[int, str]) -> str:
    """All parts that said something so far, in reading order."""
    return "".join(
        part_text(part, notes[step], len(plan.parts) == 1)
        for step, part in enumerate(plan.parts)
        if step in notes and not says_nothing(notes[step])
    )


def closing_text(plan: SurveyPlan, notes: Mapping[int, str], together: str) -> str:
    """What stands under the notes at the end."""
    silent = sum(1 for step in range(len(plan.parts)) if says_nothing(notes.get(step, "")))
    if silent == len(plan.parts):
        parts = "the only part" if silent == 1 else f"all {silent:,} parts"
        return f"Nothing about it was found in {parts} read."
    rest = f"\n\n{silent:,} of {len(plan.parts):,} parts say nothing about it." if silent else ""
    return (f"{TOGETHER_HEAD}\n\n{together.strip()}" if together.strip() else "") + rest
