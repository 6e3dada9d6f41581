"""Toasts: an offer to undo is not pushed away by a piece of news."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QRect
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.chat.overflow import OverflowCard
from app.chat.panel import ChatPanel
from app.core.errors import Overrun, UserError
from app.services import Services
from app.widgets.cards import ErrorCard
from app.widgets.theme import Theme
from app.widgets.toast import MOST_WAITING, Toasts
from engine.overflow import OverflowOption


@pytest.fixture
def toasts(qtbot: QtBot, theme: Theme) -> Toasts:
    host = QWidget()
    qtbot.addWidget(host)
    host.resize(700, 400)
    host.show()
    made = Toasts(host)
    made._host = host
    return made


def test_news_wait_for_an_offer(toasts: Toasts) -> None:
    undone: list[int] = []
    toasts.offer_undo("Deleted.", lambda: undone.append(1))
    toasts.say("Something else happened.")
    assert toasts._text.text() == "Deleted."
    toasts._action.click()
    assert undone == [1]
    assert toasts._text.text() == "Something else happened."
    assert not toasts._action.isVisible()


def test_what_is_told_once_waits_for_an_offer_and_outlasts_news(toasts: Toasts) -> None:
    toasts.offer_undo("Deleted.", lambda: None)
    toasts.say("No font.", "Copy", lambda: None, keep=True)
    assert toasts._text.text() == "Deleted.", "the offer has its time"
    for number in range(3 * MOST_WAITING):
        toasts.say(f"News {number}")
    toasts._next()
    assert toasts._text.text() == "No font."
    toasts._next()
    assert toasts._text.text() == f"News {2 * MOST_WAITING}", "of news only the newest wait"


def test_newer_news_replace_older(toasts: Toasts) -> None:
    toasts.say("One")
    toasts.say("Two")
    assert toasts._text.text() == "Two"
    assert toasts.isVisible()


def test_long_text_stays_inside_the_window(toasts: Toasts) -> None:
    toasts.say("word " * 300)
    assert toasts.parentWidget().rect().contains(toasts.geometry())


def test_toast_is_as_large_as_its_text(toasts: Toasts, qtbot: QtBot) -> None:
    toasts.offer_undo("“A title of some length” is in the trash.", lambda: None)
    qtbot.wait(20)
    assert toasts._action.width() < 90
    assert toasts._text.height() < 2 * toasts._text.fontMetrics().lineSpacing()
    assert toasts.width() < 420


def test_toasts_stay_above_cards(qtbot: QtBot, services: Services) -> None:
    panel = ChatPanel(services)
    toasts = Toasts(panel)
    qtbot.addWidget(panel)
    panel.resize(700, 700)
    panel.show()
    toasts.stay_above(panel.foot)
    panel.show_error(UserError("The answer failed.", "The disk is full.", "Make room."))
    panel.show_ways(Overrun(8192, 64, 8192), [OverflowOption("recompute", (0, 10), 1, 100, 90, 3.0, True)], True)
    toasts.say("Something happened.")
    qtbot.wait(20)
    cards = panel.findChildren(ErrorCard) + panel.findChildren(OverflowCard)
    assert len(cards) == 2
    box = QRect(toasts.mapToGlobal(QPoint()), toasts.size())
    assert not any(box.intersects(QRect(card.mapToGlobal(QPoint()), card.size())) for card in cards)
    above = toasts.y()
    panel.clear_ways()
    qtbot.waitUntil(lambda: toasts.y() > above)
