"""What the transcript holds: whose messages, those of a running turn among them, and where the reader left off."""

from __future__ import annotations

from collections.abc import Sequence

from app.chat.live import LiveTurns
from app.chat.panel import ChatPanel
from app.core.records import Conversation, Message, MessageId
from engine.messages import ConversationId


class Screen:
    """Attributes: conversation (the one chosen), owner (whose messages the transcript holds; None until they were
    read), live (turns that run), elsewhere (another process is writing the last answer)."""

    def __init__(self, panel: ChatPanel) -> None:
        self._panel = panel
        self._places: dict[ConversationId, int | None] = {}
        self.conversation: Conversation | None = None
        self.owner: ConversationId | None = None
        self.live = LiveTurns()
        self.elsewhere = False

    def holds(self, conversation: ConversationId) -> bool:
        return self.owner == conversation

    def answering(self) -> MessageId | None:
        """The answer that is being written into the transcript."""
        live = self.live.get(self.owner)
        return None if live is None else live.answer.id

    def at_rest(self) -> ConversationId | None:
        """The chosen conversation when nothing of it is being answered."""
        shown = self.conversation
        return None if shown is None or self.live.get(shown.id) is not None else shown.id

    def is_empty(self) -> bool:
        """The chosen conversation has no message and none on the way."""
        if self.conversation is None or self.live.get(self.conversation.id) is not None:
            return self.conversation is None
        return self.holds(self.conversation.id) and self._panel.transcript.is_empty

    # --- places -----------------------------------------------------------------------------------
    def set_place(self, conversation: ConversationId, place: int | None) -> None:
        """Where the transcript stood when the window was closed; used when it opens."""
        self._places[conversation] = place

    def keep_place(self) -> None:
        if self.owner is not None:
            self._places[self.owner] = self._panel.transcript.place()

    def restore_place(self, conversation: ConversationId) -> None:
        self._panel.transcript.restore_place(self._places.get(conversation))

    # --- messages ---------------------------------------------------------------------------------
    def show(self, messages: Sequence[Message], elsewhere: bool = False) -> None:
        """Stored messages; a running turn's own follow them as they are. `elsewhere`: as the attribute."""
        self.elsewhere = elsewhere
        self._panel.composer.set_elsewhere(elsewhere)
        live = self.live.get(self.conversation.id if self.conversation else None)
        shown = list(messages)
        if live is not None:
            own = {live.answer.id, live.question.id if live.question else None}
            continued = [m for m in shown if m.id == live.answer.id and live.question is None]
            shown = [m for m in shown if m.id not in own or m in continued]
        transcript = self._panel.transcript
        transcript.show_messages(shown, elsewhere)
        if live is not None:
            if live.question is not None:
                transcript.add_question(live.question)
            transcript.begin_answer(live.answer, live.text, live.reasoning)
            if live.phase is not None:
                transcript.show_phase(live.phase)
        self._panel.show_empty(transcript.is_empty)
