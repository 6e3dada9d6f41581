"""`pagekeep index evaluate SET --answers`: the questions are asked, each in a conversation that is deleted again, and
what stands under the answers is checked."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.cli.console import Console
from app.core.citation_check import Answered, CitationFigures, figures
from app.core.errors import UserError
from app.core.events import TurnDone, TurnError, TurnWithdrawn
from app.core.records import Message, StoredCitation
from app.core.settings import Settings
from rag.sizes import plural

if TYPE_CHECKING:
    from app.cli.session import Session
    from rag.evaluate import Question

TITLE = "Evaluation"


def greedy(settings: Settings, tokens: int) -> Settings:
    """The same answers every time."""
    return replace(settings, sampling=replace(settings.sampling, temperature=0.0, max_tokens=tokens))


def evaluate_answers(options: Namespace, console: Console, session: Session) -> None:
    from rag.evaluate import documents_of, read_questions

    questions = read_questions(Path(options.set))
    documents = documents_of(session.workspace.library, questions)
    session.workspace.load_model(session.model_path(options.model))
    session.wait_for_model()
    answers, failed = [], []
    for number, question in enumerate(questions, 1):
        console.progress(f"Question {number:,} of {len(questions):,}")
        try:
            answers.append(_asked(session, int(documents[question.pdf].id), question))
        except UserError as error:
            failed.append(f"{question.question}: {error.what} {error.why}")
    console.clear()
    found = figures(answers, _path_of(session))
    lines = [
        {"question": a.question, "answer": a.answer, "citations": _plain(a.citations), "pages_say": _plain(a.pages_say)}
        for a in answers
    ]
    console.result({**asdict(found), "failed": failed, "lines": lines})
    for line in (*figure_lines(found), *(f"no answer: {one}" for one in failed)):
        console.text(line)


def _plain(citations: Iterable[StoredCitation]) -> list[dict[str, Any]]:
    return [asdict(citation) for citation in citations]


def figure_lines(found: CitationFigures) -> list[str]:
    checked = f"{found.exact:,} exact, {found.altered:,} altered, {found.matched:,} matched by Pagekeep"
    return [
        f"{plural(found.answers, 'answer')}, {found.borne_out:,} with a checked citation, "
        f"{found.uncited:,} with none at all; below {found.quoted:,} others the pages are quoted",
        f"citations: {checked}, {found.missing:,} missing",
        f"{len(found.wrong):,} of them not as they are shown" + (":" if found.wrong else ""),
        *(f"  {fault}" for fault in found.wrong),
    ]


def _asked(session: Session, document: int, question: Question) -> Answered:
    workspace = session.workspace
    conversation = workspace.chats.new(TITLE, documents=(document,)).id
    try:
        workspace.chats.set_mode(conversation, "passages")
        message = _ended(session, workspace.ask(conversation, question.question))
    finally:
        workspace.chats.trash(conversation)
        workspace.chats.purge(conversation)
    quoted = message.report.pages_say if message.report else ()
    return Answered(question.question, message.text, message.citations, quoted)


def _ended(session: Session, turn: str) -> Message:
    for event in session.events():
        if isinstance(event, TurnDone) and event.turn == turn:
            return event.message
        if isinstance(event, TurnError) and event.turn == turn:
            raise event.error
        if isinstance(event, TurnWithdrawn) and event.turn == turn:
            raise KeyboardInterrupt
    raise AssertionError("events never end")


def _path_of(session: Session) -> Callable[[StoredCitation], Path]:
    from rag.types import DocumentId

    library = session.workspace.library

    def path(citation: StoredCitation) -> Path:
        assert citation.document_id is not None, "only a citation without ranges has no document"
        return library.document(DocumentId(citation.document_id)).path

    return path
