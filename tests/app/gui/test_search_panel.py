"""The Search tab, the scope chip and what is offered under an answer, with the real library."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPushButton, QToolButton
from pytestqt.qtbot import QtBot

from app.chat.chips import ChipFace
from app.chat.coverage import CoverageNote, rest_words
from app.chat.header import Header
from app.chat.scope import ScopeChip, ScopeMenu
from app.chat.words import phase_words, report_line
from app.core.events import TurnPhase
from app.core.lookups import FoundPassage, Lookup, PagesRead, Scope, StoredRange
from app.core.records import Conversation, Message, MessageId, PhaseTimes, StoredCitation, TokenReport, TurnReport
from app.reader.page_view import Place
from app.reader.panel import ReaderPanel
from app.search_panel.panel import SearchPanel
from app.search_panel.rows import FoundRow
from app.search_panel.words import count_words, head_words, score_words, use_words
from app.services import Services
from app.widgets.theme import Theme
from assets import sample_pdf
from engine.messages import ConversationId, Tokens, TurnId
from rag.scope import Chapter

HERE = ConversationId("c")
FOUND = FoundPassage(1, "a.pdf", 5, 3, "iv", (StoredRange(3, 10, 20),), "Kept for 30 days.", 2.5, 7.25, 0.5)
REPORT = TurnReport(TokenReport(), PhaseTimes(), "passages", coverage="Not found in the 3 of 10 pages read.", unread=7)


def question(number: int, text: str, lookup: Lookup | None) -> Message:
    return Message(MessageId(number), HERE, "user", text, Tokens.prompt([1]), 0.0, lookup=lookup)


@pytest.fixture
def panel(qtbot: QtBot, services: Services) -> SearchPanel:
    made = SearchPanel(services)
    qtbot.addWidget(made)
    made.resize(420, 600)
    made.show()
    return made


def rows(panel: SearchPanel) -> list[FoundRow]:
    return [row for row in panel.findChildren(FoundRow) if row.isVisible()]


def test_a_turn_shows_what_was_found_and_what_the_model_saw(panel: SearchPanel, qtbot: QtBot) -> None:
    lookup = Lookup("and why? trash", "Chapter 2", True, True, (replace(FOUND, use="new", marker=4), FOUND))
    panel.show_conversation(HERE, [question(1, "Trash?", None), question(2, "and why?", lookup)])
    qtbot.waitUntil(lambda: len(rows(panel)) == 2)
    first, second = rows(panel)
    assert first.accessibleName().endswith("in the context"), "no number before the answer cites it"
    assert "left out" in second.accessibleName()
    assert head_words(lookup) == [
        "Searched for: and why? trash",
        "In: Chapter 2 (named in the question)",
        "By words and by meaning",
    ]
    with qtbot.waitSignal(panel.opened) as opened:
        first.click()
    assert opened.args == [replace(FOUND, use="new", marker=4)]
    panel.turns.setCurrentIndex(1)
    assert rows(panel) == []


def test_a_turn_that_runs_is_told_as_that(panel: SearchPanel, qtbot: QtBot) -> None:
    def told() -> str:
        qtbot.wait(0)  # what was added is shown
        return " ".join(text.text() for text in panel.findChildren(QLabel) if text.isVisible())

    def phase(name: str) -> TurnPhase:
        return TurnPhase(TurnId(1), HERE, name)

    panel.show_conversation(HERE, [question(1, "Rules?", None)])
    assert "no complete answer" in told()
    panel.show_phase(phase("retrieving"))
    assert "looked through for the question just asked" in told()
    second = question(2, "And why?", None)
    panel.add_question(second)
    for name in ("reading", "answering"):
        panel.show_phase(phase(name))
        assert "is being answered" in told()
        assert "Nothing was looked up" not in told()
    panel.show_conversation(HERE, [question(1, "Rules?", None), second])
    assert "is being answered" in told(), "also where it is opened in the middle"
    panel.end_turn(HERE)
    panel.show_conversation(HERE, [question(1, "Rules?", None), second], elsewhere=True)
    assert "Another Pagekeep is answering" in told()
    panel.show_conversation(HERE, [question(1, "Rules?", None), second])
    answer = Message(MessageId(3), HERE, "assistant", "So.", Tokens(), 0.0, report=replace(REPORT, mode="whole"))
    panel.add_answer(answer)
    panel.end_turn(HERE)
    assert "in the context whole" in told()
    assert "being answered" not in told()


def test_what_left_passages_out_is_told() -> None:
    lookup = Lookup("trash?", passages=(replace(FOUND, use="new", marker=2), FOUND, FOUND))
    assert count_words(lookup) == "3 passages found, 1 in the context"
    budget = replace(lookup, budget=1134)
    assert count_words(budget).endswith("1 in the context; the passage budget of 1,134 tokens is reached")
    assert count_words(replace(budget, full=True)).endswith("; the 1,134 tokens left in the context hold no more")
    assert count_words(replace(budget, passages=budget.passages[:1])) == "1 passage found, 1 in the context"


def test_passages_have_the_numbers_of_the_answer(panel: SearchPanel, qtbot: QtBot) -> None:
    lookup = Lookup("trash?", passages=(replace(FOUND, use="new", marker=2), replace(FOUND, use="known", marker=9)))
    cited = StoredCitation(9, 1, "a.pdf", FOUND.ranges, ("iv",), "Kept", "exact", 0, 4)
    asked = question(1, "Trash?", lookup)
    answer = Message(
        MessageId(2), HERE, "assistant", "Kept for 30 days.", Tokens(), 0.0, citations=(cited,), report=REPORT
    )
    panel.show_conversation(HERE, [asked])
    panel.add_answer(answer)
    for _ in range(2):  # as it comes, and when the conversation is opened again
        qtbot.waitUntil(lambda: len(rows(panel)) == 2)
        uncited, first = rows(panel)
        assert uncited.accessibleName().endswith("in the context")
        assert first.accessibleName().endswith("in the context before, cited as [1]")
        panel.show_conversation(HERE, [asked, answer])


def test_rows_are_never_wider_than_the_panel(panel: SearchPanel, qtbot: QtBot) -> None:
    long = replace(FOUND, document="a very long name " * 8 + ".pdf", text="words and words " * 30)
    panel.show_conversation(HERE, [question(1, "What?", Lookup("What?", passages=(long,)))])
    panel.resize(300, 500)
    qtbot.waitUntil(lambda: len(rows(panel)) == 1)
    (row,) = rows(panel)
    qtbot.waitUntil(lambda: 0 < row.width() <= panel.width())
    assert row.height() >= row.heightForWidth(row.width())


def test_a_query_is_tried_where_the_next_question_would_look(
    panel: SearchPanel, services: Services, qtbot: QtBot
) -> None:
    document = services.workspace.library.add(sample_pdf())
    conversation = services.workspace.chats.new(documents=(int(document.id),))
    panel.put(conversation)
    panel.show_conversation(conversation.id, ())
    panel.query.setText("deposit day card")
    qtbot.keyClick(panel.query, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bool(rows(panel)))
    assert "sample" in rows(panel)[0].accessibleName()
    assert rows(panel)[0].found.use == "no room", "nothing of a tried query is in a context"
    assert use_words(rows(panel)[0].found, tried=True) == ""
    panel.put(replace(conversation, scope=Scope("page 1", int(document.id), 9, 9)))
    panel._try()
    qtbot.waitUntil(lambda: all(row.found.page_index == 9 for row in rows(panel)))


def test_scores_in_words() -> None:
    assert score_words(FOUND) == "words 7.2, meaning 0.50, together 2.50"
    assert score_words(replace(FOUND, why="neighbour")) == "next to a better one"


def test_the_scope_is_a_chip_that_can_be_taken_away(qtbot: QtBot, theme: Theme) -> None:
    header = Header(theme)
    qtbot.addWidget(header)
    conversation = Conversation(HERE, "T", 0.0, 0.0, scope=Scope("pages 10–20", 1, 9, 19))
    header.show_conversation(conversation, [ChipFace(1, "a.pdf")])
    (chip,) = header.findChildren(ScopeChip)
    remove = [b for b in chip.children() if getattr(b, "accessibleName", str)() == "Look everywhere again"]
    with qtbot.waitSignal(header.scope_removed):
        remove[0].click()
    header.show_conversation(replace(conversation, scope=None), [ChipFace(1, "a.pdf")])
    qtbot.waitUntil(lambda: not header.findChildren(ScopeChip))


def test_the_menu_offers_chapters_pages_and_collections(qtbot: QtBot, panel: SearchPanel) -> None:
    chapter = Chapter("Sorting & searching", 0, "1", 4, 9)
    menu = ScopeMenu([(7, "a.pdf", [chapter])], ["Manuals"], None, panel)
    actions = {action.text(): action for action in menu.actions()}
    with qtbot.waitSignal(menu.chosen) as chosen:
        actions["Sorting && searching"].trigger()
    assert chosen.args == [Scope("Sorting & searching", 7, 4, 9)]
    with qtbot.waitSignal(menu.pages_wanted) as pages:
        actions["Pages…"].trigger()
    assert pages.args == [7]
    assert "Collection" in actions
    assert "Everywhere" not in actions


def test_an_answer_that_found_nothing_offers_to_read_the_rest(qtbot: QtBot) -> None:
    note = CoverageNote(REPORT, may_read=True)
    qtbot.addWidget(note)
    (made,) = note.findChildren(QPushButton)
    assert made.text() == "Read all 7 pages"
    read = (PagesRead(1, "a.pdf", (3,), "4"),)
    assert rest_words(replace(REPORT, read=read)) == "Read the other 7 pages"
    with qtbot.waitSignal(note.read_rest):
        made.click()
    assert not note.findChildren(QToolButton), "no pages are known"
    older = CoverageNote(REPORT, may_read=False)
    qtbot.addWidget(older)
    assert older.findChildren(QPushButton) == []


def test_words_for_the_catalogue_and_for_surveys() -> None:
    told = replace(REPORT, mode="catalogue")
    assert report_line(told) == "From the library's catalogue, without the model"
    read = TokenReport(48_210, generated=3_020)
    survey = TurnReport(read, PhaseTimes(prefill=60_000.0, decode=12_000.0), "survey", finish_reason="stop")
    assert report_line(survey).startswith("All of it read: 48,210 tokens in 1 min 12 s")
    phase = TurnPhase(TurnId("t"), HERE, "surveying", 3, 12, 60.0)
    assert phase_words(phase).startswith("Reading all of it: step 4 of 12")


def test_selected_text_can_be_asked_about(qtbot: QtBot, services: Services, make_pdf: Callable[..., Path]) -> None:
    path = make_pdf("a.pdf", [["The quick brown fox jumps over the lazy dog."] * 3])
    document = services.workspace.library.add(path)
    reader = ReaderPanel(services)
    qtbot.addWidget(reader)
    reader.resize(500, 700)
    reader.show()
    reader.open(int(document.id), Place(0))
    qtbot.waitUntil(lambda: reader.view.page == 0 and reader.current() is not None)
    view, pane = reader.view, reader.view.viewport()
    line = reader._file.rectangles(0, 0, 20)[0]
    begin = view._box(0).topLeft() + line.topLeft() * view._scale() + QPoint(1, 4)
    end = view._box(0).topLeft() + line.bottomRight() * view._scale() - QPoint(1, 2)
    QTest.mousePress(pane, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, begin.toPoint())
    QTest.mouseMove(pane, ((begin + end) / 2).toPoint())
    QTest.mouseRelease(pane, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, end.toPoint())
    qtbot.waitUntil(lambda: reader.selecting.offer.isVisible())
    _, selection = reader.selecting.selection
    assert selection.text().strip() in "The quick brown fox jumps over the lazy dog."
    with qtbot.waitSignal(reader.about) as asked:
        reader.selecting.ask()
    (scope,) = asked.args
    assert (scope.document_id, scope.first, scope.last) == (int(document.id), 0, 0)
    assert scope.char_count == len(selection.text())
    assert not reader.selecting.offer.isVisible()


def test_the_pages_that_were_read_are_unfolded(qtbot: QtBot) -> None:
    read = (PagesRead(1, "a.pdf", (2, 3, 8), "iii–iv, 9"), PagesRead(2, "b.pdf", (), ""))
    note = CoverageNote(replace(REPORT, read=read), may_read=False)
    qtbot.addWidget(note)
    note.show()
    (which,) = note.findChildren(QToolButton)
    (pages,) = [shown for shown in note.findChildren(QLabel) if shown.text().startswith("a.pdf")]
    assert pages.text() == "a.pdf: pages iii–iv, 9\nb.pdf: nothing" == which.toolTip()
    assert not pages.isVisible()
    which.click()
    assert pages.isVisible()
