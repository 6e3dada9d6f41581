"""`pagekeep chat`: conversations and their messages, and changes to a history. Messages are named by their number."""

from __future__ import annotations

import time
from argparse import Namespace
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from app.cli.cache_text import table
from app.cli.console import Console
from app.cli.numbers import about
from app.cli.session import Session, open_session
from app.core.errors import UserError
from app.core.explain import put_aside_words
from app.core.naming import SHORT_ID, there_is
from app.core.records import Conversation, Message
from app.core.steady import Unsteady
from rag.sizes import plural

if TYPE_CHECKING:
    from app.core.revisions import Revised

LONGEST_SHOWN = 100
_ENDED = {"partial": "cut short with its process", "cancelled": "stopped", "failed": "ended by an error"}


def run(options: Namespace, console: Console) -> None:
    with open_session(console) as session:
        ACTIONS[options.action](session, console, options)


def _ls(session: Session, console: Console, options: Namespace) -> None:
    found = session.workspace.conversations.list()
    console.result({"conversations": [{"id": c.id, "title": c.title, "updated": c.updated} for c in found]})
    for line in table([(c.id[:SHORT_ID], c.title, plural(len(c.documents), "document")) for c in found]):
        console.text(line)


def _show(session: Session, console: Console, options: Namespace) -> None:
    conversation = _named(session, options.conversation)
    messages = _messages(session, conversation)
    console.result({"messages": [_json(number, m) for number, m in enumerate(messages, start=1)]})
    for number, message in enumerate(messages, start=1):
        text = " ".join(message.text.split())
        shown = text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
        who = "you  " if message.role == "user" else "model"
        console.text(" ".join(part for part in (f"{number:>3}", who, shown, _mark(message, messages[-1])) if part))
    if messages and (ended := _ended(session, messages[-1])):
        console.text(f"{ended} Go on with it: pagekeep ask --conversation '{conversation.title}' --resume")


def _mark(message: Message, last: Message) -> str:
    """What became of a message that is not the last one: of that the line below tells."""
    if not message.in_context:
        return "(has left the context)"
    if message.role == "user" or message.text.strip() or message is last or message.state == "complete":
        return ""
    return f"({_ENDED[message.state]} before its first word)"


def _ended(session: Session, last: Message) -> str:
    """How an answer ended that is not complete; "" for others, and while it is written."""
    if last.role == "user" or last.state == "complete" or session.workspace.conversations.leased_by(last.conversation):
        return ""
    return f"The last answer was {_ENDED[last.state]}{'' if last.text.strip() else ' before its first word'}."


def _fork(session: Session, console: Console, options: Namespace) -> None:
    source = _named(session, options.conversation)
    last = _message(session, source, options.at).id if options.at else None
    looks = _has_model(session, source)
    began = time.perf_counter()
    fork = session.workspace.chats.fork(source.id, options.name or "", last)
    spent = (time.perf_counter() - began) * 1e3
    again, seconds = session.workspace.revisions.unread(fork.id) if looks else (None, None)
    told = {"id": fork.id, "title": fork.title, "again": again, "seconds": seconds, "milliseconds": spent}
    console.result(told)
    console.text(f"“{fork.title}” shares the state up to there ({spent:,.1f} ms){_unread_words(again, seconds)}")


def _has_model(session: Session, conversation: Conversation) -> bool:
    """Loads the model, which tells how much of a state is left; there is none of what was never answered."""
    _, computed = session.workspace.conversations.computed(conversation.id)
    if not computed:
        return False
    try:
        session.workspace.load_model()
        session.wait_for_model()
    except UserError:  # a copy needs none
        return False
    return True


def _unread_words(again: int | None, seconds: float | None) -> str:
    if again is None:
        return ", as far as there is one."
    if not again:
        return "; nothing is read again."
    wait = f", {about(seconds)}" if seconds else ""
    return f", as far as it is kept: {plural(again, 'token')} will be read again with the next question{wait}."


def _trim(session: Session, console: Console, options: Namespace) -> None:
    conversation = _named(session, options.conversation)
    message = _message(session, conversation, options.at)
    _told(console, session.workspace.revisions.trim(conversation.id, message.id), conversation.title)


def _remove(session: Session, console: Console, options: Namespace) -> None:
    conversation = _named(session, options.conversation)
    message = _message(session, conversation, options.at)
    session.workspace.load_model()  # it prices what follows, and may move it up
    session.wait_for_model()
    way = "shift" if options.shift else "recompute"
    _told(console, session.workspace.revisions.remove_turn(conversation.id, message.id, way), conversation.title)


def _undo(session: Session, console: Console, options: Namespace) -> None:
    conversation = _named(session, options.conversation)
    began, gone = time.perf_counter(), session.workspace.revisions.undo_last(conversation.id)
    _told_swap(console, conversation, gone, began, "What was removed or replaced last is there again.", "redo")


