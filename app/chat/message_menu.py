"""What can be done with one message: a menu, for the mouse and for the keyboard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtWidgets import QMenu, QWidget

from app.core.records import Message
from app.core.shown_numbers import renumbered
from app.widgets.clipboard import copy_text

Act = Callable[[Message], object]


@dataclass(frozen=True)
class MessageActs:
    """What the chat does with a message when asked to."""

    edit: Act
    fork: Act
    trim: Act
    remove: Act
    remove_moving: Act
    bring_back: Act
    undo: Act
    redo: Act


def message_menu(parent: QWidget, message: Message, acts: MessageActs, is_last: bool) -> QMenu:
    menu = QMenu(parent)
    menu.addAction("Copy", lambda: copy_text(renumbered(message.text, message.citations)))
    if message.reasoning:
        menu.addAction("Copy with reasoning", lambda: copy_text(_with_reasoning(message)))
    menu.addSeparator()
    if message.role == "user":
        menu.addAction("Edit and ask again", lambda: acts.edit(message))
    else:
        menu.addAction("Fork from here", lambda: acts.fork(message))
        trim = menu.addAction("Remove what follows", lambda: acts.trim(message))
        trim.setEnabled(not is_last)
    if message.tokens.ids and message.in_context:
        menu.addSeparator()
        menu.addAction("Remove this turn", lambda: acts.remove(message))
        moving = menu.addAction("Remove this turn, move the rest up (approximate)", lambda: acts.remove_moving(message))
        moving.setEnabled(not is_last)
    menu.addSeparator()
    left = message.tokens.ids and not message.in_context
    if left:
        menu.addAction("Bring back into the context", lambda: acts.bring_back(message))
    menu.addAction("Undo the last edit or removal", lambda: acts.undo(message))
    menu.addAction("Redo", lambda: acts.redo(message))
    return menu


def _with_reasoning(message: Message) -> str:
    return f"{message.reasoning}\n\n{renumbered(message.text, message.citations)}"
