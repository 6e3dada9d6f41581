"""An answer that has ended gets its citations and its report, and is stored with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from app.core.answers import AnswerStream
from app.core.borne_out import not_borne_out, repeats
from app.core.citing import cite_answer, coverage, pages_say, passages_by_marker, report_of, with_coverage
from app.core.explain import after_cut, explained, last_computed
from app.core.records import Message, TurnReport
from app.core.searches import search_text
from app.core.turn_parts import Request, TurnServices
from engine.messages import TurnFinished
from rag.metadata import data_words

if TYPE_CHECKING:
    from rag import Document, DocumentId, Passage


def settled(
    services: TurnServices, request: Request, answer: Message, finished: TurnFinished, stream: AnswerStream
) -> Message:
    """The stored answer with citations and report."""
    texts = services.planner.texts
    numbered = passages_by_marker(request.messages, texts)
    cut = finished.reason in ("length", "context", "cancelled")
    asked = _asked(services, request)
    citations = cite_answer(answer.text, numbered, services.library(), cut, *asked) if numbered else ()
    pages = coverage(request.messages, texts)
    name = request.model.name
    report = report_of(finished, request.mode, request.retrieve_ms, stream.saved_ms, name, pages)
    report = with_coverage(
        report, request.messages[-1], answer, *_searched(services, request), services.planner.scopes.labels
    )
    if not_borne_out(replace(answer, citations=citations, report=report)):
        said = pages_say(_looked_up_by(request.messages), _shown(request.messages[-1], numbered), services.library())
        report = replace(report, pages_say=said)
    found = explained(finished.difference, (*request.messages, answer), request.model.handle.tokenizer)
    report = replace(report, difference=found, approximate=bool(finished.approximate))
    report = replace(report, repeats=repeats(answer.text, request.messages))
    if services.store().cuts.made_after(answer.conversation, last_computed(request.messages) or answer.created):
        report = replace(report, tokens=replace(report.tokens, computed=after_cut(report.tokens.computed)))
    if stream.looped:
        report = replace(_without_rest(report, stream), finish_reason="repetition")
    elif finished.reason == "stop" and not answer.text.strip():
        report = replace(report, finish_reason="empty")
    store = services.store()
    with store.transaction():
        before = store.operations.take(answer.conversation)
        stored = store.message(answer.id).report  # what it was before it went on, or has been noted since
        doubtful = max(_doubtful(request, finished), stored.doubtful if stored else 0)
        report = replace(report, operations=(*before, *request.operations), doubtful=doubtful)
        return store.finish_answer(answer, citations, report)


def _doubtful(request: Request, finished: TurnFinished) -> int:
    """Leading tokens of the whole answer: where it went on, those it went on from are among them."""
    return len(request.answer.tokens) + finished.doubtful if finished.doubtful else 0


def _looked_up_by(messages: Sequence[Message]) -> str:
    """What the last question was searched for, or would have been."""
    *before, question = messages
    return (question.lookup.query if question.lookup else "") or search_text(question.text, before)


def _shown(question: Message, numbered: dict[int, Passage]) -> dict[int, Passage]:
    """The passages that were found for this question; all where nothing was looked up."""
    found = {passage.marker for passage in question.lookup.passages} if question.lookup else set()
    return {number: passage for number, passage in numbered.items() if number in found} or numbered


def _asked(services: TurnServices, request: Request) -> tuple[str, list[str]]:
    """The question, and what else stands before the model beside passages: the reader's earlier words and instructions,
    and what the files say of themselves."""
    *before, question = (message for message in request.messages if message.role == "user")
    instructions = services.store().get(request.answer.conversation).instructions
    documents, _ = _searched(services, request)
    return question.text, [*(message.text for message in before), instructions, *map(data_words, documents)]


def _without_rest(report: TurnReport, stream: AnswerStream) -> TurnReport:
    """What the engine wrote until it heard that the answer goes in circles is not part of it, nor is its time."""
    tokens, times = report.tokens, report.timings_ms
    return replace(
        report,
        tokens=replace(tokens, generated=len(stream.ids)),
        timings_ms=replace(times, decode=max(0.0, times.decode - stream.past_ms)),
    )


def _searched(services: TurnServices, request: Request) -> tuple[list[Document], Mapping[DocumentId, Sequence[int]]]:
    """What the question was about: documents that can be read, and pages where it was not all of one."""
    planner, conversation = services.planner, services.store().get(request.answer.conversation)
    readable = [document for document in conversation.document_ids if planner.texts.readable(document)]
    searched = planner.scopes.of(conversation.scope, request.messages[-1].text, readable)
    return [planner.texts.document(document) for document in searched.documents], searched.pages
