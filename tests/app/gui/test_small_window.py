"""A low and narrow window: nothing overlaps, nothing is cut, what is short of room says where it is whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel, QLineEdit, QToolButton
from pytestqt.qtbot import QtBot

from app.chat.chips import Chip, ChipFace
from app.chat.header import MOST_CHIPS, Header
from app.chat.message_view import AnswerView
from app.chat.meter import Meter
from app.chat.panel import ChatPanel
from app.chat.transcript import Transcript
from app.chat.words import report_line
from app.core.errors import Overrun
from app.core.events import TurnDone
from app.core.lookups import FoundPassage
from app.core.pricing import Price
from app.core.records import Conversation, Message, MessageId, PhaseTimes, TokenReport, TurnReport
from app.frame.status import StatusBar
from app.reader.toolbar import ReaderToolbar
from app.search_panel.rows import FoundRow
from app.services import Services
from app.timing_panel.numbers import lines
from app.widgets.elided import ElidedLabel
from app.widgets.theme import Theme
from engine.messages import ConversationId, DocumentProgress, ModelLoaded, Tokens, TurnId
from engine.overflow import OverflowOption


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
    header.show_conversation(Conversation(ConversationId("c"), "Fork of List the garden rules", 0.0, 0.0), [])
    for width, apart in ((800, False), (340, True)):
        header.resize(width, 120)
        qtbot.wait(20)
        assert (header._title.geometry().bottom() < header.modes.geometry().top()) == apart
        assert header._title.width() > 250
    assert header._title.text() == "Fork of List the garden rules"


def test_chips_of_many_documents_take_four_rows_at_most(qtbot: QtBot, theme: Theme) -> None:
    header = Header(theme)
    qtbot.addWidget(header)
    header.show()
    chips = [
        ChipFace(n, f"Proceedings of the harbour board {n}.pdf", "in the trash" if n == 1 else "") for n in range(20)
    ]
    header.show_conversation(Conversation(ConversationId("c"), "Harbour", 0.0, 0.0), chips)
    for width in (348, 560, 1200):
        header.resize(width, 200)
        theme.choose("dark" if width == 560 else "light")  # chips are made anew
        qtbot.wait(50)
        place = header._chips.parentWidget().parentWidget()
        assert 54 <= place.height() <= MOST_CHIPS
        made = [chip for chip in header.findChildren(Chip) if chip.isVisible()]
        assert len(made) == 20
        assert all(chip.geometry().right() <= place.width() for chip in made)
        words = [text for text in made[1].findChildren(QLabel) if text.text() == "in the trash"]
        assert words[0].width() >= words[0].sizeHint().width(), "why it is gone must not be cut"


def test_names_that_have_room_are_whole_in_their_chips(qtbot: QtBot, theme: Theme) -> None:
    header = Header(theme)
    qtbot.addWidget(header)
    header.resize(900, 100)
    header.show()
    names = ("pari-users.pdf", "debian-policy.pdf", "made-scan-40.pdf", "Wärmeträger.pdf", "fi ffi VAVA.pdf")
    chips = [ChipFace(n, name) for n, name in enumerate(names)]
    header.show_conversation(Conversation(ConversationId("c"), "Harbour", 0.0, 0.0), chips)
    qtbot.wait(20)
    assert [chip.open_button.text().strip() for chip in header.findChildren(Chip)] == list(names)


@pytest.mark.parametrize(("width", "room"), [(516, 220), (348, 130)])
def test_two_chips_share_a_narrow_row(qtbot: QtBot, theme: Theme, width: int, room: int) -> None:
    header = Header(theme)
    qtbot.addWidget(header)
    header.resize(width, 120)
    header.show()
    names = ("Proceedings of the harbour board in the year of the flood.pdf", "asymptotes.pdf")
    chips = [ChipFace(n, name) for n, name in enumerate(names)]
    header.show_conversation(Conversation(ConversationId("c"), "Harbour", 0.0, 0.0), chips)
    header.resize(width + 1, 120)
    qtbot.wait(20)
    first, second = header.findChildren(Chip)
    assert first.width() >= room
    assert first.y() == second.y()
    assert second.open_button.text().strip() in ("asymptotes", "asymptotes.pdf")
    assert "board" not in first.open_button.text(), "its middle is left out"


def test_warning_shows_all_its_lines(qtbot: QtBot, theme: Theme) -> None:
    meter = Meter(theme)
    qtbot.addWidget(meter)
    meter.resize(260, 30)
    meter.show()
    meter.show_price(Price(9000, 0, 9000, 8192, 3.0, True, "", over_by=808), True)
    qtbot.wait(20)
    warning = meter._warning
    assert warning.height() >= warning.heightForWidth(warning.width())


def test_the_wait_is_the_last_that_the_price_leaves_out(qtbot: QtBot, theme: Theme) -> None:
    meter = Meter(theme)
    qtbot.addWidget(meter)
    meter.show()
    price = Price(1017, 2083, 3100, 8192, 3.2, False, "", passage_tokens=900)
    meter.show_price(price, True)
    for width, shown in (
        (700, "up to 1,017 new tokens, ~3 s; then 3,100 of 8,192 used"),
        (340, "up to 1,017 new tokens, ~3 s"),
        (210, "≤ 1,017 new, ~3 s"),
        (130, "~3 s"),
    ):
        meter.resize(width, 30)
        qtbot.wait(20)
        assert meter._words.shown() == shown
        assert shown in meter._words.toolTip() or "3,100 of 8,192" in meter._words.toolTip()


def test_only_the_name_of_a_document_is_cut_where_a_passage_was_found(qtbot: QtBot, theme: Theme) -> None:
    name = "proceedings of the harbour board, volume 12.pdf"
    row = FoundRow(theme, FoundPassage(1, name, 1, 5, "3", (), "Rule.", 2.9, use="new", marker=1), 1, False, 1)
    qtbot.addWidget(row)
    row.resize(300, 120)
    row.show()
    qtbot.wait(20)
    (title,) = row.findChildren(ElidedLabel)
    assert "…" in title.shown()
    assert len(title.shown()) > 8
    others = [text for text in row.findChildren(QLabel) if text is not title and not text.wordWrap()]
    assert [text.text() for text in others] == ["p. 3 (file page 6)"]
    assert all(text.width() >= text.sizeHint().width() for text in others)


def test_what_has_left_the_context_makes_no_transcript_wider(qtbot: QtBot, theme: Theme) -> None:
    transcript = Transcript(theme)
    qtbot.addWidget(transcript)
    transcript.resize(340, 300)
    transcript.show()
    old = Message(MessageId(1), ConversationId("c"), "user", "Old?", Tokens(), 0.0, in_context=False)
    transcript.show_messages([old])
    qtbot.wait(20)
    assert transcript._left.isVisible()
    assert transcript.widget().width() == transcript.viewport().width()


def test_ways_out_of_a_full_conversation_are_whole_in_a_narrow_column(qtbot: QtBot, services: Services) -> None:
    panel = ChatPanel(services)
    qtbot.addWidget(panel)
    panel.resize(348, 560)
    panel.show_empty(False)
    panel.show()
    names = ("recompute", "shift", "fork", "larger")
    ways = [OverflowOption(name, (0, 90), 3, 300, 200, 2.0, True, "", 4096) for name in names]
    panel.show_ways(Overrun(8000, 64, 8034), ways, True)
    qtbot.wait(50)
    card = panel._ways
    texts = [text for text in card.findChildren(QLabel) if text.text()]
    assert len(texts) == 6
    assert texts[1].text() == (
        "8,000 tokens with this question and 64 kept for the answer are 30 more than the context of 8,034."
    )
    assert all(text.height() >= text.heightForWidth(text.width()) for text in texts)
    assert all(made.width() >= made.sizeHint().width() for made in card.buttons.values())
    assert card.parentWidget().height() > 200
    assert panel.height() == 560


def test_a_long_name_makes_the_empty_page_no_wider_than_a_narrow_column(qtbot: QtBot, services: Services) -> None:
    panel = ChatPanel(services)
    qtbot.addWidget(panel)
    panel.resize(348, 560)
    panel.show()
    name = "Grundstücksverkehrsgenehmigungszuständigkeitsübertragungsverordnung.pdf"
    panel.show_conversation(Conversation(ConversationId("c"), "Harbour", 0.0, 0.0), [ChipFace(1, name)])
    panel.show_empty(True)
    qtbot.wait(50)
    assert panel.empty.title.text().startswith("Ask about Grundst")
    assert panel.empty.title.text().endswith(".pdf")
    inside = panel.empty.mapTo(panel, panel.empty.rect().bottomRight())
    assert inside.x() <= panel.width()


def test_memory_makes_room_for_what_is_read_ahead(qtbot: QtBot, services: Services) -> None:
    bar = StatusBar(services)
    qtbot.addWidget(bar)
    bar.resize(900, 30)
    bar.show()
    bar._say_model("SmolLM2-135M-Instruct Q4_1  ·  CPU, 2 threads  ·  24 tok/s", "SmolLM2-135M-Instruct Q4_1")
    bar._memory.setText("weights 92.1 MB  ·  state 8.44 MB  ·  19.7 GB of memory free")
    services.events.document_progress.emit(DocumentProgress("d", "gnuplot.pdf", 1200, 6400, 0, 3.0, 12.0, 0))
    qtbot.wait(20)
    assert bar._memory.isHidden()
    assert bar._activity.width() > 240
    for width in (830, 720, 640):
        bar.resize(width, 30)
        qtbot.wait(20)
        whole = ("18 %, 12 s left", "6,400 tokens, 12 s left")
        assert bar._activity.shown().endswith(whole), "how far it is must not be cut"
        assert bar._model.geometry().right() < bar._activity.geometry().left()
    assert bar._model.text().startswith(" SmolLM2")
    bar.resize(1400, 30)
    qtbot.wait(20)
    assert bar._memory.isVisible()


def test_the_speed_in_the_status_bar_is_that_below_the_answer(qtbot: QtBot, services: Services) -> None:
    bar = StatusBar(services)
    qtbot.addWidget(bar)
    report = TurnReport(TokenReport(generated=28), PhaseTimes(decode=560, prefill=900), "none", model="M")
    answer = Message(MessageId(2), ConversationId("c"), "assistant", "A", Tokens(), 0.0, report=report)
    services.events.model_loaded.emit(ModelLoaded(Path("m.gguf"), "M", "llama", 1024, ("CPU",), 0, 0, 64, "f", 0.0))
    bar.show_answers(answer.conversation, [])
    assert "tok/s" not in bar._model.text()
    services.events.turn_done.emit(TurnDone(TurnId("t"), answer.conversation, answer))
    assert bar._model.text().endswith("48 tok/s")
    assert report_line(report).endswith("48 tok/s")
    assert dict(lines(report))["Decode"] == "28 tokens, 48 tok/s"
    other = replace(answer, conversation=ConversationId("d"), report=replace(report, timings_ms=PhaseTimes(decode=56)))
    services.events.turn_done.emit(TurnDone(TurnId("u"), other.conversation, other))
    assert bar._model.text().endswith("48 tok/s"), "another conversation's"
    bar.show_answers(other.conversation, [other])
    assert bar._model.text().endswith("482 tok/s")
    bar.show_answers(other.conversation, [replace(other, report=replace(report, model="Other"))])
    assert "tok/s" not in bar._model.text()


@pytest.mark.parametrize(("width", "below"), [(330, True), (700, False)])
def test_what_an_answer_cost_goes_below_its_buttons_in_a_narrow_column(
    qtbot: QtBot, theme: Theme, width: int, below: bool
) -> None:
    report = TurnReport(TokenReport(1858, generated=41), PhaseTimes(decode=1600, first_token=173), "none")
    answer = Message(MessageId(2), ConversationId("c"), "assistant", "A", Tokens(), 0.0, "cancelled", report=report)
    view = AnswerView(theme, answer, is_last=True)
    qtbot.addWidget(view)
    view.resize(width, 300)
    view.show()
    qtbot.wait(20)
    line = next(text for text in view.findChildren(QLabel) if "first token" in text.text())
    more = next(tool for tool in view.findChildren(QToolButton) if tool.accessibleName().startswith("What can"))
    assert (line.y() > more.geometry().bottom()) == below
    assert line.height() >= line.heightForWidth(line.width())
    assert line.width() > 250
