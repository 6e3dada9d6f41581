"""A low and narrow window: nothing overlaps, nothing is cut, what is short of room says where it is whole."""

from __future__ import annotations

from PySide6.QtWidgets import QLineEdit, QToolButton
from pytestqt.qtbot import QtBot

from app.chat.header import Header
from app.chat.meter import Meter
from app.chat.words import shown_title
from app.core.records import Conversation, Price
from app.reader.toolbar import ReaderToolbar
from app.widgets.elided import ElidedLabel
from app.widgets.theme import Theme
from engine.messages import ConversationId


def test_reader_controls_do_not_overlap(qtbot: QtBot, theme: Theme) -> None:
    bar = ReaderToolbar(theme)
    qtbot.addWidget(bar)
    bar.resize(300, 80)
    bar.show()
    bar.show_page("312", 330, 1158)
    qtbot.wait(20)
    shown = [*bar.findChildren(QToolButton), *bar.findChildren(ElidedLabel), *bar.findChildren(QLineEdit)]
    boxes = [part.geometry() for part in shown if part.isVisible() and part.parentWidget() is bar]
    assert len(boxes) == 9
    assert all(not one.intersects(other) for n, one in enumerate(boxes) for other in boxes[:n])
    assert all(bar.rect().contains(box) for box in boxes)


def test_title_has_its_own_line_where_the_header_is_narrow(qtbot: QtBot, theme: Theme) -> None:
    header = Header(theme)
    qtbot.addWidget(header)
    header.show()
    header.show_conversation(Conversation(ConversationId("c"), "List the garden rules (fork)", 0.0, 0.0), [])
    for width, apart in ((800, False), (340, True)):
        header.resize(width, 120)
        qtbot.wait(20)
        assert (header._title.geometry().bottom() < header.modes.geometry().top()) == apart
        assert header._title.width() > 250
    assert header._title.text() == "Fork of List the garden rules"


def test_fork_is_named_before_its_title_is_cut() -> None:
    assert shown_title("Rules (fork) (fork)") == "Fork 2 of Rules"
    assert shown_title("Rules") == "Rules"
    assert shown_title("") == "New conversation"


def test_warning_shows_all_its_lines(qtbot: QtBot, theme: Theme) -> None:
    meter = Meter(theme)
    qtbot.addWidget(meter)
    meter.resize(260, 30)
    meter.show()
    meter.show_price(Price(9000, 0, 9000, 8192, 3.0, True, "", over_by=808), True)
    qtbot.wait(20)
    warning = meter._warning
    assert warning.height() >= warning.heightForWidth(warning.width())
