"""Above the transcript: title, documents of the conversation as chips, and how they are read."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QButtonGroup, QHBoxLayout, QMenu, QToolButton, QVBoxLayout, QWidget

from app.chat.chips import GAP, Chip, ChipFace
from app.chat.scope import ScopeChip
from app.core.lookups import Scope
from app.core.records import Conversation, Mode
from app.widgets.elided import ElidedLabel
from app.widgets.fitting import FittingScroll
from app.widgets.flow import FlowLayout
from app.widgets.theme import Theme
from engine.messages import ModelLoaded, Reasoning

NARROW = 520
LEAST_CHIPS, MOST_CHIPS = 54, 114  # pixels: two rows, and nearly four; what is more scrolls
REASONING_WIDTH = 150
_MODES: tuple[tuple[Mode, str, str], ...] = (
    ("auto", "Auto", "Whole documents where they fit the context, passages otherwise"),
    ("whole", "Whole", "Read the documents completely, once"),
    ("passages", "Passages", "Find passages for each question"),
    ("survey", "Survey", "Read everything part by part for each question, with notes; takes its time"),
)


class ModeSwitch(QWidget):
    """Auto | Whole | Passages | Survey. Signals: chosen (argument: Mode)."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("How documents are read")
        self._group = QButtonGroup(self)
        self._buttons: dict[Mode, QToolButton] = {}
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        for mode, name, tip in _MODES:
            made = QToolButton(text=name, checkable=True, toolTip=tip)
            made.setProperty("kind", "segment")
            made.setAccessibleName(f"{name}: {tip}")
            made.clicked.connect(lambda _=False, mode=mode: self.chosen.emit(mode))
            self._group.addButton(made)
            self._buttons[mode] = made
            layout.addWidget(made)

    def show_mode(self, mode: Mode) -> None:
        self._buttons[mode].setChecked(True)


