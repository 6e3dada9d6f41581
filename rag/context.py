"""What of the documents goes into a prompt, within an exact budget of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rag.cite import cite
from rag.protocols import TokenCounter
from rag.types import Document, Hit, Passage

if TYPE_CHECKING:
    from rag.library import Library

__all__ = ["cite", "fit", "passages_text", "reflowed", "whole_document_text", "with_neighbours"]

FULL_LINE = 0.7  # of the longest line: a line this long goes on in the next


def whole_document_text(document: Document, passages: Sequence[Passage]) -> str:
    """The document in reading order, each passage with its id: passage n (from 0) is [n + 1]."""
    return f"{document.name}\n\n{_numbered((p.text for p in passages), 1)}"


def passages_text(hits: Sequence[Hit], first: int = 1) -> str:
    """The hits' passages in their order with the ids [first], [first + 1] and so on. Page numbers are left out:
    the application writes them, never the model."""
    return _numbered((_with_heading(hit.passage) for hit in hits), first)


def _with_heading(passage: Passage) -> str:
    last = passage.heading.rsplit(" > ", 1)[-1]
    return passage.text if not last or last in passage.text[:200] else f"{last}\n{passage.text}"


def _numbered(texts: Iterable[str], first: int) -> str:
    return "\n\n".join(f"[{number}] {reflowed(text)}" for number, text in enumerate(texts, first))


def reflowed(text: str) -> str:
    """Text with the lines of a paragraph joined; short lines (headings, items, code) stay on their own."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    width = max((len(line) for line in lines), default=0)
    out = ""
    for line in lines:
        out += line + (" " if len(line) >= FULL_LINE * width else "\n")
    return out.strip()


def fit(hits: Sequence[Hit], budget_tokens: int, count: TokenCounter, first: int = 1) -> list[Hit]:
    """The best hits whose `passages_text` takes at most `budget_tokens` as `count` counts; one that does not
    fit is passed over for later ones that do."""
    chosen: list[Hit] = []
    for hit in hits:
        if any(hit.passage.id == other.passage.id for other in chosen):
            continue
        if count(passages_text([*chosen, hit], first)) <= budget_tokens:
            chosen.append(hit)
    return chosen


def with_neighbours(hits: Sequence[Hit], library: Library) -> list[Hit]:
    """The hits, then the passages right after and right before them, best hit first, as hits with `why`
    {"neighbour": 1.0}. Give the result to `fit`: neighbours take what room the hits leave."""
    known = {hit.passage.id for hit in hits}
    added: list[Hit] = []
    for hit in hits:
        for passage in library.neighbours(hit.passage):
            if passage.id not in known:
                known.add(passage.id)
                added.append(_neighbour(hit, passage, library))
    return [*hits, *added]


def _neighbour(hit: Hit, passage: Passage, library: Library) -> Hit:
    span = passage.ranges[0]
    return replace(
        hit,
        passage=passage,
        score=0.0,
        page_index=span.page_index,
        pages=passage.pages,
        page_label=library.page_label(passage.document_id, span.page_index),
        span=span,
        text=library.first_part(passage),
        why={"neighbour": 1.0},
    )
