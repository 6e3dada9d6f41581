"""What a survey reads: every passage once, part by part along the outline, then the notes together. Stored as JSON.

The plan is exact in tokens for the model it was made with, and says what is left after any stop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from app.core.documents import DocumentTexts
from app.core.errors import UserError
from app.core.prompt import Addition, Composed, Context, compose
from app.core.scoping import Searched
from app.core.segments import PromptFormat
from rag.context import reflowed
from rag.question_kinds import wants_summary
from rag.question_lists import collects, counted
from rag.reading_plan import Part, ReadingPlan, reading_plan
from rag.types import Passage

if TYPE_CHECKING:
    from rag import Library

PART_TOKENS = 1536  # most text of one step; a small model is lost in more
NOTE_TOKENS = 128
LIST_TOKENS = 256  # a list is not to lose its end
GLUE_TOKENS = 96  # header, template and instruction, generously
LONGEST_QUESTION = 4  # parts of the context: a question may take one of them
PER_PART = "{question}\n\nAnswer from these passages only. If they say nothing about it, answer: Not here."
PER_PART_LIST = (
    '{question}\n\nAnswer from these passages only, each entry on a line of its own that begins with "- ".'
    " If they say nothing about it, answer: Not here."
)
PER_SIDE = "What do these passages say about {about}? Answer in two or three sentences from them only."
PER_PART_SUMMARY = "Summarise these passages in two or three sentences."
TOGETHER = "{notes}\n\nThese are notes on the parts of a document. Answer from all of them together: {question}"


@dataclass(frozen=True)
class SurveyPart:
    """One step: passages of one or more neighbouring sections, or those found for one side of a comparison, which
    `about` names. `pages`: labels, for the reader."""

    title: str
    pages: str
    first_marker: int
    passage_ids: tuple[int, ...]
    tokens: int
    about: str = ""


@dataclass(frozen=True)
class SurveyPlan(ReadingPlan[SurveyPart]):
    """`scope`: where it reads, in words."""

    question: str
    scope: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> SurveyPlan:
        parts = tuple(SurveyPart(**{**part, "passage_ids": tuple(part["passage_ids"])}) for part in data["parts"])
        rounds = tuple(tuple(tuple(group) for group in groups) for groups in data["rounds"])
        return SurveyPlan(parts, rounds, data["question"], data["scope"])


def survey_plan(
    question: str,
    searched: Searched,
    texts: DocumentTexts,
    library: Library,
    chat: PromptFormat,
    context: int,
    known: Callable[[int], bool],
) -> SurveyPlan:
    """A plan over the documents searched.

    Args:
        context: tokens of the model's context.
        known: passages (by id) that are left out, because the model has them before it.

    Errors: UserError when there is nothing to read, or the question leaves no room for reading.
    """
    passages = [
        passage
        for document in searched.documents
        for passage in texts.whole(document).passages
        if searched.has(passage) and not known(passage.id)
    ]
    if not passages:
        raise UserError("There is nothing to read.", "No readable page is left.", "Ask about other pages.")
    asked = len(chat.text_ids(question))
    if asked > context // LONGEST_QUESTION:
        raise UserError(
            "The question is too long for a survey.",
            f"It takes {asked:,} tokens and goes along with every part.",
            "Shorten it.",
        )
    note, budget = note_tokens(question), part_budget(question, chat, context)
    several = len(searched.documents) > 1
    named = [_under_its_document(p, texts) for p in passages] if several else passages
    plan = reading_plan(named, budget, note, lambda text: passage_tokens(chat, text))
    parts = tuple(_part(part, passages, library) for part in plan.parts)
    return SurveyPlan(parts, plan.rounds, question, searched.label)


def part_budget(question: str, chat: PromptFormat, context: int) -> int:
    """Tokens for the passages of one step."""
    return min(PART_TOKENS, context - len(chat.text_ids(question)) - note_tokens(question) - GLUE_TOKENS)


def passage_tokens(chat: PromptFormat, text: str) -> int:
    return len(chat.text_ids(f"[000] {reflowed(text)}\n\n"))


def _under_its_document(passage: Passage, texts: DocumentTexts) -> Passage:
    name = texts.whole(int(passage.document_id)).name
    return replace(passage, heading=f"{name} > {passage.heading}" if passage.heading else name)


def _part(part: Part, passages: Sequence[Passage], library: Library) -> SurveyPart:
    chosen = passages[part.first : part.last + 1]
    runs = [list(run) for _, run in groupby(chosen, key=lambda passage: passage.document_id)]
    pages = [_pages(run, library) for run in runs]
    if len(runs) > 1:  # short documents that are read together
        pages = [f"{library.document(run[0].document_id).name}, {text}" for run, text in zip(runs, pages, strict=True)]
    title = part.title or (chosen[0].heading.rsplit(" > ", 1)[-1] if len(runs) == 1 else "")
    return SurveyPart(title, "; ".join(pages), part.first + 1, tuple(p.id for p in chosen), part.tokens)


def _pages(passages: Sequence[Passage], library: Library) -> str:
    """Printed pages from the first passage to the last, of one document."""
    first, last = passages[0].ranges[0].page_index, passages[-1].ranges[-1].page_index
    begin, end = (library.page_label(passages[0].document_id, page) for page in (first, last))
    return f"page {begin}" if first == last else f"pages {begin}–{end}"


def note_tokens(question: str) -> int:
    """Most that a note on a part may take."""
    return LIST_TOKENS if collects(question) else NOTE_TOKENS


def _instruction(question: str, about: str) -> str:
    if about:
        return PER_SIDE.format(about=about)
    if collects(question):  # a model asked for a number makes one up; entries can be checked and counted
        return PER_PART_LIST.format(question=counted(question) or question)
    return PER_PART_SUMMARY if wants_summary(question) else PER_PART.format(question=question)


def part_prompt(chat: PromptFormat, plan: SurveyPlan, part: SurveyPart, passages: Sequence[Passage]) -> Composed:
    """Passages numbered from 1, so that what was computed for them serves the next survey too."""
    question = _instruction(plan.question, part.about)
    return compose(chat, Addition(question, (), tuple(passages), None, grounded=True), Context())


def joined_prompt(chat: PromptFormat, question: str, notes: Sequence[tuple[str, str]]) -> Composed:
    """`notes`: (title, text)."""
    listed = "\n".join(f"- {title}: {' '.join(text.split())}" if title else f"- {text}" for title, text in notes)
    return compose(chat, Addition(TOGETHER.format(notes=listed, question=question)), Context())
