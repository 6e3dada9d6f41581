"""Turns that run now, by conversation: what a transcript needs to show one that is opened in the middle."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from app.core.events import TurnPhase, TurnStarted, TurnText
from app.core.records import Message, MessageId
from engine.messages import ConversationId, Tokens, TurnId

PENDING_QUESTION = MessageId(-1)
PENDING_ANSWER = MessageId(-2)


@dataclass(frozen=True)
class LiveTurn:
    """`question` None: an answer is regenerated or continued. `text`: the answer so far."""

    conversation: ConversationId
    question: Message | None
    answer: Message
    turn: TurnId | None = None
    text: str = ""
    reasoning: str = ""
    phase: TurnPhase | None = None


def pending(conversation: ConversationId, question: str | None) -> LiveTurn:
    """A turn that was asked for and has not begun."""
    asked = None if question is None else _message(PENDING_QUESTION, conversation, "user", question)
    return LiveTurn(conversation, asked, _message(PENDING_ANSWER, conversation, "assistant", ""))


def _message(id: MessageId, conversation: ConversationId, role: str, text: str) -> Message:
    return Message(id, conversation, "user" if role == "user" else "assistant", text, Tokens(), time.time())


class LiveTurns:
    """One running turn per conversation at most."""

    def __init__(self) -> None:
        self._turns: dict[ConversationId, LiveTurn] = {}

    def get(self, conversation: ConversationId | None) -> LiveTurn | None:
        return self._turns.get(conversation) if conversation is not None else None

    def ask(self, conversation: ConversationId, question: str | None) -> LiveTurn:
        self._turns[conversation] = pending(conversation, question)
        return self._turns[conversation]

    def set_turn(self, conversation: ConversationId, turn: TurnId) -> None:
        live = self._turns.get(conversation)
        if live is not None and live.turn is None:
            self._turns[conversation] = replace(live, turn=turn)

    def begin(self, event: TurnStarted) -> LiveTurn:
        earlier = event.assistant_message if event.continued else None
        text, reasoning = (earlier.text, earlier.reasoning) if earlier else ("", "")
        answer = event.assistant_message
        question = None if event.continued else event.user_message
        phase = self._turns[event.conversation].phase if event.conversation in self._turns else None
        live = LiveTurn(event.conversation, question, answer, event.turn, text, reasoning, phase)
        self._turns[event.conversation] = live
        return live

    def show_phase(self, event: TurnPhase) -> None:
        live = self._turns.get(event.conversation)
        if live is not None:
            self._turns[event.conversation] = replace(live, turn=event.turn, phase=event)

    def append(self, event: TurnText) -> None:
        live = self._turns.get(event.conversation)
        if live is None:
            return
        if event.part == "reasoning":
            grown = replace(live, reasoning=live.reasoning + event.delta)
        else:
            grown = replace(live, text=live.text + event.delta)
        self._turns[event.conversation] = grown

    def end(self, conversation: ConversationId) -> LiveTurn | None:
        return self._turns.pop(conversation, None)

    def running(self) -> list[LiveTurn]:
        return list(self._turns.values())
