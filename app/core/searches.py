"""Records of what was looked up, made from hits and from what of them went into the prompt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from app.core.lookups import FoundPassage, Lookup, StoredRange, Why
from app.core.prompt import Addition, Composed, Context
from app.core.records import Message
from app.core.scoping import Searched
from rag.followup import complete
from rag.types import Hit, Passage

if TYPE_CHECKING:
    from rag import Library

SHOWN_CHARACTERS = 320


class Placed(Protocol):
    """What is asked of `app.core.planning.Plan`."""

    @property
    def context(self) -> Context: ...

    @property
    def composed(self) -> Composed: ...

    @property
    def addition(self) -> Addition: ...


def search_text(question: str, before: Iterable[Message]) -> str:
    """The question; one that leans on the one before ("and the second one?") with that one's telling words."""
    asked = [message for message in before if message.role == "user"][-1:]
    return complete(question, next(((m.lookup and m.lookup.query) or m.text for m in asked), None))


def found_lookup(plan: Placed, query: str, searched: Searched, hits: Sequence[Hit]) -> Lookup:
    """A search: its hits, and which of them the model has before it."""
    return Lookup(
        query=query,
        scope=searched.label,
        from_words=searched.from_words,
        by_meaning=any(hit.why.get("vectors") for hit in hits),
        passages=tuple(_with_use(found, plan) for found in found_passages(hits)),
    )


def found_passages(hits: Iterable[Hit]) -> list[FoundPassage]:
    """Hits as they are shown; nothing of them is in a context."""
    return [
        FoundPassage(
            document_id=int(hit.document_id),
            document=hit.document,
            passage_id=hit.passage.id,
            page_index=hit.page_index,
            page_label=hit.page_label,
            ranges=_ranges(hit.passage),
            text=_short(hit.text),
            score=round(hit.score, 4),
            words=round(hit.why.get("words", 0.0), 4),
            vectors=round(hit.why.get("vectors", 0.0), 4),
            why=_why(hit),
        )
        for hit in hits
    ]


def _why(hit: Hit) -> Why:
    if hit.why.get("beginning"):
        return "beginning"
    if hit.why.get("opening"):
        return "opening"
    return "neighbour" if hit.why.get("neighbour") else "found"


def beginning_hit(passage: Passage, library: Library) -> Hit:
    """A passage that nothing speaks for but its place."""
    span = passage.ranges[0]
    return Hit(
        document_id=passage.document_id,
        document=library.document(passage.document_id).name,
        passage=passage,
        score=0.0,
        page_index=span.page_index,
        pages=passage.pages,
        page_label=library.page_label(passage.document_id, span.page_index),
        span=span,
        text=passage.text,
        why={"beginning": 1.0},
    )


def placed_lookup(plan: Placed, searched: Searched, library: Library) -> Lookup:
    """A part of the documents that was placed as it stands: nothing was searched."""
    passages = [_placed(passage, library) for passage in plan.addition.passages]
    return Lookup("", searched.label, searched.from_words, False, tuple(_with_use(p, plan) for p in passages))


def _placed(passage: Passage, library: Library) -> FoundPassage:
    page = passage.ranges[0].page_index
    return FoundPassage(
        document_id=int(passage.document_id),
        document=library.document(passage.document_id).name,
        passage_id=passage.id,
        page_index=page,
        page_label=library.page_label(passage.document_id, page),
        ranges=_ranges(passage),
        text=_short(passage.text),
        why="scope",
    )


def _with_use(found: FoundPassage, plan: Placed) -> FoundPassage:
    placed = {pid: p.first_marker + i for p in plan.composed.placement.passages for i, pid in enumerate(p.passage_ids)}
    if found.passage_id in placed:
        return replace(found, use="new", marker=placed[found.passage_id])
    if found.passage_id in plan.context.markers:
        return replace(found, use="known", marker=plan.context.markers[found.passage_id])
    return found


def _ranges(passage: Passage) -> tuple[StoredRange, ...]:
    return tuple(StoredRange(r.page_index, r.char_start, r.char_count) for r in passage.ranges)


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= SHOWN_CHARACTERS else words[:SHOWN_CHARACTERS].rsplit(" ", 1)[0] + "…"
