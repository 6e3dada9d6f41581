"""The transcript: streaming, following the newest text, citations, partial answers, long conversations."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from app.chat.live import pending
from app.chat.message_view import AnswerView
from app.chat.rich_text import RichText
from app.chat.sources import SourceRow, Sources, distinct
from app.chat.transcript import Transcript
from app.chat.words import OWN_WORDS
from app.core.borne_out import NOT_BORNE_OUT, PAGES_SAY
from app.core.errors import UserError
from app.core.events import TurnPhase
from app.core.records import (
    Message,
    MessageId,
    PageUse,
    PhaseTimes,
    StoredCitation,
    StoredRange,
    TokenReport,
    TurnReport,
)
from app.widgets.cards import label
from app.widgets.format import unbroken
from app.widgets.theme import Theme
from engine.messages import ComputedRange, ConversationId, ReusedTokens, Tokens, TurnId

HERE = ConversationId("c")


@pytest.fixture
def transcript(qtbot: QtBot, theme: Theme) -> Transcript:
    made = Transcript(theme)
    qtbot.addWidget(made)
    made.resize(700, 500)
    made.show()
    return made


def message(number: int, role: str, text: str, **changes: object) -> Message:
    return Message(MessageId(number), HERE, role, text, Tokens(), 0.0, **changes)


def turns(count: int) -> list[Message]:
    made = []
    for number in range(count):
        made.append(message(2 * number, "user", f"Question {number}"))
        made.append(message(2 * number + 1, "assistant", f"Answer {number}\n\n" + "word " * 120))
    return made


REPORT = TurnReport(
    TokenReport(18246, ReusedTokens(0, 18204), (ComputedRange(42, "new"),), 91),
    PhaseTimes(prefill=250, first_token=310, decode=2000),
    "whole",
    saved_ms=128_000,
)
CITED = StoredCitation(
    2, 7, "book.pdf", (StoredRange(3, 10, 20), StoredRange(4, 0, 9)), ("iv", "v"), "so it is", "exact", 0, 9
)


def test_answer_grows_and_ends_with_what_it_cost(transcript: Transcript) -> None:
    transcript.add_question(message(1, "user", "Why?"))
    transcript.begin_answer(message(2, "assistant", ""))
    for part in ("Bec", "ause", " it **is**."):
        transcript.append_text(part)
    assert transcript.answers[-1].text() == "Because it **is**."
    transcript.finish(message(2, "assistant", "Because it **is**.", report=REPORT))
    shown = " ".join(label.text() for label in transcript.answers[-1].findChildren(QLabel))
    shown = shown.replace("\u2060", "").replace("\u00a0", " ")
    assert "18,204 tokens reused (disk), 42 computed, first token 310 ms, 45 tok/s" in shown
    assert "saved 2 min 8 s of reading" in shown


def test_something_is_said_before_the_first_phase(transcript: Transcript) -> None:
    """A busy machine needs seconds until the first one."""
    transcript.begin_answer(message(1, "assistant", "", state="partial"))
    assert any(text.text() for text in transcript.answers[-1]._phase.findChildren(QLabel))


def test_view_follows_only_while_it_is_at_the_bottom(transcript: Transcript, qtbot: QtBot) -> None:
    transcript.show_messages(turns(3))
    transcript.begin_answer(message(99, "assistant", ""))
    bar = transcript.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0 and bar.value() == bar.maximum())
    bar.setValue(bar.maximum() // 2)
    place = bar.value()
    for _ in range(20):
        transcript.append_text("More and more text.\n\n")
    qtbot.wait(50)
    assert bar.value() == place
    assert transcript._jump.isVisible()
    transcript.jump_to_newest()
    transcript.append_text("The end.")
    qtbot.waitUntil(lambda: bar.value() == bar.maximum())
    assert not transcript._jump.isVisible()


def test_long_conversation_opens_with_its_newest_messages_first(transcript: Transcript, qtbot: QtBot) -> None:
    transcript.show_messages(turns(400))
    assert len(transcript._views) < 10
    qtbot.waitUntil(lambda: len(transcript._views) >= 24)
    qtbot.wait(50)
    assert len(transcript._views) < 60
    bar = transcript.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.value() == bar.maximum())
    before = len(transcript._views)
    bar.setValue(0)
    qtbot.waitUntil(lambda: len(transcript._views) > before)


def test_citation_mark_and_source_open_the_passage(transcript: Transcript, qtbot: QtBot) -> None:
    answer = message(2, "assistant", "So it is. And more.", citations=(CITED,))
    transcript.show_messages([message(1, "user", "Q"), answer])
    view = transcript.answers[0]
    body = view.findChild(RichText)
    assert "[1]" in body.toPlainText()
    cursor = body.document().find("[1]")
    assert cursor.charFormat().toolTip() == "passage 2"
    with qtbot.waitSignal(transcript.opened) as opened:
        body.anchorClicked.emit(QUrl("cite:2"))
    assert opened.args == [CITED]
    row = view.findChild(SourceRow)
    assert "Passage 2" in row.toolTip()
    assert row.accessibleName() == "Source 1: book.pdf, pp. iv–v (file pages 4–5), quoted exactly"
    with qtbot.waitSignal(transcript.opened):
        row.click()


@pytest.mark.parametrize(("width", "below"), [(300, True), (620, False)])
def test_source_cuts_the_document_and_never_the_page(qtbot: QtBot, theme: Theme, width: int, below: bool) -> None:
    row = SourceRow(theme, replace(CITED, document="a-very-long-name-of-a-document-" * 3 + ".pdf"), 1)
    qtbot.addWidget(row)
    row.resize(width, row.minimumHeight())
    row.show()
    qtbot.wait(20)
    row.resize(width, row.minimumHeight())
    qtbot.wait(20)
    texts = {text.text(): text for text in row.findChildren(QLabel)}
    page, verdict = texts["pp. iv–v (file pages 4–5)"], texts["quoted exactly"]
    assert page.width() >= page.sizeHint().width()
    assert verdict.width() >= verdict.sizeHint().width()
    assert (verdict.y() > page.y() + 5) == below
    assert max(page.geometry().right(), verdict.geometry().right()) < width
    assert max(page.geometry().bottom(), verdict.geometry().bottom()) < row.height()


def test_every_source_shows_its_words_and_the_same_words_are_one_source(transcript: Transcript) -> None:
    whole = replace(CITED, ranges=(StoredRange(3, 10, 80),), page_labels=("iv",), quote="so it is and was")
    part = replace(whole, ranges=(StoredRange(3, 10, 20),), quote="so it is", verified="matched")
    other = replace(whole, ranges=(StoredRange(3, 200, 20),), quote="and more", verified="matched")
    third = replace(other, ranges=(StoredRange(3, 400, 20),), quote="at last")
    invented = replace(CITED, marker=9, document_id=None, ranges=(), quote="", verified="not_found", answer_start=10)
    answer = message(2, "assistant", "So it is. And more.", citations=(part, whole, other, third, invented))
    transcript.show_messages([message(1, "user", "Q"), answer])
    rows = transcript.answers[0].findChild(Sources).findChildren(SourceRow)
    words = [[text.text() for text in row.findChildren(QLabel)] for row in rows]
    assert [texts[-1] for texts in words] == [
        "“so it is and was”", "“and more … at last”", "The answer says: “And more.”",
    ]  # fmt: skip
    assert "quoted exactly" in words[0]


@pytest.mark.parametrize("warning", ["altered", "not_found"])
def test_a_warning_is_not_hidden_by_an_exact_quote_of_the_same_words(warning: str) -> None:
    exact = replace(CITED, ranges=(StoredRange(3, 10, 40),), page_labels=("iv",), quote="within 30 days")
    wrong = replace(exact, ranges=(StoredRange(3, 10, 80),), verified=warning, quote="within 30 days of delivery")
    assert [row.verified for row in distinct((exact, wrong), {})] == ["exact", warning]


def test_words_that_only_touch_are_two_sources() -> None:
    one = replace(CITED, ranges=(StoredRange(3, 10, 41),), page_labels=("iv",), quote="so it is")
    other = replace(one, ranges=(StoredRange(3, 50, 40),), verified="matched", quote="and was")
    within = replace(one, ranges=(StoredRange(3, 20, 10),), verified="matched", quote="it")
    assert len(distinct((one, other), {})) == 2
    assert [row.verified for row in distinct((one, within), {})] == ["exact"]


def test_an_answer_without_documents_says_so(transcript: Transcript) -> None:
    asked = message(1, "user", "What is written here?")
    for mode, told in (("none", True), ("whole", False), ("catalogue", False)):
        transcript.show_messages([asked, message(2, "assistant", "A deed.", report=replace(REPORT, mode=mode))])
        shown = [text.text() for text in transcript.answers[-1].findChildren(QLabel)]
        assert any("No document is attached" in text for text in shown) == told


def test_an_answer_that_no_passage_bears_out_says_so(transcript: Transcript) -> None:
    report = replace(REPORT, pages_in_context=(PageUse(1, (0, 1), True),))
    invented = replace(CITED, ranges=(), page_labels=(), quote="", verified="not_found")
    bare = message(2, "assistant", "So it is.", report=report)

    def shown(answer: Message) -> list[str]:
        transcript.show_messages([message(1, "user", "Q"), answer])
        return [text.text() for text in transcript.answers[0].findChildren(QLabel)]

    assert NOT_BORNE_OUT in shown(bare)
    assert NOT_BORNE_OUT in shown(replace(bare, citations=(invented,)))
    assert NOT_BORNE_OUT not in shown(replace(bare, citations=(invented, CITED)))
    assert NOT_BORNE_OUT not in shown(replace(bare, report=REPORT)), "there was no document"
    assert NOT_BORNE_OUT not in shown(replace(bare, report=replace(report, coverage="It rests on 2 of 9 pages.")))
    assert NOT_BORNE_OUT not in shown(replace(bare, state="cancelled"))


def test_pages_that_are_quoted_below_an_answer_can_be_opened(transcript: Transcript, qtbot: QtBot) -> None:
    quoted = replace(CITED, verified="exact", answer_start=0, answer_count=0)
    answer = message(2, "assistant", "So it is.", report=replace(REPORT, pages_say=(quoted,)))
    transcript.show_messages([message(1, "user", "Q"), answer])
    assert PAGES_SAY in [text.text() for text in transcript.answers[0].findChildren(QLabel)]
    *_, row = transcript.answers[0].findChildren(SourceRow)
    said = [text.text() for text in row.findChildren(QLabel)]
    assert OWN_WORDS in said
    assert "quoted exactly" not in said, "a tick would look like a proof of the answer"
    assert row.accessibleName().startswith("Quoted by Pagekeep: ")
    with qtbot.waitSignal(transcript.answers[0].opened) as opened:
        row.click()
    assert opened.args == [quoted]


def test_own_quotes_of_a_page_stay_apart_the_best_first() -> None:
    own = replace(CITED, verified="exact", answer_start=0, answer_count=0)
    best, other = replace(own, quote="B stands later."), replace(own, quote="A stands first.")
    assert distinct((best, other), {best.marker: 0}) == [best, other]
    assert len(distinct((best, other), {best.marker: 1})) == 1


def test_an_answer_on_damaged_state_says_so_and_is_written_again_on_a_click(
    transcript: Transcript, qtbot: QtBot
) -> None:
    doubtful = replace(REPORT, doubtful=3)
    nine = Tokens.generated(range(9))
    answers = [replace(message(n, "assistant", "So it is.", report=doubtful), tokens=nine) for n in (2, 4)]
    transcript.show_messages([message(1, "user", "Q"), answers[0], message(3, "user", "Q"), answers[1]])
    earlier, last = ([text.text() for text in view.findChildren(QLabel)] for view in transcript.answers)
    told = "The first 3 tokens of this were written on saved state that was found damaged since, and may be wrong."
    assert f"{told} Edit its question to have it answered again." in earlier
    assert f"{told} Answer again to be sure (Ctrl+R)." in last
    again = [[b for b in view.findChildren(QPushButton) if b.text() == "Answer again"] for view in transcript.answers]
    assert not again[0]
    with qtbot.waitSignal(transcript.regenerate):
        again[1][0].click()


def test_stopped_answer_says_so_and_offers_to_go_on(transcript: Transcript, qtbot: QtBot) -> None:
    transcript.show_messages([message(1, "user", "Q"), message(2, "assistant", "Half", state="cancelled")])
    go_on = [b for b in transcript.answers[0].findChildren(QPushButton) if b.text() == "Continue"]
    with qtbot.waitSignal(transcript.go_on):
        go_on[0].click()


def test_failed_answer_keeps_its_text_and_offers_another_try(transcript: Transcript) -> None:
    transcript.add_question(message(1, "user", "Q"))
    transcript.begin_answer(message(2, "assistant", ""))
    transcript.append_text("Half an answer")
    tried: list[int] = []
    failed = message(2, "assistant", "Half an answer", state="failed")
    transcript.fail(failed, UserError("It stopped.", "Memory ran out.", "Ask for less."), lambda: tried.append(1))
    view = transcript.answers[-1]
    again = [b for b in view.findChildren(QPushButton) if b.text() == "Try again"]
    again[0].click()
    assert tried == [1]
    assert view.text() == "Half an answer"


def test_question_shown_at_once_is_confirmed_not_doubled(transcript: Transcript) -> None:
    waiting = pending(HERE, "Why?")
    transcript.add_question(waiting.question)
    transcript.begin_answer(waiting.answer)
    transcript.show_phase(TurnPhase(TurnId("t"), HERE, "reading", 500, 1000, 2.0))
    transcript.confirm_question(message(5, "user", "Why?"))
    transcript.begin_answer(message(6, "assistant", ""))
    assert len(transcript._views) == 2
    assert isinstance(transcript._views[1], AnswerView)


def test_theme_change_in_the_middle_of_an_answer_keeps_it(transcript: Transcript, theme: Theme) -> None:
    transcript.show_messages(turns(1))
    transcript.add_question(message(50, "user", "Q"))
    transcript.begin_answer(message(51, "assistant", ""))
    transcript.append_text("Half")
    theme.choose("dark")
    transcript.append_text(" done")
    theme.choose("light")
    assert transcript.answers[-1].text() == "Half done"
    assert len(transcript._views) == 4


def test_huge_question_leaves_the_others_at_their_size(transcript: Transcript, qtbot: QtBot) -> None:
    transcript.show_messages(turns(2))
    qtbot.wait(30)
    before = [view.height() for view in transcript.answers]
    transcript.add_question(message(8, "user", "word and thing " * 40_000))
    transcript.begin_answer(message(9, "assistant", ""))
    qtbot.wait(60)
    assert [view.height() for view in transcript.answers[:2]] == pytest.approx(before, abs=30)
    for body in transcript.findChildren(RichText):
        assert body.height() >= body.document().size().height() - 1


def test_reasoning_is_open_while_it_grows_and_folded_behind_the_answer(transcript: Transcript) -> None:
    transcript.add_question(message(1, "user", "Why?"))
    transcript.begin_answer(message(2, "assistant", ""))
    transcript.append_text("Is it so", "reasoning")
    transcript.append_text(" or so?", "reasoning")
    thought = transcript.answers[-1].thought
    assert not thought.isHidden()
    assert thought.is_open
    assert thought.findChild(RichText).toPlainText() == "Is it so or so?"
    assert thought._toggle.text().strip().startswith("Thinking")
    transcript.append_text("It is so.")
    assert not thought.is_open
    assert thought.findChild(RichText).isHidden()
    transcript.finish(message(2, "assistant", "It is so.", reasoning="Is it so or so?", thought_ms=12_300.0))
    assert thought._toggle.text().strip() == "Thought for 12 s"
    assert transcript.answers[-1].text() == "It is so."
    thought._toggle.click()
    assert not thought.findChild(RichText).isHidden()


def test_an_answer_without_reasoning_says_nothing_about_it(transcript: Transcript) -> None:
    transcript.show_messages(turns(1))
    assert transcript.answers[0].thought.isHidden()


def test_no_line_ends_between_a_number_and_its_unit() -> None:
    told = unbroken("310 ms, 51 tok/s, 25 %, 7.00 MB of 2.00 GB, part 3 says, 8 members")
    assert told.replace("\u00a0", "~") == "310~ms, 51~tok/\u2060s, 25~%, 7.00~MB of 2.00~GB, part 3 says, 8 members"
    shown = label("51 tok/s")
    assert shown.text() == "51\u00a0tok/\u2060s"
    shown.setText("48 s")
    assert shown.text() == "48\u00a0s"
