"""The card above the composer when a conversation is full: every way to go on, with its price."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.core.errors import Overrun
from app.widgets.cards import button, label
from app.widgets.format import count, duration, plural
from app.widgets.theme import Theme

if TYPE_CHECKING:
    from engine.overflow import OverflowOption

_NAMES = {
    "recompute": "Leave out old turns",
    "shift": "Leave out, move the rest up",
    "fork": "Go on with a summary",
    "larger": "Larger context",
}
PASSAGES = "passages"


def way_words(option: OverflowOption, rate_known: bool) -> str:
    """What the way does and costs: `The oldest 3 turns leave the context; 812 tokens are read again, ~2 s. Exact.`"""
    wait = f", ~{duration(option.seconds)}" if rate_known else ""  # fine enough to tell short ones apart
    turns = "The oldest turn leaves" if option.turns_dropped == 1 else f"The oldest {option.turns_dropped} turns leave"
    if option.way == "recompute":
        return f"{turns} the context; {plural(option.computed, 'token')} are read{wait}. Exact."
    if option.way == "shift":
        read = plural(option.computed, "token")
        return f"{turns}; only {read} are read{wait}. Approximate: what stays was read with them."
    if option.way == "fork":
        return f"A new conversation on the same documents begins with the model's summary{wait}."
    return f"The model is loaded with {count(option.context)} tokens; everything stays{wait}."


class OverflowCard(QWidget):
    """`whole`: a document would be read whole; passages of it are offered too.

    Signals:
        chosen: argument: the way's name, see engine.overflow.OverflowWay, or PASSAGES.
    """

    chosen = Signal(str)

    def __init__(
        self, theme: Theme, overrun: Overrun, ways: Sequence[OverflowOption], rate_known: bool, whole: bool = False
    ) -> None:
        super().__init__()
        self.setObjectName("warnCard")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        title = "This conversation is full."
        self.setAccessibleName(f"{title} {overrun.sum}.")
        picture = QLabel(pixmap=theme.pixmap("warning", "warn", 18))
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(picture, 0, Qt.AlignmentFlag.AlignTop)
        head.addWidget(label(f"{title} Choose how to go on.", "title"), 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 10, 12, 10)
        layout.setSpacing(3)
        layout.addLayout(head)
        layout.addWidget(label(f"{overrun.sum}."))
        self.buttons: dict[str, QPushButton] = {}
        if whole:
            self._add(PASSAGES, "Look passages up", "The passages that fit the question are read instead of all.", True)
        shown = ways if any(option.turns_dropped for option in ways) else [o for o in ways if o.way == "larger"]
        for option in shown:
            words = option.refused or way_words(option, rate_known)
            self._add(option.way, _NAMES[option.way], words, not option.refused)

    def _add(self, way: str, name: str, words: str, able: bool) -> None:
        """The first that can be had is the one that is suggested."""
        first = able and not any(made.isEnabled() for made in self.buttons.values())
        made = button(name, lambda: self.chosen.emit(way), "primary" if first else "")
        made.setEnabled(able)
        made.setAccessibleDescription(words)
        layout = self.layout()
        layout.addSpacing(4)
        layout.addWidget(made, 0, Qt.AlignmentFlag.AlignLeft)
        layout.addWidget(label(words, "" if able else "muted"))
        self.buttons[way] = made
