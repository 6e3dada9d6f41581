"""`pagekeep ask`: a question over documents; a named conversation goes on from its saved state."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from app.cli.chat import message_numbered
from app.cli.citations import citation_lines, remark_lines
from app.cli.console import Console
from app.cli.opening import check_model_choices, choose_scope, opened
from app.cli.session import Session, engine_options, open_session, stored_settings, with_engine_options
from app.cli.vectors import after_answer
from app.cli.ways import way_out
from app.core.borne_out import doubt, not_borne_out
from app.core.errors import DoesNotFit, UserError
from app.core.events import TurnDone, TurnError, TurnMoved, TurnPhase, TurnText, TurnWithdrawn
from app.core.explain import explain_lines, operations_of, spans_json, tokens_json
from app.core.lookups import Lookup, PagesRead
from app.core.memory_account import MemoryAccount
from app.core.records import Conversation, Message, Mode, StoredCitation, TurnReport
from app.core.settings import Settings
from app.core.shown_numbers import printed_numbers
from engine.messages import TurnId
from rag.sizes import plural
from rag.types import DocumentId

MODES: dict[str, Mode] = {"whole": "whole", "retrieve": "passages", "survey": "survey", "auto": "auto"}
SAMPLING = (
    "max_tokens", "temperature", "seed", "top_k", "top_p", "min_p", "repetition_penalty", "frequency_penalty",
    "presence_penalty",
)  # fmt: skip
EMPTY = (
    "The model gave no answer: it ended at once. Ask in other words, let passages be looked up (--mode retrieve), or "
    "use a larger model."
)


def run(options: Namespace, console: Console) -> None:
    check_question(options)
    with open_session(console, stored_settings(lambda s: _settings(s, options))) as session:
        model = session.model_path(options.model)
        session.workspace.models.info(model)  # a wrong model is told before any document is taken in
        documents = [session.named(file) for file in options.files]
        session.workspace.load_model(model)
        check_model_choices(session.wait_for_model(), options.template, options.reasoning)
        goes_on = bool(options.resume or options.rest or options.edit)
        with opened(session, options.conversation, documents, must_exist=goes_on) as conversation:
            conversation = choose_scope(session, conversation, options)
            message = _message(session, conversation, options)
        session.saved(message.conversation)
        asked = session.workspace.conversations.get(message.conversation)
        report(session, message, asked, lookup_of(session, message))
        after_answer(session, [DocumentId(one) for one in asked.document_ids], told=bool(documents))


def _message(session: Session, conversation: Conversation, options: Namespace) -> Message:
    workspace = session.workspace
    if options.resume:
        return followed(session, workspace.continue_answer(conversation.id))
    if options.rest:
        asked = [m.text for m in workspace.conversations.messages(conversation.id) if m.role == "user"]
        question = options.question or (asked[-1] if asked else "")
        return followed(session, workspace.ask(conversation.id, question, survey=True))
    if options.edit:
        messages = workspace.conversations.messages(conversation.id)
        edited = message_numbered(messages, options.edit, conversation.title)
        edit = partial(workspace.edit, conversation.id, edited.id, options.question, options.overflow)
        return answer_in_mode(session, conversation, edit, options.mode)
    ask = partial(workspace.ask, conversation.id, options.question, options.overflow, is_draft=False)
    return answer_in_mode(session, conversation, ask, options.mode)


def check_question(options: Namespace) -> None:
    if options.conversation is not None and not options.conversation.strip():
        raise UserError("The conversation has no name.", "--conversation is empty.", "Give a name, or leave it out.")
    if not options.question and not (options.conversation and (options.resume or options.rest)):
        raise UserError(
            "There is no question.",
            "--question TEXT is missing; --resume and --rest need a --conversation.",
            "See 'pagekeep ask --help'.",
        )
    _check_together(options)


def _check_together(options: Namespace) -> None:
    """Nothing that was typed is left out in silence."""
    for name, given, others, why in (
        ("--resume", options.resume, ("question", "rest", "edit", "overflow"), "It goes on with the answer as it is"),
        ("--rest", options.rest, ("edit", "overflow"), "It reads part by part: nothing has to leave the context"),
    ):  # fmt: skip
        beside = [f"--{other}" for other in others if getattr(options, other)]
        if given and beside:
            what = f"{name} cannot be combined with {' and '.join(beside)}."
            raise UserError(what, f"{why}.", f"Leave {name} or {beside[0]} out.")


def lookup_of(session: Session, answer: Message) -> Lookup | None:
    """What was looked up for the question before this answer."""
    messages = session.workspace.conversations.messages(answer.conversation)
    before = [m for m in messages if m.role == "user" and m.id < answer.id]
    return before[-1].lookup if before else None


def _settings(settings: Settings, options: Namespace) -> Settings:
    given = {key: value for key in SAMPLING if (value := getattr(options, key)) is not None}
    if options.stop:
        given["stop"] = tuple(options.stop)
    limited = settings.limit_citations or options.limit_citations
    settings = replace(settings, sampling=replace(settings.sampling, **given), limit_citations=limited)
    chosen = {"reasoning": options.reasoning, "chat_template": options.template}
    return with_engine_options(settings, **engine_options(options), **chosen)


def answer_in_mode(
    session: Session, conversation: Conversation, start: Callable[[], TurnId], mode: str | None
) -> Message:
    """A mode that is given is kept for later questions, unless this one cannot be answered in it."""
    if mode is not None:
        session.workspace.chats.set_mode(conversation.id, MODES[mode])
    try:
        return followed(session, start())
    except UserError as error:
        if mode is not None:
            session.workspace.chats.set_mode(conversation.id, conversation.mode)
        if isinstance(error, DoesNotFit):
            raise error.advising(way_out(error)) from error
        raise


def answer(session: Session, conversation: Conversation, question: str) -> Message:
    """Asks and streams the answer to the terminal. Raises the UserError of a failed turn."""
    return followed(session, session.workspace.ask(conversation.id, question, is_draft=False))


def followed(session: Session, turn: TurnId) -> Message:
    """The answer of a turn, streamed; an interrupt stops it first."""
    try:
        ended = _follow(session, turn)
    except KeyboardInterrupt:
        session.workspace.cancel(turn)
        _follow(session, turn)
        raise
    if isinstance(ended, TurnMoved):
        session.console.note(f"It goes on in “{ended.target.title}”, which begins with a summary.")
        return answer(session, ended.target, ended.question)
    return ended


def _follow(session: Session, turn: TurnId) -> Message | TurnMoved:
    console = session.console
    for event in session.events():
        if getattr(event, "turn", None) != turn:
            continue
        if isinstance(event, TurnText) and event.part == "reasoning":
            console.progress("Thinking")
        elif isinstance(event, TurnText):
            console.clear()
            console.text(event.delta, end="")
        elif isinstance(event, TurnPhase):
            _show_phase(console, event)
        elif isinstance(event, TurnDone):
            console.clear()
            return event.message
        elif isinstance(event, TurnMoved):
            console.clear()
            return event
        elif isinstance(event, TurnError):
            raise event.error
        elif isinstance(event, TurnWithdrawn):
            raise KeyboardInterrupt
    raise AssertionError("events never end")


def _show_phase(console: Console, phase: TurnPhase) -> None:
    if phase.phase == "reading" and phase.total:
        console.progress(f"Reading: {phase.done:,} of {phase.total:,} tokens{_left(phase)}")
    elif phase.phase == "surveying":
        console.progress(f"Reading all of it: {phase.done:,} of {phase.total:,} steps{_left(phase)}")
    elif phase.phase == "summarising":
        console.progress(f"Summarising the conversation: {phase.done:,} of at most {phase.total:,} tokens")


def _left(phase: TurnPhase) -> str:
    return f", {phase.seconds_left:.0f} s left" if phase.seconds_left else ""


def report(session: Session, message: Message, conversation: Conversation, lookup: Lookup | None = None) -> None:
    """The JSON object, or citations, what was read, and the line on reuse below the streamed answer."""
    console, notices = session.console, [asdict(notice) for notice in session.notices]
    memory = asdict(MemoryAccount.of(session.stats)) if session.stats else None
    console.result({**answer_json(message, conversation, lookup), "memory_bytes": memory, "notices": notices})
    console.text("\n")
    if not message.text.strip():
        console.note(EMPTY)
    for line in citation_lines(message.text, message.citations):
        console.text(line)
    if unsupported := not_borne_out(message):
        console.text(f"  {unsupported}")
    for line in remark_lines(message.report):
        console.text(line)
    if message.report is None:
        return
    if doubtful := doubt(message):
        console.note(doubtful)
    if message.report.coverage:
        console.text(f"  {message.report.coverage}")
        for line in read_lines(message.report):
            console.text(f"  {line}")
        if message.report.unread:
            console.text(f"  Read the rest: pagekeep ask --conversation '{conversation.title}' --rest")
    if message.report.mode == "catalogue":
        console.text("  Answered from the library's catalogue, without the model.")
    else:
        console.text(reuse_line(message.report))
        for line in explain_lines(message.report):
            console.text(f"  {line}")


def read_lines(report: TurnReport) -> list[str]:
    """`Read of FILE: pages 3–5, 9`, a line per document."""
    return [
        f"Read of {one.document}: {page_words(one)}" if one.pages else f"Read of {one.document}: nothing"
        for one in report.read
    ]


def page_words(read: PagesRead) -> str:
    return f"{'page' if len(read.pages) == 1 else 'pages'} {read.labels}"


def answer_json(message: Message, conversation: Conversation, lookup: Lookup | None = None) -> dict[str, Any]:
    turn, numbers = message.report, printed_numbers(message.text, message.citations)
    return {
        "answer": message.text,
        "reasoning": message.reasoning,
        "citations": [citation_json(citation, numbers) for citation in message.citations],
        "not_borne_out": bool(not_borne_out(message)),
        "repeats": bool(turn and turn.repeats),
        "pages_say": [citation_json(c, {c.marker: c.marker}) for c in turn.pages_say] if turn else [],
        "tokens": tokens_json(turn.tokens) if turn else None,
        "timings_ms": asdict(turn.timings_ms) if turn else None,
        "mode": turn.mode if turn else None,
        "lookup": asdict(lookup) if lookup else None,
        "coverage": turn.coverage if turn else None,
        "unread_pages": turn.unread if turn else None,
        "unreadable_pages": sum(use.unreadable for use in turn.pages_in_context) if turn else None,
        "read_pages": [asdict(one) for one in turn.read] if turn else None,
        "finish_reason": turn.finish_reason if turn else None,
        "model": turn.model if turn else None,
        "saved_ms": turn.saved_ms if turn else None,
        "bytes_read": turn.bytes_read if turn else None,
        "bytes_written": turn.bytes_written if turn else None,
        "recomputed": spans_json(turn) if turn else None,
        "operations": [asdict(one) for one in operations_of(turn)] if turn else None,
        "difference": asdict(turn.difference) if turn and turn.difference else None,
        "approximate": turn.approximate if turn else None,
        "doubtful_tokens": turn.doubtful if turn else None,
        "conversation": {"id": conversation.id, "title": conversation.title},
    }


def citation_json(citation: StoredCitation, numbers: Mapping[int, int]) -> dict[str, Any]:
    """`marker`: as it is printed; `passage`: the model's number of it in the whole conversation."""
    labels = citation.page_labels
    ranges = [
        {
            "page_index": part.page_index,
            "page_label": labels[i] if i < len(labels) else str(part.page_index + 1),
            "char_start": part.char_start,
            "char_count": part.char_count,
        }
        for i, part in enumerate(citation.ranges)
    ]
    return {
        "marker": numbers[citation.marker],
        "passage": citation.marker,
        "document": citation.document,
        "ranges": ranges,
        "quote": citation.quote,
        "verified": citation.verified,
        "answer_start": citation.answer_start,
        "answer_count": citation.answer_count,
    }


def reuse_line(report: TurnReport) -> str:
    """What was not read again, and what was."""
    tokens, times = report.tokens, report.timings_ms
    computed = ", ".join(f"{part.tokens:,} {part.reason}" for part in tokens.computed) or "none"
    rate = f", {tokens.generated / times.decode * 1000:,.0f} tokens/s" if times.decode else ""
    drafts = f", {tokens.accepted:,} of {tokens.drafted:,} drafts right" if tokens.drafted else ""
    saved = f", saved {report.saved_ms / 1000:.1f} s" if report.saved_ms >= 100 else ""
    return (
        f"  {plural(tokens.reused.total, 'token')} reused ({tokens.reused.memory:,} memory, {tokens.reused.disk:,} disk"
        f"{saved}); read: {computed}; {tokens.generated:,} generated{rate}{drafts}"
    )
