"""Changes to a conversation's history: fork from a message, remove what follows, take a turn out, and back again.

Stored ids are never rendered anew, so whatever stays in front is reused; what follows is computed again or moved up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from app.core.conversations import ConversationStore
from app.core.cuts import Cut, CutId, HowMoved
from app.core.errors import NothingToDo, UserError
from app.core.exchanges import exchange_of, followed, in_prompt
from app.core.gate import ModelGate
from app.core.prompt import history
from app.core.records import Conversation, Message, MessageId
from app.core.revision_log import Note
from app.core.spans import Operation
from app.core.undoing import change_name
from engine.messages import ConversationId, TurnId

if TYPE_CHECKING:
    from engine.client import EngineClient


@dataclass(frozen=True)
class Revised:
    """What was done and what it costs: `tokens` left the context; of the `behind` tokens after them, which the next
    question needs, `again` are computed again, in about `seconds` (None while this machine's rate is unknown), and
    `moved` are moved up instead, where that was wanted (`approximate`).

    `aside`: for `bring_back`; `cut`: of turns in the middle; `milliseconds`: the change itself took.
    """

    conversation: ConversationId
    messages: int
    tokens: int
    behind: int = 0
    again: int = 0
    seconds: float | None = None
    approximate: bool = False
    aside: float | None = None
    cut: CutId | None = None
    milliseconds: float = 0.0
    moved: int = 0

    @property
    def change(self) -> str:
        """Its name, see undoing.py."""
        return change_name(self.aside if self.cut is None else self.cut)


class Revisions:
    """Thread-safe. Raises UserError while the conversation is answered, here or by another process."""

    def __init__(
        self,
        store: Callable[[], ConversationStore],
        gate: ModelGate,
        engine: Callable[[], EngineClient],
        running: Callable[[], dict[ConversationId, TurnId]],
        log: Note,
    ) -> None:
        self._store = store
        self._gate = gate
        self._engine = engine
        self._running = running
        self._log = log

    def fork(self, conversation: ConversationId, title: str = "", last: MessageId | None = None) -> Conversation:
        """A copy, up to the message `last`, that shares all KV pages up to there."""
        began, store = time.perf_counter(), self._store()
        copy = store.fork(conversation, title, last)
        kept = len(history(in_prompt(store.messages(copy.id))))
        identity, computed = store.computed(copy.id)
        store.set_computed(copy.id, identity, min(computed, kept))
        self._note("fork", copy.id, began, kept, source=conversation)
        return copy

    def unread(self, conversation: ConversationId) -> tuple[int, float | None]:
        """How many tokens of its history the next question has to read again, and in about how many seconds (None while
        this machine's rate is unknown). Raises UserError without a model."""
        self._gate.current()
        tokens = history(in_prompt(self._store().messages(conversation)))
        price = self._engine().quote(tokens, self._store().cuts.moved(conversation).shifts)
        return (price.new, price.seconds or None) if price.new > 1 else (0, None)  # 1: the token sampled last

    def trim(self, conversation: ConversationId, message: MessageId) -> Revised:
        """Removes what comes after that message; the state of what stays is not touched."""
        with self._at_rest(conversation):
            began, messages = time.perf_counter(), self._store().messages(conversation)
            place = _place(messages, message)
            gone = messages[place + 1 :]
            if not gone:
                raise UserError("Nothing comes after this message.", "It is the last one.", "Choose an earlier one.")
            kept = history(in_prompt(messages[: place + 1]))
            moment = self._store().cuts.set_aside(conversation, [m.id for m in gone], len(kept), self._page_tokens())
            spent = _since(began)
        left = _left(messages, messages[: place + 1])
        return self._noted("trim", Revised(conversation, len(gone), left, aside=moment, milliseconds=spent))

    def bring_back(self, revised: Revised) -> None:
        """Undoes `trim` or `remove_turn`; what was asked since a trim goes aside for it."""
        with self._at_rest(revised.conversation):
            began = time.perf_counter()
            if revised.aside is not None:
                self._store().cuts.take_back_aside(revised.conversation, revised.aside, self._page_tokens())
            if revised.cut is not None:
                self._store().cuts.take_back_cut(revised.cut)
        self._note_back("undo", revised.conversation, began, revised.change)

    def bring_back_turns(self, conversation: ConversationId, message: MessageId | None = None) -> None:
        """The turns that left the context together with that message are in it again; None: those that left last.
        Raises UserError where later changes rest on their removal."""
        with self._at_rest(conversation):
            began, cut = time.perf_counter(), self._store().cuts.holding(conversation, message)
            if cut is None:
                raise NothingToDo("The turn is in the context.", "It has come back already.", "Nothing has to be done.")
            self._store().cuts.take_back_cut(cut)
        self._note_back("undo", conversation, began, change_name(cut))

    def undo_last(self, conversation: ConversationId) -> int:
        """Takes back the last removal, edit or other answer. What was asked in its place goes aside, `redo_last` brings
        it back; returns how many messages that are."""
        with self._at_rest(conversation):
            began, last = time.perf_counter(), self._store().cuts.last_change(conversation)
            gone = self._store().cuts.take_back_last(conversation, self._page_tokens())
        self._note_back("undo", conversation, began, last, set_aside=gone or None)
        return gone

    def redo_last(self, conversation: ConversationId) -> int:
        """Does again what the last undo took back, in place of what stands there now, as long as nothing else was
        changed since; returns how many messages go aside for it."""
        with self._at_rest(conversation):
            movable = self._has_model() and not self._engine().shift_refused()
            began, last = time.perf_counter(), self._store().cuts.last_undo(conversation)
            gone = self._store().cuts.redo(conversation, self._page_tokens(), movable)
        self._note_back("redo", conversation, began, last, set_aside=gone or None)
        return gone

    def remove_turn(self, conversation: ConversationId, message: MessageId, way: HowMoved = "recompute") -> Revised:
        """Takes the turn of that message, question and answer, out of the context. The last turn is removed for good.

        `way` "shift": what follows is moved up instead of computed again; approximate.
        """
        with self._at_rest(conversation):
            began, messages = time.perf_counter(), self._store().messages(conversation)
            question = _question_of(messages, message)
            inside = in_prompt(messages)
            if not question.tokens.ids:
                raise UserError("The model has not seen this.", "The catalogue answered.", "Nothing has to go.")
            if not question.in_context:
                raise UserError("The turn is not in the context.", "It has left it already.", "It stays readable here.")
            if question not in inside:
                done = self._remove_unanswered(conversation, messages, question)
                return self._noted("take_out", replace(done, milliseconds=_since(began)))
            following = [m for m in inside[inside.index(question) + 1 :] if m.role == "user"]
            if not following:
                done = self._remove_last(conversation, messages, question)
                return self._noted("take_out", replace(done, milliseconds=_since(began)))
            if way == "shift" and (refused := self._engine().shift_refused()):
                raise UserError("What follows cannot be moved up.", refused, "Let it be computed again.")
            number = self._store().cuts.apply(conversation, Cut(question.id, following[0].id, way), self._page_tokens())
            spent = _since(began)
        done = self._price(conversation, inside, question, following[0], way, number)
        return self._noted("take_out", replace(done, milliseconds=spent), way)

    # --- within -------------------------------------------------------------------------------------
    def _note(
        self, name: str, conversation: ConversationId, began: float, tokens: int | None = None, **fields: object
    ) -> None:
        """In the log, and for the next turn."""
        spent = _since(began)
        self._store().operations.note(conversation, Operation(name, spent, tokens))
        self._log(name, conversation, tokens=tokens, milliseconds=spent, **fields)

    def _note_back(self, name: str, conversation: ConversationId, began: float, back: str, **fields: object) -> None:
        """The change that it takes `back` is not told with the next turn, nor is this, if no turn has come between."""
        spent, operations, cuts = _since(began), self._store().operations, self._store().cuts
        if not operations.cancel(conversation, back):
            made = cuts.last_undo(conversation) if name == "undo" else cuts.last_change(conversation)
            operations.note(conversation, Operation(name, spent), made)
        self._log(name, conversation, milliseconds=spent, **fields)

    def _noted(self, name: str, done: Revised, way: str | None = None) -> Revised:
        tokens, spent = done.tokens, done.milliseconds
        self._store().operations.note(done.conversation, Operation(name, spent, tokens), done.change)
        self._log(name, done.conversation, messages=done.messages, tokens=tokens, way=way, milliseconds=spent or None)
        return done

    def _remove_last(self, conversation: ConversationId, messages: Sequence[Message], question: Message) -> Revised:
        place = _place(messages, question.id)
        gone, kept = messages[place:], history(followed(messages[:place]))
        moment = self._store().cuts.set_aside(conversation, [m.id for m in gone], len(kept), self._page_tokens())
        return Revised(conversation, len(gone), _left(messages, messages[:place]), aside=moment)

    def _remove_unanswered(
        self, conversation: ConversationId, messages: Sequence[Message], question: Message
    ) -> Revised:
        """It stands in no prompt since the next question was asked: nothing else changes."""
        gone, kept = [m.id for m in exchange_of(question, messages)], len(history(in_prompt(messages)))
        moment = self._store().cuts.set_aside(conversation, gone, kept, self._page_tokens(), alone=True)
        return Revised(conversation, len(gone), 0, aside=moment)

    def _price(
        self,
        conversation: ConversationId,
        inside: Sequence[Message],
        question: Message,
        following: Message,
        way: HowMoved,
        number: CutId,
    ) -> Revised:
        gone = inside[inside.index(question) : inside.index(following)]
        behind = len(history(inside[inside.index(following) :]))
        store = self._store()
        now, moved = history(in_prompt(store.messages(conversation))), store.cuts.moved(conversation)
        done = Revised(conversation, len(gone), len(history(inside)) - len(now), behind, behind, cut=number)
        if not self._has_model():
            return replace(done, approximate=way == "shift")
        plain, price = self._engine().quote(now, moved.shifts), self._engine().quote(now, moved.shifts, moved.removal)
        up = len(now) - price.new - moved.removal.position if moved.removal and price.new < plain.new else 0
        return replace(done, again=price.new, seconds=price.seconds or None, approximate=way == "shift", moved=up)

    @contextmanager
    def _at_rest(self, conversation: ConversationId) -> Iterator[None]:
        if conversation in self._running():
            raise UserError("This conversation is being answered.", "One thing at a time.", "Wait, or stop it first.")
        with self._store().lease(conversation):
            yield

    def _has_model(self) -> bool:
        try:
            self._gate.current()
        except UserError:
            return False
        return True

    def _page_tokens(self) -> int:
        """Of the loaded model; without one no moved state can be kept, whatever is said here."""
        return self._gate.current().page_tokens if self._has_model() else 1


def _left(before: Sequence[Message], after: Sequence[Message]) -> int:
    """Tokens that have left the context; those of a question without an answer are not in it."""
    return len(history(followed(before))) - len(history(followed(after)))


def _since(began: float) -> float:
    """Milliseconds."""
    return (time.perf_counter() - began) * 1e3


def _place(messages: Sequence[Message], wanted: MessageId) -> int:
    for place, message in enumerate(messages):
        if message.id == wanted:
            return place
    raise UserError("The message is not there.", "It has been removed.", "Open the conversation again.")


def _question_of(messages: Sequence[Message], wanted: MessageId) -> Message:
    """The question that the message is, or answers."""
    asked = [message for message in messages[: _place(messages, wanted) + 1] if message.role == "user"]
    if not asked:
        raise UserError("There is no question to this message.", "It begins the conversation.", "Trim behind it.")
    return asked[-1]
