"""What the Reader shows for a conversation: its own document, where it was last read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from app.core.records import Conversation
from app.reader.page_view import Place
from app.reader.panel import Visit
from engine.messages import ConversationId

if TYPE_CHECKING:
    from app.window import Window

MOST_KEPT = 200
Stored = tuple[int, int, float]  # document, page, part of the page


class Reading:
    """`stored`: where conversations were left when the window was closed, the latest last."""

    def __init__(self, window: Window, stored: Mapping[str, object]) -> None:
        self._window = window
        self._visits = {ConversationId(id): visit for id, kept in stored.items() if (visit := _visit(kept)) is not None}
        self._followed: tuple[ConversationId, bool] | None = None  # the conversation, and whether it had documents

    def stay(self, conversation: ConversationId) -> None:
        """What is open was open in this conversation, be it a document of it or not."""
        self._followed = (conversation, True)

    def leave(self) -> None:
        """Keeps the place of the shown conversation."""
        shown, visit = self._window.controller.conversation, self._window.reader.current()
        if shown is not None and visit is not None and visit.document in shown.document_ids:
            self._visits.pop(shown.id, None)
            self._visits[shown.id] = visit

    def offer(self) -> None:
        """Who looks at a document in an empty conversation most likely wants to ask about it."""
        window = self._window
        chosen, visit = window.controller.conversation, window.reader.current()
        free = chosen is not None and not chosen.document_ids and visit is not None
        window.chat.offer_document(window.library.rows.names().get(visit.document, "") if free and visit else "")

    def attach_shown(self) -> None:
        if (visit := self._window.reader.current()) is not None:
            self._window.controller.changing.attach(visit.document)

    def follow(self) -> None:
        """The reader never stays empty, or at a document of another conversation, while this one has its own. What is
        opened from elsewhere later stays."""
        shown, reader = self._window.controller.conversation, self._window.reader
        if shown is None:
            return
        own = self._own(shown)
        if not own:
            self._followed = self._followed if shown.document_ids else (shown.id, False)
            return
        came, self._followed = self._followed != (shown.id, True), (shown.id, True)
        visit, open_now = self._visits.get(shown.id), reader.wanted()
        if came and visit is not None and visit.document in own:
            if visit != reader.current():
                reader.open(visit.document, visit.place)
        elif open_now is None or (came and open_now not in own):
            reader.open(own[0])

    def state(self) -> dict[str, Stored]:
        self.leave()
        latest = list(self._visits.items())[-MOST_KEPT:]
        return {id: (visit.document, visit.place.page, visit.place.fraction) for id, visit in latest}

    def _own(self, conversation: Conversation | None) -> list[int]:
        """Its documents that are in the library; none while those are not known yet."""
        names = self._window.library.rows.names()
        return [] if conversation is None else [id for id in conversation.document_ids if id in names]


def _visit(kept: object) -> Visit | None:
    match kept:
        case [int(document), int(page), float(fraction) | int(fraction)]:
            return Visit(document, Place(page, float(fraction)))
    return None
