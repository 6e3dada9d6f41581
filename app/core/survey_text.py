"""What a survey's answer looks like: notes with their pages as they come, then all of them together."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from app.core.survey_notes import MORE, UNUSABLE, entries, says_nothing
from app.core.survey_plan import SurveyPart, SurveyPlan
from rag.question_kinds import wants_summary
from rag.question_lists import collects, counted

NOT_BORNE_OUT = "; these pages do not bear this out"
TOGETHER_HEAD = "**All together**"
NOT_TOGETHER = "What the model wrote of all parts together is left out: no page bears it out."
LEFT_OUT = "Only entries that their pages bear out are listed."
CHOSEN = (
    "What counts as one was the model's choice: that each stands on its page is checked, not that it was asked for."
)
OF_FOUND = "Compared from the passages found for each side, not from every page."


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


def closing_text(plan: SurveyPlan, notes: Mapping[int, str], together: str, borne_out: bool) -> str:
    """What stands under the notes at the end. `borne_out`: pages support something of what is told `together`."""
    steps = range(len(plan.parts))
    unusable = [step for step in steps if notes.get(step) == UNUSABLE]
    silent = [step for step in steps if says_nothing(notes.get(step, "")) and step not in unusable]
    if len(silent) == len(steps):
        parts = "the only part" if len(silent) == 1 else f"all {len(silent):,} parts"
        if wants_summary(plan.question):
            return f"The model wrote nothing usable on {parts}. A larger model may do better."
        return f"Nothing about it was found in {parts} read."
    told = [_counted_alone(plan, notes), *_left_out(plan, silent, unusable)]
    if collects(plan.question) and len(unusable) + len(silent) < len(steps):
        told.insert(1, CHOSEN)
    if any(note.endswith(MORE) for note in notes.values()):
        told.append(f"Notes that end in “{MORE}” were cut: there may be more.")
    together = together.strip()
    if together and not says_nothing(together) and not (collects(plan.question) or borne_out):
        told.insert(0, NOT_TOGETHER)
    elif together and not says_nothing(together):
        kept = [LEFT_OUT] if collects(plan.question) else []
        told = [f"{together_head(plan, together)}{together}", *kept, *told]
    elif len(steps) - len(silent) - len(unusable) > 1:
        told.insert(0, "No two of these notes are borne out by their pages, so nothing is put together.")
    return "\n\n".join(filter(None, told))


def _left_out(plan: SurveyPlan, silent: Sequence[int], unusable: Sequence[int]) -> Iterator[str]:
    """What of the parts is not to be seen, and why."""
    parts = len(plan.parts)
    if unusable:
        pages = "; ".join(plan.parts[step].pages for step in unusable)
        yield (
            f"What the model wrote on {len(unusable):,} of {parts:,} parts ({pages}) is left out: these pages do not"
            " bear it out. A larger model may do better."
        )
    sides = [part.about for part in plan.parts if part.about]
    if sides:
        yield from (f"Nothing about {sides[step]} was found in {plan.parts[step].pages}." for step in silent)
        yield OF_FOUND
    elif silent and wants_summary(plan.question):
        pages = "; ".join(plan.parts[step].pages for step in silent)
        yield f"The model wrote nothing usable on {len(silent):,} of {parts:,} parts ({pages})."
    elif silent:
        yield f"{len(silent):,} of {parts:,} parts say nothing about it."


def _counted_alone(plan: SurveyPlan, notes: Mapping[int, str]) -> str:
    """The number of entries, where a part that is all there is was asked for it."""
    note = notes.get(0, "")
    alone = len(plan.parts) == 1 and counted(plan.question) and not says_nothing(note)
    return f"{_number(len(entries(note)))}, counted by Pagekeep." if alone else ""


def _number(count: int) -> str:
    return f"{count:,} {'entry' if count == 1 else 'entries'}"


def together_head(plan: SurveyPlan, together: str) -> str:
    """With the number of entries, where it is a list; counting is never left to the model."""
    told = ""
    if collects(plan.question):
        by = ", counted by Pagekeep" if counted(plan.question) else ""
        told = f" ({_number(len(together.splitlines()))}{by})"
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
