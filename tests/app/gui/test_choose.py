"""Choosing a document for a conversation where the library holds more than a menu can."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.library.choose import DocumentChooser
from rag.types import Document, DocumentId

MANY = [
    Document(DocumentId(n), f"{name} {n}.pdf", Path(f"{n}.pdf"), "", 1, 1, "ready", 0.0)
    for n, name in enumerate(["Annual report", "Field guide"] * 60, 1)
]


@pytest.fixture
def chosen() -> list[int]:
    return []


@pytest.fixture
def dialog(qtbot: QtBot, chosen: list[int]) -> DocumentChooser:
    made = DocumentChooser(MANY, chosen.append, None)
    made.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    qtbot.addWidget(made)
    made.show()
    return made


def test_all_are_listed_and_one_is_found_by_its_words(dialog: DocumentChooser, chosen: list[int], qtbot: QtBot) -> None:
    assert dialog.found.text() == "120 documents"
    qtbot.keyClicks(dialog.search, "95 report")
    assert dialog.found.text() == "1 document"
    qtbot.keyClick(dialog.search, Qt.Key.Key_Return)
    assert (chosen, dialog.isVisible()) == ([95], False)


def test_the_oldest_is_taken_from_the_list(dialog: DocumentChooser, chosen: list[int], qtbot: QtBot) -> None:
    dialog.list.setCurrentIndex(dialog.list.model().index(119, 0))
    (add,) = (button for button in dialog.findChildren(QPushButton) if button.text() == "Add")
    qtbot.mouseClick(add, Qt.MouseButton.LeftButton)
    assert chosen == [120]


def test_nothing_is_added_where_nothing_has_the_name(dialog: DocumentChooser, chosen: list[int], qtbot: QtBot) -> None:
    qtbot.keyClicks(dialog.search, "novel")
    qtbot.keyClick(dialog.search, Qt.Key.Key_Return)
    assert (chosen, dialog.isVisible()) == ([], True)
    assert dialog.found.text() == "No document has this name."
