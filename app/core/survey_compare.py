"""Comparisons of two topics: what is found for each, side by side, quoted before the model says anything about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from app.core.records import StoredCitation
from app.core.scoping import Searched
from app.core.segments import PromptFormat
from app.core.survey_plan import SurveyPart, SurveyPlan, part_budget, passage_tokens
from rag.coverage import page_ranges
from rag.question_sides import compared
from rag.quotes import telling_sentences
from rag.types import Hit, Passage

if TYPE_CHECKING:
    from rag import Library

QUOTES = 2  # a side
QUOTATION_MARKS = frozenset('“"„«»「')


def comparison_plan(
    question: str,
    searched: Searched,
    find: Callable[[str, Searched], Sequence[Hit]],
    library: Library,
    chat: PromptFormat,
    context: int,
) -> SurveyPlan | None:
    """A part for each side with the best passages `find` has for it, best first; None where it has none for one, or the
    question names no two topics."""
    budget, marker = part_budget(question, chat, context), 1
    parts: list[SurveyPart] = []
    for side in compared(question) or ():
        found = _fitting((hit.passage for hit in find(side, searched)), lambda text: passage_tokens(chat, text), budget)
        if not found:
            return None
        pages, tokens = _pages([passage for passage, _ in found], library), sum(tokens for _, tokens in found)
        parts.append(SurveyPart(side, pages, marker, tuple(passage.id for passage, _ in found), tokens, side))
        marker += len(found)
    return SurveyPlan(tuple(parts), (((0, 1),),), question, searched.label) if parts else None


def side_note(about: str, numbered: Mapping[int, Passage], said: str) -> str:
    """Quotes, then what the model `said`; "" where there is neither."""
    quotes = [f"- “{quote}” [{number}]" for number, quote in telling_sentences(about, numbered, QUOTES)]
    return "\n\n".join(filter(None, ("\n".join(quotes), said)))


def without_false(text: str, citations: Sequence[StoredCitation]) -> str:
    """Lines of `text` but for those with a quotation that is not exact, or of which all that is cited is false."""
    lines = text.split("\n")
    cited: dict[int, list[StoredCitation]] = {}
    for citation in citations:
        cited.setdefault(text.count("\n", 0, citation.answer_start), []).append(citation)

    def misquotes(citation: StoredCitation) -> bool:
        before = text[citation.answer_start - 1 : citation.answer_start]
        return before in QUOTATION_MARKS and citation.verified != "exact"

    def stays(number: int) -> bool:
        here = cited.get(number, [])
        all_false = bool(here) and all(one.verified == "not_found" for one in here)
        return not all_false and not any(map(misquotes, here))

    return "\n".join(line for number, line in enumerate(lines) if stays(number)).strip()


def _fitting(passages: Iterable[Passage], count: Callable[[str], int], budget: int) -> list[tuple[Passage, int]]:
    """Those of them, each once, that fit together, with their tokens."""
    chosen: dict[int, tuple[Passage, int]] = {}
    for passage in passages:
        tokens = count(passage.text)
        if passage.id not in chosen and tokens + sum(known for _, known in chosen.values()) <= budget:
            chosen[passage.id] = (passage, tokens)
    return list(chosen.values())


def _pages(passages: Sequence[Passage], library: Library) -> str:
    """Printed pages, each document's with its name where there are several."""
    ordered = sorted(passages, key=lambda passage: (passage.document_id, passage.index))
    told = []
    for document, of_it in groupby(ordered, key=lambda passage: passage.document_id):
        pages = sorted({page for passage in of_it for page in passage.pages})
        printed = page_ranges(pages, library.page_labels(document))
        told.append((library.document(document).name, f"{'page' if len(pages) == 1 else 'pages'} {printed}"))
    return "; ".join(f"{name}, {pages}" if len(told) > 1 else pages for name, pages in told)
