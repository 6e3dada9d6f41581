"""Citations and report of a finished answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from app.core.documents import DocumentTexts, pages_in_context
from app.core.errors import as_user_error
from app.core.lookups import PagesRead, StoredRange
from app.core.records import (
    Message,
    PageUse,
    PhaseTimes,
    StoredCitation,
    TokenReport,
    TurnReport,
    UsedMode,
)
from engine.messages import TurnFinished
from rag.coverage import Coverage, not_found_note, page_ranges, says_not_found
from rag.metadata import file_says
from rag.question_document import asks_about_document
from rag.question_kinds import wants_whole
from rag.quotes import nearest_sentences
from rag.sentences import sentences
from rag.sizes import plural
from rag.types import Citation, Document, DocumentId, Passage

if TYPE_CHECKING:
    from rag import Library

log = logging.getLogger(__name__)
MOST_QUOTED = 2
MOST_COMPARED = 200  # passages: a fifth of a second


def passages_by_marker(messages: Sequence[Message], texts: DocumentTexts) -> dict[int, Passage]:
    """Every passage in the context by its number, in ascending order."""
    placements = [message.placement for message in messages if message.role == "user"]
    found: dict[int, Passage] = {}
    for placed in (item for p in placements for item in (*p.documents, *p.passages)):
        by_id = {passage.id: passage for passage in texts.placed(placed)}
        for offset, passage_id in enumerate(placed.passage_ids):
            if passage_id in by_id:
                found[placed.first_marker + offset] = by_id[passage_id]
    return dict(sorted(found.items()))


def cite_answer(
    answer: str,
    numbered: dict[int, Passage],
    library: Library,
    cut: bool = False,
    question: str = "",
    told: Sequence[str] = (),
) -> tuple[StoredCitation, ...]:
    """What stands behind the answer. A fault here is logged and costs the citations, never the answer.

    Args:
        cut: the answer did not come to its end.
        question: what it may quote without its standing in a passage.
        told: what else it may take numbers from.
    """
    from rag.context import cite

    if not numbered or not answer.strip():
        return ()
    try:
        found = (_stored(citation) for citation in cite(answer, numbered, library, cut, question, told))
        return tuple(_without_repeats(answer, found))
    except Exception as error:
        log.exception("citations failed: %s", as_user_error(error).what)
        return ()


def pages_say(query: str, numbered: dict[int, Passage], library: Library) -> tuple[StoredCitation, ...]:
    """The sentences that are most about what was looked up, word for word; () where none is enough or where they
    are too many to look through. A fault is logged."""
    if len(numbered) > MOST_COMPARED:
        return ()
    try:
        near = nearest_sentences(query, numbered, MOST_QUOTED)
        return tuple(_quoted(number, numbered[number], span, library) for number, span in near)
    except Exception as error:
        log.exception("the pages were not quoted: %s", as_user_error(error).what)
        return ()


def _quoted(number: int, passage: Passage, span: tuple[int, int], library: Library) -> StoredCitation:
    """Of no part of the answer."""
    start, end = span
    ranges = library.ranges(passage, start, end - start)
    labels = tuple(library.page_label(passage.document_id, part.page_index) for part in ranges)
    name, quote = library.document(passage.document_id).name, " ".join(passage.text[start:end].split())
    return _stored(Citation(number, passage.document_id, name, ranges, labels, quote, "exact", 0, 0))


def proven(text: str, numbered: dict[int, Passage], library: Library) -> str:
    """Its sentences that a passage bears out, with the number of that passage behind them; "" when there is none."""
    said = dict.fromkeys(text[start:end] for start, end in sentences(text))
    proofs = [(s, proof(s, numbered, library)) for s in said if any(map(str.isalpha, s))]
    return joined((sentence, found.marker) for sentence, found in proofs if found)


def joined(told: Iterable[tuple[str, int]]) -> str:
    """Sentences and the numbers of their passages, a number once behind those that follow one another."""
    runs = groupby(told, key=itemgetter(1))
    return " ".join(f"{' '.join(sentence for sentence, _ in run)} [{number}]" for number, run in runs)


def proof(sentence: str, numbered: dict[int, Passage], library: Library) -> StoredCitation | None:
    """What bears it out; None for nothing, or where it quotes what stands nowhere. A sentence too short to be matched
    by itself may be borne out by a passage that it is marked with."""
    for tried in (sentence, *(f"{sentence} [{number}]" for number in numbered)):
        found = cite_answer(tried, numbered, library)
        if found and all(one.verified != "not_found" for one in found):
            return found[0]
    return None


def _without_repeats(answer: str, citations: Iterable[StoredCitation]) -> Iterator[StoredCitation]:
    """A model that says a sentence again proves nothing more by it."""
    seen = set()
    for citation in citations:
        claim = answer[citation.answer_start : citation.answer_start + citation.answer_count]
        key = (citation.marker, citation.ranges, " ".join(claim.split()))
        if key not in seen:
            seen.add(key)
            yield citation


def _stored(citation: Citation) -> StoredCitation:
    ranges = tuple(StoredRange(r.page_index, r.char_start, r.char_count) for r in citation.ranges)
    return StoredCitation(
        marker=citation.marker,
        document_id=None if citation.document_id is None else int(citation.document_id),
        document=citation.document,
        ranges=ranges,
        page_labels=tuple(citation.page_labels),
        quote=citation.quote,
        verified=citation.verified,
        answer_start=citation.answer_start,
        answer_count=citation.answer_count,
    )


def coverage(messages: Sequence[Message], texts: DocumentTexts) -> tuple[PageUse, ...]:
    """Pages of the documents that the model has read or been shown in this conversation."""
    placements = [message.placement for message in messages if message.role == "user"]
    whole_ids = dict.fromkeys(item.document_id for p in placements for item in p.documents)
    whole = [texts.document(document) for document in whole_ids if texts.readable(document)]
    shown = [p for placement in placements for item in placement.passages for p in texts.placed(item)]
    parts = {int(passage.document_id) for passage in shown}
    lost = {d: len(texts.document(d).unreadable_pages) for d in parts if texts.readable(d)}
    return pages_in_context(whole, shown, lost)


def with_coverage(
    report: TurnReport,
    question: Message,
    answer: Message,
    documents: Sequence[Document],
    pages: Mapping[DocumentId, Sequence[int]],
    labels: Callable[[int], Sequence[str]],
) -> TurnReport:
    """Tells how much was read where the answer may miss something: it found nothing, or it was to be about all.

    Args:
        documents: all that the question was about; what of them was read is in the report.
        pages: of a document, where the question was not about all of it.
        labels: printed labels of a document's pages.
    """
    used = {use.document_id: use for use in report.pages_in_context}
    covered = [_covered(d, used.get(int(d.id)), pages.get(d.id, range(d.pages))) for d in documents]
    unread = sum(len(one.unread) for one in covered)
    told = ""
    if report.mode == "passages" and not used:
        told = "No passage was found for this question; the answer rests on no page."
    elif question.lookup is not None and question.lookup.fell_back:
        told = f"Nothing in {question.lookup.scope} was found for this question; the model was given how it begins."
    elif asks_about_document(question.text) and (says := file_says(documents)):
        told = says
    elif says_not_found(answer.text):
        told = not_found_note(covered)
    elif unread and wants_whole(question.text):
        read, all_pages = sum(len(one.read) for one in covered), sum(one.pages for one in covered)
        told = f"This answer rests on {read:,} of {all_pages:,} pages."
        if lost := sum(len(one.unreadable) for one in covered):
            told += f" {_unreadable_note(lost, all_pages)}"
    elif lost := sum(len(one.unreadable) for one in covered if report.mode == "whole" or wants_whole(question.text)):
        told = _unreadable_note(lost, sum(one.pages for one in covered))
    if not told:
        return replace(report, coverage="", unread=0, read=())
    read_pages = tuple(_read(d, used.get(int(d.id)), pages.get(d.id, range(d.pages)), labels) for d in documents)
    return replace(report, coverage=told, unread=unread, read=read_pages)


def _unreadable_note(lost: int, pages: int) -> str:
    these = "It is a scan or garbled" if lost == 1 else "They are scans or garbled"
    return f"{lost:,} of {plural(pages, 'page')} could not be read, so the answer knows nothing of them. {these}."


def _read(
    document: Document, use: PageUse | None, inside: Sequence[int], labels: Callable[[int], Sequence[str]]
) -> PagesRead:
    read = tuple(sorted(page for page in (use.pages if use else ()) if page in inside))
    printed = page_ranges(read, labels(int(document.id))) if read else ""
    return PagesRead(int(document.id), document.name, read, printed)


def _covered(document: Document, use: PageUse | None, inside: Sequence[int]) -> Coverage:
    """Counted among the pages that the question was about."""
    places = {page: place for place, page in enumerate(inside)}
    read = tuple(places[page] for page in (use.pages if use else ()) if page in places)
    unreadable = tuple(places[page] for page in document.unreadable_pages if page in places)
    return Coverage(document.id, document.name, len(inside), read, unreadable)


def report_of(
    finished: TurnFinished,
    mode: UsedMode,
    retrieve_ms: float,
    saved_ms: float,
    model: str,
    pages: tuple[PageUse, ...],
) -> TurnReport:
    t = finished.timings
    times = PhaseTimes(t.queue, retrieve_ms, t.restore, t.remove, t.prefill, t.first_token, t.decode, t.save)
    generated = len(finished.generated)
    drafts = finished.drafted, finished.accepted
    return TurnReport(
        tokens=TokenReport(finished.prompt_tokens, finished.reused, finished.computed, generated, *drafts),
        timings_ms=times,
        mode=mode,
        pages_in_context=pages,
        finish_reason=finished.reason,
        bytes_read=finished.bytes_read,
        bytes_written=finished.bytes_written,
        saved_ms=saved_ms,
        model=model,
        gaps=finished.gaps,
    )
