"""The context meter: what the next question costs and how full the context is, before it is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app.core.errors import Overrun
from app.widgets.bars import Part, StackBar
from app.widgets.cards import label, set_role
from app.widgets.elided import ElidedLabel
from app.widgets.format import about, count, plural
from app.widgets.theme import Theme

if TYPE_CHECKING:
    from app.core.pricing import Price

BAR, NARROW_BAR, NARROW = 110, 64, 400


def price_words(price: Price, has_text: bool) -> str:
    """`1,240 new tokens, ~3 s; then 3,100 of 8,192 used`; without a question what is used now, of the context."""
    return price_forms(price, has_text)[0]


def price_forms(price: Price, has_text: bool) -> tuple[str, ...]:
    """The price in shorter and shorter words; the wait stays to the last."""
    if not has_text and price.fresh:
        used = f"{count(price.total)} of {count(price.context)}"
        return f"{used} tokens with the documents", f"{used} with the documents", used
    if not has_text:
        used = f"{count(price.history)} of {count(price.context)}"
        return f"{used} tokens used", f"{used} used", used
    wait = "" if price.seconds is None else about(price.seconds)
    after = f", {wait}" if wait else ""
    if price.mode == "survey":
        reads = f"about {plural(price.new_tokens, 'token')}{after}"
        return tuple(filter(None, (f"reads all of it: {reads}{' and the notes' if wait else ''}", reads, wait)))
    used = f"then {count(price.total)} of {count(price.context)} used"
    if price.overflow and price.reserve:
        used = f"{count(price.total)} + {price.reserve} for the answer, of {count(price.context)}"
    new = f"{'up to ' if price.passage_tokens else ''}{plural(price.new_tokens, 'new token')}{after}"
    few = f"{'≤ ' if price.passage_tokens else ''}{count(price.new_tokens)} new{after}"
    return tuple(filter(None, (f"{new}; {used}", new, few, wait)))


class Meter(QWidget):
    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._words = ElidedLabel()
        self._words.setProperty("role", "muted")
        self._bar = StackBar(theme, legend=False, height=6)
        self._bar.setFixedWidth(BAR)
        self._bar.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._warning = label("", "bad")
        self._warning.hide()
        row = QHBoxLayout()
        row.setSpacing(10)
        row.addWidget(self._words, 1)
        row.addWidget(self._bar, 0, Qt.AlignmentFlag.AlignVCenter)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 0, 4, 0)
        layout.setSpacing(3)
        layout.addWidget(self._warning)
        layout.addLayout(row)
        self.setAccessibleName("Context meter")

    def show_price(self, price: Price | None, has_text: bool) -> None:
        self._bar.setVisible(price is not None)
        if price is None:
            self._words.setText("")
            self._warning.hide()
            return
        self._words.show_forms(price_forms(price, has_text))
        self._words.setToolTip(f"{self._words.text()}\n{_detail(price)}")
        new = price.new_tokens - (0 if has_text else price.passage_tokens)
        parts = [
            Part("reused", price.reused_tokens, count(price.reused_tokens), "bar_restore"),
            Part("new", new, count(new), "bar_prefill"),
        ]
        self._bar.show_parts(parts, price.context)
        self._warning.setVisible(price.overflow and not price.ways)  # else a card above says it
        self._warning.setText(_overflow_words(price))
        self._fit()
        set_role(self._words, "bad" if price.overflow else "muted")
        self.setAccessibleDescription(self._words.text())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """All lines of the warning, however low the window is; a shorter bar in a narrow one."""
        self._bar.setFixedWidth(BAR if self.width() >= NARROW else NARROW_BAR)
        margins = self.layout().contentsMargins()
        inside = self.width() - margins.left() - margins.right()
        self._warning.setMinimumHeight(max(0, self._warning.heightForWidth(max(40, inside))))

    def say(self, text: str) -> None:
        """Instead of a price: why there is none."""
        self._bar.hide()
        self._warning.hide()
        self._words.setText(text)
        set_role(self._words, "muted")


def _overflow_words(price: Price) -> str:
    """What does not fit and what helps: a question longer than the context fits no conversation."""
    over = f"{Overrun(price.total, price.reserve, price.context).sum}."
    if price.new_tokens - price.passage_tokens > price.context:
        return f"{over} Shorten it by more than that, or use a model with a larger context."
    return f"{over} {price.what_would_drop}".strip()


def _detail(price: Price) -> str:
    lines = [
        f"Reused from memory: {plural(price.reused_memory, 'token')}",
        f"Reused from disk: {plural(price.reused_disk, 'token')}",
        f"New: {plural(price.new_tokens, 'token')}",
    ]
    if price.passage_tokens:
        lines.append(f"of which passages, at most: {count(price.passage_tokens)}")
    return "\n".join(lines)
