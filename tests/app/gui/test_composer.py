"""Writing a question: keys, input methods, drafts, the price below."""

from __future__ import annotations

import time

import pytest
from PySide6.QtCore import QMimeData, Qt
from PySide6.QtGui import QInputMethodEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chat.composer import Composer
from app.chat.meter import price_words
from app.core.pricing import Price
from app.widgets.theme import Theme


@pytest.fixture
def composer(qtbot: QtBot, theme: Theme) -> Composer:
    made = Composer(theme)
    qtbot.addWidget(made)
    made.resize(600, 200)
    made.show()
    return made


def price(**changes: object) -> Price:
    values = {"new_tokens": 1240, "reused_tokens": 1860, "total": 3100, "context": 8192, "seconds": 3.2}
    return Price(**{**values, "overflow": False, "what_would_drop": "", **changes})


def test_enter_sends_and_clears(composer: Composer, qtbot: QtBot) -> None:
    qtbot.keyClicks(composer.editor, "  Why?  ")
    with qtbot.waitSignal(composer.sent) as sent:
        qtbot.keyClick(composer.editor, Qt.Key.Key_Return)
    assert sent.args == ["Why?"]
    assert composer.text() == ""


def test_shift_enter_makes_a_line(composer: Composer, qtbot: QtBot) -> None:
    qtbot.keyClicks(composer.editor, "a")
    qtbot.keyClick(composer.editor, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(composer.editor, "b")
    assert composer.text() == "a\nb"


def test_enter_belongs_to_an_input_method_while_it_composes(composer: Composer, qtbot: QtBot) -> None:
    sent: list[str] = []
    composer.sent.connect(sent.append)
    qtbot.keyClicks(composer.editor, "x")
    QApplication.sendEvent(composer.editor, QInputMethodEvent("にほ", []))
    qtbot.keyClick(composer.editor, Qt.Key.Key_Return)
    assert sent == []
    committed = QInputMethodEvent("", [])
    committed.setCommitString("日本")
    QApplication.sendEvent(composer.editor, committed)
    qtbot.keyClick(composer.editor, Qt.Key.Key_Return)
    assert [text.replace("\n", "") for text in sent] == ["x日本"]


def test_nothing_is_sent_while_an_answer_runs_or_no_model_is_there(composer: Composer, qtbot: QtBot) -> None:
    sent: list[str] = []
    composer.sent.connect(sent.append)
    qtbot.keyClicks(composer.editor, "x")
    composer.block("The model is loading")
    qtbot.keyClick(composer.editor, Qt.Key.Key_Return)
    composer.block("")
    composer.set_running(True)
    qtbot.keyClick(composer.editor, Qt.Key.Key_Return)
    assert sent == []
    assert composer.text().strip() == "x"


def test_draft_is_handed_over_once_it_settles(composer: Composer, qtbot: QtBot) -> None:
    with qtbot.waitSignals([composer.draft_changed, composer.price_wanted]):
        qtbot.keyClicks(composer.editor, "half a thought")
    assert composer.take_unsaved_draft() is None
    qtbot.keyClicks(composer.editor, "!")
    assert composer.take_unsaved_draft() == "half a thought!"


def test_price_says_what_a_question_costs() -> None:
    assert price_words(price(), True) == "1,240 new tokens, ~3 s; then 3,100 of 8,192 used"
    used = price_words(price(history=1_837, total=1_847), False)
    assert used == "1,837 of 8,192 tokens used", "as the cache panel says"
    assert price_words(price(fresh=True), False) == "3,100 of 8,192 tokens with the documents", "they are not read yet"
    assert price_words(price(passage_tokens=900, seconds=None), True).startswith("up to 1,240 new tokens;")


def test_overflow_is_shown_with_what_would_drop(composer: Composer) -> None:
    full = price(overflow=True, total=8_640, reserve=64, over_by=512, what_would_drop="The last 3 pages do not fit.")
    composer.show_price(full)
    shown = composer.meter._warning
    assert shown.isVisibleTo(composer)
    assert shown.text() == (
        "8,640 tokens with this question and 64 kept for the answer are 512 more than the context of 8,192. "
        "The last 3 pages do not fit."
    )
    assert price_words(full, True).endswith("8,640 + 64 for the answer, of 8,192"), "the sum is that of the warning"
    composer.show_price(price())
    assert not shown.isVisibleTo(composer)


def test_huge_paste_is_kept_beside_and_sent_whole(composer: Composer, qtbot: QtBot) -> None:
    text = "word and thing " * 40_000
    data = QMimeData()
    data.setText(text)
    before = composer.editor.height()
    qtbot.keyClicks(composer.editor, "Sum up:")
    begun, begun_wall = time.thread_time(), time.monotonic()
    composer.editor.insertFromMimeData(data)
    QApplication.processEvents()
    assert time.thread_time() - begun < 0.3
    assert time.monotonic() - begun_wall < 5, "it waited for another thread"
    assert composer.editor.height() == before
    assert composer.aside.isVisibleTo(composer)
    with qtbot.waitSignal(composer.sent) as sent:
        qtbot.keyClick(composer.editor, Qt.Key.Key_Return)
    assert sent.args == [f"Sum up:\n\n{text.strip()}"]
    assert composer.text() == ""
    assert not composer.aside.isVisibleTo(composer)


def test_question_too_long_is_not_sent_and_says_what_helps(composer: Composer, qtbot: QtBot) -> None:
    sent: list[str] = []
    composer.sent.connect(sent.append)
    qtbot.keyClicks(composer.editor, "x")
    composer.show_price(price(overflow=True, over_by=9000, new_tokens=17_000, total=17_192))
    qtbot.keyClick(composer.editor, Qt.Key.Key_Return)
    assert sent == []
    assert not composer._button.isEnabled()
    assert composer._button.toolTip() == "Too long for the context"
    assert "larger context" in composer.meter._warning.text()
    composer.show_price(price())
    qtbot.keyClick(composer.editor, Qt.Key.Key_Return)
    assert sent == ["x"]


def test_composer_stays_low_in_a_low_window(qtbot: QtBot, composer: Composer) -> None:
    composer.resize(600, 300)
    composer.show_draft("line\n" * 40)
    assert composer.editor.height() < 300 * 0.3
    composer.show_draft("")
    assert composer.editor.height() < 60