class ReasoningSwitch(QToolButton):
    """There only where the loaded model takes it: a button for on and off, a menu for how much. Signals: chosen
    (argument: Reasoning)."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__(text="Reasoning", checkable=True)
        self.setProperty("kind", "segment")
        self.setToolTip("Whether the model reasons before it answers; it is loaded again, what it has read is kept")
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.clicked.connect(lambda on: self.chosen.emit("on" if on else "off"))
        self.hide()

    def show_model(self, model: ModelLoaded) -> None:
        """Left to the template, a model that can reason does."""
        self.setVisible(bool(model.reasoning_choices))
        levels = [choice for choice in model.reasoning_choices if choice not in ("on", "off")]
        now = model.reasoning if model.reasoning in model.reasoning_choices else "auto"
        self.setText(f"Reasoning: {now}" if levels else "Reasoning")
        self.setMenu(self._menu(("auto", *model.reasoning_choices), now) if levels else None)
        self.setCheckable(not levels)
        self.setChecked(now != "off")
        shown = now if levels else "on" if self.isChecked() else "off"
        self.setAccessibleName(f"Reasoning before answers: {shown}")

    def _menu(self, choices: Sequence[Reasoning], now: Reasoning) -> QMenu:
        menu = QMenu(self)
        for choice in choices:
            action = menu.addAction(choice.capitalize(), lambda choice=choice: self.chosen.emit(choice))
            action.setCheckable(True)
            action.setChecked(choice == now)
        return menu


class Header(QWidget):
    """Signals: those of chips and switches; `attach` and `scope_wanted` with the button they came from;
    `scope_removed`."""

    opened = Signal(int)
    removed = Signal(int)
    mode_chosen = Signal(str)
    attach = Signal(object)
    scope_wanted = Signal(object)
    scope_removed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("header")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._theme = theme
        self._shown: tuple[ChipFace, ...] | None = None
        self._scope: Scope | None = None
        self._add: QToolButton | None = None
        self._title = ElidedLabel()
        self._title.setProperty("role", "title")
        self.modes = ModeSwitch()
        self.modes.chosen.connect(self.mode_chosen)
        self.reasoning = ReasoningSwitch()
        self._chips = QWidget()
        self._flow = FlowLayout(self._chips, GAP)
        self._top = top = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        top.setSpacing(8)
        top.addWidget(self._title, 1)
        self._switches = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._switches.setSpacing(8)
        for switch in (self.reasoning, self.modes):
            self._switches.addWidget(switch, 0, Qt.AlignmentFlag.AlignLeft)
        self._switches.addStretch(1)
        top.addLayout(self._switches)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(20, 10, 20, 8)
        layout.setSpacing(8)
        layout.addLayout(top)
        chips = FittingScroll(self._chips, LEAST_CHIPS)
        chips.setMaximumHeight(MOST_CHIPS)
        layout.addWidget(chips)
        font = self._title.font()
        font.setPointSizeF(font.pointSizeF() + 1.5)
        font.setBold(True)
        self._title.setFont(font)
        theme.changed.connect(self._redraw)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The title has a line of its own where both do not fit."""
        super().resizeEvent(event)
        self._arrange()

    def show_model(self, model: ModelLoaded) -> None:
        self.reasoning.show_model(model)
        self._arrange()

    def _arrange(self) -> None:
        needed = NARROW + (0 if self.reasoning.isHidden() else REASONING_WIDTH)
        _stack(self._top, self.width() < needed)
        _stack(self._switches, self.width() < NARROW - REASONING_WIDTH)
        short = self.width() < NARROW and len(self._shown or ()) > 1
        if self._add is not None:
            style = Qt.ToolButtonStyle.ToolButtonTextBesideIcon
            self._add.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly if short else style)
        for chip in self._chips.findChildren(Chip):
            chip.bound((self._chips.width() - GAP) // 2 if short else None)

    def show_conversation(self, conversation: Conversation, documents: Sequence[ChipFace]) -> None:
        """`documents`: in the order of attaching."""
        self._title.setText(conversation.title)
        self._title.setToolTip(self._title.text())
        self.modes.show_mode(conversation.mode)
        if tuple(documents) != self._shown or conversation.scope != self._scope:
            self._shown, self._scope = tuple(documents), conversation.scope
            self._fill()

    def _fill(self) -> None:
        self._flow.clear()
        self._add = None
        for face in self._shown or ():
            chip = Chip(self._theme, face)
            chip.opened.connect(self.opened)
            chip.removed.connect(self.removed)
            self._flow.addWidget(chip)
        self._add_scope()
        add = QToolButton(icon=self._theme.icon("attach"), iconSize=QSize(14, 14), text=" Add document")
        add.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        add.setFixedHeight(24)
        add.setAccessibleName("Add document")
        add.setToolTip("Add a document of the library, or a PDF")
        add.clicked.connect(lambda: self.attach.emit(add))
        self._add = add
        self._flow.addWidget(add)
        self._arrange()
        for made in self._chips.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly):
            if self._flow.indexOf(made) >= 0:
                made.show()  # at once: until then they would take no room
        self._chips.updateGeometry()

    def _add_scope(self) -> None:
        if self._scope is not None:
            chip = ScopeChip(self._theme, self._scope)
            chip.pressed.connect(lambda: self.scope_wanted.emit(chip))
            chip.removed.connect(self.scope_removed)
            self._flow.addWidget(chip)
        elif self._shown:
            everywhere = QToolButton(icon=self._theme.icon("search"), iconSize=QSize(14, 14), text=" All pages")
            everywhere.setToolTip("Where questions look: choose a chapter, pages or a collection")
            everywhere.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
            everywhere.setFixedHeight(24)
            everywhere.clicked.connect(lambda: self.scope_wanted.emit(everywhere))
            self._flow.addWidget(everywhere)

    def _redraw(self) -> None:
        if self._shown is not None:
            self._fill()


def _stack(layout: QBoxLayout, narrow: bool) -> None:
    layout.setDirection(QBoxLayout.Direction.TopToBottom if narrow else QBoxLayout.Direction.LeftToRight)
