"""The question being written: kept per conversation, priced while it grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.chat.composer import Composer
from app.services import Services
from engine.messages import ConversationId

if TYPE_CHECKING:
    from app.core.pricing import Price


class Draft(QObject):
    """Prices and stores what stands in the composer, for the conversation it belongs to."""

    def __init__(self, services: Services, composer: Composer) -> None:
        super().__init__(composer)
        self._services = services
        self._composer = composer
        self._conversation: ConversationId | None = None
        self._number = 0
        self._has_model = False
        composer.price_wanted.connect(self._price)
        composer.draft_changed.connect(self._keep)

    def belong_to(self, conversation: ConversationId) -> None:
        self._conversation = conversation
        self._number += 1

    def leave(self) -> None:
        """Another conversation comes: what was not stored yet is stored now."""
        text = self._composer.take_unsaved_draft()
        if text is not None:
            self._keep(text)

    def set_model(self, has_model: bool, why_not: str) -> None:
        """Whether questions can be sent; `why_not` is shown otherwise."""
        self._has_model = has_model
        self._composer.block("" if has_model else why_not)
        if has_model:
            self._composer.price_again()
        else:
            self._composer.meter.say(why_not)

    def _keep(self, text: str) -> None:
        conversation, store = self._conversation, self._services.workspace
        if conversation is not None:
            self._services.tasks.write(lambda: store.conversations.set_draft(conversation, text))

    def _price(self, text: str) -> None:
        conversation, workspace = self._conversation, self._services.workspace
        if conversation is None or not self._has_model:
            return
        self._number += 1
        number = self._number
        edited = self._composer.editing.message
        instead_of = edited.id if edited is not None else None

        def work() -> Price:
            price: Price = workspace.price(conversation, text, instead_of)
            if text.strip() and price.passage_tokens:
                workspace.documents.prepare_search()
            return price

        self._services.tasks.read(work, lambda price: self._show(number, price), not_yet)

    def _show(self, number: int, price: Price) -> None:
        """A price that was overtaken by another letter is dropped."""
        if number == self._number and self._has_model:
            self._composer.show_price(price)


def not_yet(error: Exception) -> None:
    """No model is loaded yet: there is no price and nothing to focus, and nothing to tell."""
