"""What a survey's answer looks like: notes with their pages as they come, then all of them together."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from app.core.survey_notes import MORE, says_nothing
from app.core.survey_plan import SurveyPart, SurveyPlan
from rag.reading_plan import wants_list

NOT_BORNE_OUT = "; these pages do not bear this out"
TOGETHER_HEAD = "**All together**"
LEFT_OUT = "Entries of the notes that their pages do not bear out are not in this list."


def part_head(part: SurveyPart, borne_out: bool) -> str:
    """Title and pages, with the empty line below."""
    doubt = "" if borne_out else NOT_BORNE_OUT
    named = re.sub("^page", "Page", part.pages)
    head = f"**{part.title}** ({part.pages}{doubt})" if part.title else f"**{named}**{doubt}"
    return f"{head}\n\n"


def part_text(part: SurveyPart, note: str, borne_out: bool) -> str:
    """What was found in a part, under its title and pages; page numbers are the application's."""
    return f"{part_head(part, borne_out)}{note.strip()}\n\n"


def shown_notes(plan: SurveyPlan, notes: Mapping[int, str], borne_out: Collection[int]) -> str:
    """All parts that said something so far, in reading order; `borne_out`: steps whose note their pages support."""
    return "".join(
        part_text(part, notes[step], step in borne_out)
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
    if any(note.endswith(MORE) for note in notes.values()):
        rest += f"\n\nNotes that end in “{MORE}” were cut: there may be more."
    together = together.strip()
    if not together and len(plan.parts) - silent > 1:
        return f"No two of these notes are borne out by their pages, so nothing is put together.{rest}"
    if together and wants_list(plan.question):
        rest = f"\n\n{LEFT_OUT}{rest}"
    return (f"{together_head(plan, together)}{together}" if together else "") + rest


def together_head(plan: SurveyPlan, together: str) -> str:
    """With the number of entries, where it is a list."""
    count = len(together.splitlines())
    told = f" ({count:,} {'entry' if count == 1 else 'entries'})" if wants_list(plan.question) else ""
    return f"{TOGETHER_HEAD}{told}\n\n"


def models_words(plan: SurveyPlan, notes: Mapping[int, str], borne_out: Collection[int], text: str) -> str:
    """`text` of a survey with blanks for all that the application wrote; places stay the same."""
    shown = [step for step in range(len(plan.parts)) if step in notes and not says_nothing(notes[step])]
    blank = list(" " * len(text))
    at = 0
    for step in shown:
        start = at + len(part_head(plan.parts[step], step in borne_out))
        at += len(part_text(plan.parts[step], notes[step], step in borne_out))
        blank[start:at] = text[start:at]
    together = notes.get(plan.steps - 1, "").strip() if plan.rounds else ""
    head = together_head(plan, together)
    if together and text.startswith(head, at):
        start, end = at + len(head), at + len(head) + len(together)
        blank[start:end] = text[start:end]
    return "".join(blank)