def _redo(session: Session, console: Console, options: Namespace) -> None:
    conversation = _named(session, options.conversation)
    began, gone = time.perf_counter(), session.workspace.revisions.redo_last(conversation.id)
    _told_swap(console, conversation, gone, began, "The last undo is undone.", "undo")


def _told_swap(console: Console, conversation: Conversation, gone: int, began: float, what: str, back: str) -> None:
    """`gone`: messages that were put aside; `back`: the command that takes this back."""
    spent = (time.perf_counter() - began) * 1e3
    console.result({"conversation": conversation.id, "set_aside": gone, "milliseconds": spent})
    console.text(f"{what} ({spent:,.1f} ms)")
    if gone:
        console.text(f"{put_aside_words(gone)} for it.")
    console.text(f"Back again: pagekeep chat {back} '{conversation.title}'")


def _rename(session: Session, console: Console, options: Namespace) -> None:
    conversation = _named(session, options.conversation)
    renamed = session.workspace.chats.rename(conversation.id, options.name)
    console.result({"id": renamed.id, "title": renamed.title})
    console.text(f"It is called “{renamed.title}” now.")


def _instruct(session: Session, console: Console, options: Namespace) -> None:
    """Without a text: those that hold."""
    conversation = _named(session, options.conversation)
    if options.text is not None:
        try:
            conversation = session.workspace.chats.set_instructions(conversation.id, options.text, options.anyway)
        except Unsteady as error:
            raise UserError(error.what, error.why, f"{error.next} That is: --anyway") from error
    console.result({"id": conversation.id, "instructions": conversation.instructions})
    console.text(conversation.instructions or f"“{conversation.title}” has no instructions.")


def _delete(session: Session, console: Console, options: Namespace) -> None:
    conversation = _named(session, options.conversation)
    with session.workspace.conversations.lease(conversation.id):  # another process may be answering it
        session.workspace.chats.trash(conversation.id)
    console.result({"id": conversation.id, "title": conversation.title})
    console.text(f"“{conversation.title}” is in the trash. Back again: pagekeep trash restore '{conversation.title}'")


def _told(console: Console, revised: Revised, title: str) -> None:
    console.result(asdict(revised))
    _tell_price(console, revised)
    console.text(f"Back again: pagekeep chat undo '{title}'")


def _tell_price(console: Console, revised: Revised) -> None:
    leave = "token leaves" if revised.tokens == 1 else "tokens leave"
    what = f"{plural(revised.messages, 'message')} removed, {revised.tokens:,} {leave} the context"
    what = f"{what} ({revised.milliseconds:,.1f} ms)."
    if not revised.behind:
        console.text(f"{what} Nothing is read again.")
    else:
        console.text(f"{what} With the next question {_rest_words(revised)}.")


def _rest_words(revised: Revised) -> str:
    """What becomes of what stands behind."""
    wait = f", {about(revised.seconds)}" if revised.seconds else ""
    read = f"{plural(revised.again, 'token')} will be read again{wait}"
    if not revised.approximate:
        return read
    if not revised.moved:
        return f"{read}; nothing of what stands behind is moved up" if revised.again > 1 else "nothing is read again"
    what = f"{revised.moved:,} of the {plural(revised.behind, 'token')} behind move up (approximate)"
    return what if revised.again <= 1 else f"{what}, {read}"


def _named(session: Session, name: str) -> Conversation:
    found = session.workspace.conversations.find(name)
    if found is None:
        titles = [c.title for c in session.workspace.conversations.list()]
        why = f"None is called {name!r}. {there_is(titles, 'There is none yet.')}"
        raise UserError("There is no such conversation.", why, "See 'pagekeep chat ls'.")
    return found


def _messages(session: Session, conversation: Conversation) -> tuple[Message, ...]:
    return session.workspace.conversations.messages(conversation.id)


def _message(session: Session, conversation: Conversation, number: int) -> Message:
    return message_numbered(_messages(session, conversation), number, conversation.title)


def message_numbered(messages: tuple[Message, ...], number: int, title: str) -> Message:
    if not 1 <= number <= len(messages):
        why = f"“{title}” has {plural(len(messages), 'message')}."
        raise UserError(f"There is no message {number:,}.", why, "See 'pagekeep chat show'.")
    return messages[number - 1]


def _json(number: int, message: Message) -> dict[str, Any]:
    return {
        "number": number,
        "id": message.id,
        "role": message.role,
        "text": message.text,
        "reasoning": message.reasoning,
        "tokens": len(message.tokens),
        "in_context": message.in_context,
        "state": message.state,
    }


ACTIONS = {
    "ls": _ls,
    "show": _show,
    "fork": _fork,
    "trim": _trim,
    "remove": _remove,
    "undo": _undo,
    "redo": _redo,
    "rename": _rename,
    "instruct": _instruct,
    "delete": _delete,
}
