"""The middle column: header, transcript, composer. It shows; app.chat.controller decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import shiboken6
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QScrollArea, QSizePolicy, QStackedWidget, QVBoxLayout, QWidget

from app.chat.chips import ChipFace
from app.chat.composer import Composer
from app.chat.header import Header
from app.chat.overflow import OverflowCard
from app.chat.transcript import COLUMN_WIDTH, Transcript
from app.core.errors import Overrun, UserError, as_user_error
from app.core.records import Conversation
from app.models.offer import ModelOffer
from app.services import Services
from app.widgets.cards import EmptyState, ErrorCard, button
from app.widgets.fitting import FittingScroll
from app.widgets.format import shortened
from app.widgets.layouts import clear_layout

if TYPE_CHECKING:
    from app.core.pricing import Price
    from engine.overflow import OverflowOption

_SUGGESTIONS = ("What is this document about?", "List its main points.", "Which terms does it define?")

LEAST_WAYS = 210
LONGEST_NAME = 32  # characters; a name has no places to break it at


class ChatPanel(QWidget):
    """Signals:
    add_wanted, sample_wanted: the reader wants to add PDFs, or to try the sample document.
    shown_wanted: the reader wants to ask about the document that is open beside the chat.
    way_chosen: how to go on in a full conversation (argument: as OverflowCard.chosen).
    """

    way_chosen = Signal(str)
    shown_wanted = Signal()
    add_wanted = Signal()
    sample_wanted = Signal()

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._theme = services.theme
        self._has_model = True
        self.header = Header(services.theme)
        self.transcript = Transcript(services.theme)
        self.composer = Composer(services.theme)
        self.offer = ModelOffer(services)
        self.empty = EmptyState(services.theme, "chat", "Ask about a PDF", "Drop PDFs anywhere on the window.")
        self._empty_page = QScrollArea(widgetResizable=True)  # it scrolls in a low window
        self._empty_page.setFrameShape(QScrollArea.Shape.NoFrame)
        self._empty_page.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._suggestions = QWidget()
        self._adding = (
            self.empty.add_button("Add PDFs…", self.add_wanted.emit),
            self.empty.add_button("Try the sample document", self.sample_wanted.emit),
        )
        self._about = button("", self.shown_wanted.emit, "primary")
        self._about.hide()
        self._notices = QVBoxLayout()
        self._ways: OverflowCard | None = None
        self._ways_shown: object = None
        self.composer.priced.connect(self._priced)
        self._middle = QStackedWidget()
        self.foot = QWidget()  # cards and composer: what messages at the foot of the window stay above
        self._lay_out()
        self.show_empty(False)  # until the messages were read

    def show_conversation(self, conversation: Conversation, documents: Sequence[ChipFace]) -> None:
        self.header.show_conversation(conversation, documents)
        self._suggestions.setVisible(bool(documents))
        for made in self._adding:
            self._set_shown(made, not documents)
        if documents:
            self.empty.title.setText(
                f"Ask about {shortened(documents[0].name, LONGEST_NAME)}"
                if len(documents) == 1
                else "Ask about your documents"
            )
            self.empty.hint.setText("Answers name the page and the passage; a click opens them.")
        else:
            self.empty.title.setText("Ask about a PDF")
            self.empty.hint.setText("Drop PDFs anywhere on the window, or pick one from the library.")

    def offer_document(self, name: str) -> None:
        """One that is open beside the chat and not attached; "": there is none."""
        self._about.setText(f"Ask about {shortened(name, LONGEST_NAME)}".replace("&", "&&"))
        self._set_shown(self._about, bool(name))

    def show_empty(self, empty: bool) -> None:
        """The page that is not shown takes no room from the other."""
        rule = QSizePolicy.Policy.Preferred if empty else QSizePolicy.Policy.Ignored
        self._empty_page.setSizePolicy(QSizePolicy.Policy.Preferred, rule)
        self._middle.setCurrentIndex(0 if empty else 1)

    def show_model(self, has_model: bool, lost: Path | None = None) -> None:
        """Without a model the offer to get one stands above everything. `lost`: as ModelOffer.show_lost."""
        if lost is not None:
            self.offer.show_lost(lost)
        self._set_shown(self.offer_place, not has_model)

    def _set_shown(self, part: QWidget, shown: bool) -> None:
        """The focus of what disappears goes to the composer; Qt would give it to whatever comes next."""
        focused = QApplication.focusWidget()
        leaving = not shown and focused is not None and (part is focused or part.isAncestorOf(focused))
        part.setVisible(shown)
        if leaving:
            self.composer.editor.setFocus()

    def show_model_error(self, error: Exception) -> None:
        self.show_model(False)
        self.offer.show_error(error)

    def show_failure(self, error: Exception) -> None:
        self.show_error(as_user_error(error))

    def show_error(
        self, error: UserError, again: Callable[[], object] | None = None, what: str = "Try again"
    ) -> ErrorCard:
        """Above the composer, until it is dismissed or the next question is sent. `what`: a button for `again`."""
        self.clear_errors()
        card = ErrorCard(self._theme, error)
        if again is not None:
            card.add_button(what, again)
        card.add_dismiss()
        card.dismissed.connect(self.clear_errors)
        self._notices.addWidget(card)
        return card

    def shows_error(self, card: ErrorCard) -> bool:
        return shiboken6.isValid(card) and self._notices.indexOf(card) >= 0

    def show_ways(
        self, overrun: Overrun, ways: Sequence[OverflowOption], rate_known: bool, whole: bool = False
    ) -> None:
        """How to go on in a full conversation, above the composer; the same again changes nothing."""
        wanted = (overrun, tuple(ways), rate_known, whole)
        if wanted == self._ways_shown:
            return
        self.clear_ways()
        self._ways_shown = wanted
        self._ways = OverflowCard(self._theme, overrun, ways, rate_known, whole)
        self._ways.chosen.connect(self.way_chosen)
        self._ways_place.addWidget(FittingScroll(self._ways, LEAST_WAYS))

    def clear_ways(self) -> None:
        self._ways_shown = None
        self._ways = None
        clear_layout(self._ways_place)

    def _priced(self, price: Price | None, has_text: bool) -> None:
        if price is not None and price.overflow and price.ways and has_text:
            overrun = Overrun(price.total, price.reserve, price.context)
            self.show_ways(overrun, price.ways, price.seconds is not None, price.mode == "whole" and price.fresh)
        else:
            self.clear_ways()

    def clear_errors(self) -> None:
        clear_layout(self._notices)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """What stands at the foot is as wide as the messages above it."""
        super().resizeEvent(event)
        side = max(0, (event.size().width() - COLUMN_WIDTH - 2 * 20) // 2)
        margins = self.foot.layout().contentsMargins()
        self.foot.layout().setContentsMargins(side, margins.top(), side, margins.bottom())
        self.composer.editor.grow()

    def _suggest(self, text: str) -> None:
        self.composer.editor.setPlainText(text)
        self.composer.editor.moveCursor(self.composer.editor.textCursor().MoveOperation.End)
        self.composer.editor.setFocus()

    def _lay_out(self) -> None:
        suggestions = QVBoxLayout(self._suggestions)
        suggestions.setContentsMargins(0, 8, 0, 0)
        suggestions.setSpacing(8)
        for text in _SUGGESTIONS:
            made = button(text, lambda text=text: self._suggest(text))
            suggestions.addWidget(made, 0, Qt.AlignmentFlag.AlignHCenter)
        self.empty.add_centred(self._about)
        self.empty.add_widget(self._suggestions)
        self.empty.setObjectName("page")
        self._empty_page.setWidget(self.empty)
        self._middle.addWidget(self._empty_page)
        self._middle.addWidget(self.transcript)
        place = QWidget()
        offering = QHBoxLayout(place)
        offering.setContentsMargins(20, 16, 20, 0)
        offering.addWidget(self.offer, 1, Qt.AlignmentFlag.AlignTop)
        self.offer_place = FittingScroll(place, 150)
        self.offer_place.hide()
        self._notices.setContentsMargins(20, 0, 20, 4)
        self._ways_place = QVBoxLayout()
        self._ways_place.setContentsMargins(20, 0, 20, 4)
        below = QVBoxLayout(self.foot)
        below.setContentsMargins(0, 0, 0, 0)
        below.setSpacing(0)
        below.addLayout(self._notices)
        below.addLayout(self._ways_place)
        below.addWidget(self.composer)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.header)
        layout.addWidget(self.offer_place)
        layout.addWidget(self._middle, 1)
        layout.addWidget(self.foot)
