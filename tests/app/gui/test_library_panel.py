"""The library: real imports, wrong files, cancelling, removing with undo, dropping files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QInputDialog, QLabel, QMenu, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.core.errors import UserError
from app.core.events import ImportCancelled, ImportFailed, ImportProgress, ImportQueued, IndexingEnded, JobId
from app.core.lookups import Scope
from app.library.panel import LibraryPanel
from app.library.report_dialog import IntakeDialog, summary
from app.services import Services
from app.widgets.cards import ErrorCard
from app.widgets.drop import DropTarget
from app.widgets.theme import Theme
from assets import sample_pdf
from rag import IntakeReport
from rag.types import MISSING_LETTERS, IngestProgress
from tests.app.gui.pdf_files import long_pages
from tests.rag.pdf_files import encrypted

MakePdf = Callable[..., Path]


@pytest.fixture
def panel(services: Services, qtbot: QtBot) -> LibraryPanel:
    made = LibraryPanel(services)
    qtbot.addWidget(made)
    made.resize(280, 500)
    made.show()
    bus = services.events
    bus.import_queued.connect(made.importing.queued)
    bus.import_progress.connect(made.importing.progress)
    bus.import_done.connect(made.importing.done)
    bus.import_failed.connect(made.importing.failed)
    bus.import_cancelled.connect(made.importing.cancelled)
    return made


def names(panel: LibraryPanel) -> list[str]:
    return [document.name for document in panel.rows.documents()]


def test_pdf_is_imported_and_told_to_others(panel: LibraryPanel, qtbot: QtBot, make_pdf: MakePdf) -> None:
    activities: list[str] = []
    panel.activity.connect(lambda words, job: activities.append(words))
    with qtbot.waitSignal(panel.changed):
        panel.importing.add([make_pdf("orchard.pdf", long_pages("orchard", 3))])
    assert names(panel) == ["orchard.pdf"]
    assert panel.rows.documents()[0].pages == 3
    assert any("orchard.pdf" in words for words in activities)
    qtbot.waitUntil(lambda: activities[-1] == "" or "meaning" in activities[-1])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.pdf", b""),
        ("page.pdf", b"<!doctype html><title>404</title>"),
        ("cut.pdf", b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog"),
    ],
)
def test_wrong_file_says_why_and_changes_nothing(
    panel: LibraryPanel, qtbot: QtBot, tmp_path: Path, name: str, content: bytes
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    panel.importing.add([file])
    qtbot.waitUntil(lambda: panel.findChild(ErrorCard) is not None)
    error = panel.findChild(ErrorCard)._error
    assert name in error.what + error.why
    assert error.next
    assert names(panel) == []
    assert panel.rows.imports() == []


def test_errors_leave_room_and_fit_the_column(panel: LibraryPanel, qtbot: QtBot, tmp_path: Path) -> None:
    files = [tmp_path / f"{'a_long_name_without_spaces' * 3}{number}.pdf" for number in range(5)]
    for file in files:
        file.write_bytes(b"plain text")
    panel.resize(200, 320)
    panel.importing.add(files)
    qtbot.waitUntil(lambda: len(panel.findChildren(ErrorCard)) == 5)
    qtbot.wait(50)
    assert 24 < panel._errors.height() < 50, "several are one line until it is unfolded"
    assert panel._errors.summary.fold.text().strip() == "5 imports failed"
    assert not any(card.isVisible() for card in panel._errors.cards())
    panel._errors.summary.fold.click()
    qtbot.wait(50)
    assert 100 < panel._errors.height() <= 190
    assert panel._stack.height() > 60
    for card in panel._errors.cards():
        parts = [*card.findChildren(QLabel), *card.findChildren(QPushButton)]
        assert all(card.rect().right() >= part.mapTo(card, part.rect().topRight()).x() for part in parts)
        assert card.width() <= panel._errors.viewport().width()
    panel._errors.summary.close_all.click()
    assert not panel._errors.isVisible()


def test_many_documents_are_found_by_name(panel: LibraryPanel, qtbot: QtBot, make_pdf: MakePdf) -> None:
    with qtbot.waitSignal(panel.changed):
        panel.importing.add([make_pdf("orchard.pdf", long_pages("orchard", 1))])
    qtbot.waitUntil(lambda: not panel.rows.imports())
    (one,) = panel.rows.documents()
    assert not panel.search.isVisible()
    many = [replace(one, id=100 + n, name=f"Report {n} of the Harbour.pdf", added=one.added - n) for n in range(300)]
    panel._show_documents([one, *many])
    assert panel.search.isVisible()
    panel.list.setCurrentIndex(panel.rows.index(0))
    panel.rows.put(replace(one, name="garden.pdf"))
    assert panel.list.currentIndex().row() == 0, "what is marked stays marked"
    qtbot.keyClicks(panel.search, "harbour 299")
    assert [panel.rows.index(row).data() for row in range(panel.rows.rowCount())] == ["Report 299 of the Harbour.pdf"]
    with qtbot.waitSignal(panel.open_wanted) as opened:
        qtbot.keyClick(panel.search, Qt.Key.Key_Return)
    assert opened.args == [399]
    qtbot.keyClick(panel.search, Qt.Key.Key_Escape)
    assert panel.rows.rowCount() == 301
    assert panel.rows.document(panel.list.currentIndex().row()).id == 399


def test_an_import_that_goes_on_is_for_who_asked_for_it(
    panel: LibraryPanel, services: Services, qtbot: QtBot, make_pdf: MakePdf
) -> None:
    chats, store, bus = services.workspace.chats, services.workspace.conversations, services.events
    asked, shown, pdf = chats.new().id, chats.new().id, make_pdf("orchard.pdf", long_pages("orchard", 1))
    panel.importing.set_conversation(asked)
    with qtbot.waitSignal(bus.import_done):
        panel.importing.add([pdf])
    (document,) = panel.rows.documents()
    assert [using.id for using in store.using(int(document.id))] == [asked]
    panel.importing.set_conversation(shown)
    with qtbot.waitSignal(bus.import_done):
        panel.importing.resume(document)
    assert [using.id for using in store.using(int(document.id))] == [asked], "only the import goes on"
    store.detach(asked, int(document.id))
    panel.importing.cancelled(ImportCancelled(JobId("1"), pdf))
    with qtbot.waitSignal(bus.import_done):
        services.toasts._action.click()
    assert [using.id for using in store.using(int(document.id))] == [asked], "as it was added"


def test_folder_without_pdfs_says_so(panel: LibraryPanel, qtbot: QtBot, tmp_path: Path) -> None:
    (tmp_path / "holiday").mkdir()
    panel.importing.add([tmp_path / "holiday"])
    qtbot.waitUntil(lambda: panel.findChild(ErrorCard) is not None)
    assert "holiday" in panel.findChild(ErrorCard)._error.what


def test_stopped_import_leaves_the_list(panel: LibraryPanel, qtbot: QtBot, make_pdf: MakePdf) -> None:
    panel.importing.add([make_pdf("long.pdf", long_pages("long", 120))])
    qtbot.waitUntil(lambda: bool(panel.rows.imports()))
    panel.list.setCurrentIndex(panel.rows.index(0))
    panel.remove()
    qtbot.waitUntil(lambda: not panel.rows.imports())


def test_remove_is_undone(panel: LibraryPanel, qtbot: QtBot, make_pdf: MakePdf, services: Services) -> None:
    with qtbot.waitSignal(panel.changed):
        panel.importing.add([make_pdf("orchard.pdf", long_pages("orchard", 1))])
    qtbot.waitUntil(lambda: not panel.rows.imports())
    panel.list.setCurrentIndex(panel.rows.index(0))
    panel.activateWindow()
    panel.list.setFocus()
    qtbot.waitUntil(panel.list.hasFocus)
    qtbot.keyClick(panel.list, Qt.Key.Key_Delete)
    assert names(panel) == []
    qtbot.waitUntil(lambda: services.workspace.library.documents() == [])
    services.toasts._action.click()
    qtbot.waitUntil(lambda: names(panel) == ["orchard.pdf"])


def test_intake_report_counts_kinds_and_opens_pages(
    services: Services, qtbot: QtBot, theme: Theme, make_pdf: MakePdf, panel: LibraryPanel
) -> None:
    with qtbot.waitSignal(panel.changed):
        panel.importing.add([make_pdf("mixed.pdf", [*long_pages("mixed", 2), []])])
    report = services.workspace.library.report(panel.rows.documents()[0].id)
    assert summary(report).startswith("3 pages: 2 text")
    dialog = IntakeDialog(theme, report)
    qtbot.addWidget(dialog)
    assert dialog._model.rowCount() == 1, "only the page that needs attention"
    with qtbot.waitSignal(dialog.open_page) as opened:
        dialog.open_page.emit(dialog._model.page(0))
    assert opened.args == [2]


def test_files_dropped_anywhere_reach_the_library(qtbot: QtBot, theme: Theme, tmp_path: Path) -> None:
    host = QWidget()
    qtbot.addWidget(host)
    host.resize(400, 300)
    host.show()
    target = DropTarget(theme, host)
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path / name)) for name in ("a.pdf", "b ü.pdf")])
    copy, left, none = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    QApplication.sendEvent(host, QDragEnterEvent(QPoint(10, 10), copy, data, left, none))
    assert target.isVisible()
    with qtbot.waitSignal(target.dropped) as dropped:
        QApplication.sendEvent(host, QDropEvent(QPointF(10, 10), copy, data, left, none))
    assert dropped.args == [[tmp_path / "a.pdf", tmp_path / "b ü.pdf"]]
    assert not target.isVisible()


def test_a_collection_shows_its_own_documents(qtbot: QtBot, services: Services) -> None:
    library = services.workspace.library
    first = library.add(sample_pdf())
    panel = LibraryPanel(services)
    qtbot.addWidget(panel)
    panel.reload()
    qtbot.waitUntil(lambda: panel.rows.rowCount() == 1)
    panel.collections.make("Empty")
    qtbot.waitUntil(lambda: panel.collections.shown == "Empty" and panel.rows.rowCount() == 0)
    assert panel.rows.names() == {int(first.id): first.name}, "names of all stay known"
    panel.collections._put("Empty", first.id, True)
    qtbot.waitUntil(lambda: panel.rows.rowCount() == 1)
    texts = [action.text() for action in panel.collections.menu_for(QMenu(panel)).actions()]
    assert "Empty  (1)" in texts
    with qtbot.waitSignal(panel.collections.ask_wanted) as asked:
        actions = {action.text(): action for action in panel.collections.menu_for(QMenu(panel)).actions()}
        actions["Ask about “Empty”"].trigger()
    assert asked.args == [Scope("Empty", collection="Empty")]
    panel.collections.show_collection("")
    assert panel.collections.text().startswith("All documents")


def test_scans_are_offered_to_be_read(qtbot: QtBot, services: Services) -> None:
    document = replace(services.workspace.library.add(sample_pdf()), unreadable_pages=(1, 2))
    pages = tuple(replace(page, kind="scan") for page in services.workspace.library.report(document.id).pages[:3])
    dialog = IntakeDialog(services.theme, IntakeReport(document, pages))
    qtbot.addWidget(dialog)
    assert dialog.read_all.text() == "Read all 2 scans"
    dialog._table.selectRow(1)
    with qtbot.waitSignal(dialog.read_wanted) as wanted:
        dialog.read_some.click()
    assert wanted.args == [[1]]


def test_what_is_wrong_with_a_file_is_told_in_the_list_and_the_report(
    qtbot: QtBot, services: Services, panel: LibraryPanel
) -> None:
    added = services.workspace.library.add(sample_pdf())
    document = replace(added, note="Damaged: 9 pages of 12 were found.", other_names=("copy.pdf",))
    page = services.workspace.library.report(document.id).pages[0]
    broken = replace(page, reason=f"9 {MISSING_LETTERS}")
    panel.rows.put(document)
    tip = panel.rows.data(panel.rows.index(0), Qt.ItemDataRole.ToolTipRole)
    assert tip == f"{added.name}, 10 pages, damaged file\nDamaged: 9 pages of 12 were found.\nAlso added as copy.pdf"
    dialog = IntakeDialog(services.theme, IntakeReport(document, (page, broken), document.note))
    qtbot.addWidget(dialog)
    shown = [made.text() for made in dialog.findChildren(QLabel)]
    assert {"Damaged: 9 pages of 12 were found.", "Also added as copy.pdf"} <= set(shown)
    assert dialog._model.rowCount() == 1, "only the page whose letters are missing"


def test_what_is_being_imported_stands_on_top(panel: LibraryPanel, services: Services) -> None:
    document = services.workspace.library.add(sample_pdf())
    older = [replace(document, id=100 + n, name=f"{n}.pdf", added=document.added + 1 + n) for n in range(3)]
    panel._show_documents([document, *older])
    for number in range(3):
        panel.importing.queued(ImportQueued(JobId(f"waits {number}"), Path(f"waits {number}.pdf")))
    panel.importing.queued(ImportQueued(JobId("runs"), document.path))
    progress = IngestProgress(document.path, document.id, "text", 3, 10)
    panel.importing.progress(ImportProgress(JobId("runs"), progress))
    shown = [panel.rows.index(row).data() for row in range(panel.rows.rowCount())]
    assert shown == [document.name, "waits 0.pdf", "waits 1.pdf", "waits 2.pdf", "2.pdf", "1.pdf", "0.pdf"]
    assert panel.rows.place(document.id) == 0
    assert [panel.rows.document(row) for row in (0, 1)] == [document, None]
    assert [panel.rows.import_at(row).job for row in (0, 1)] == ["runs", "waits 0"]
    panel.importing.indexing_ended(IndexingEnded(JobId("runs"), stopped=True))
    assert "runs" not in [one.job for one in panel.rows.imports()], "its progress is no longer shown"


def test_a_protected_file_asks_without_a_dialog(
    panel: LibraryPanel, services: Services, qtbot: QtBot, make_pdf: MakePdf
) -> None:
    locked = make_pdf("locked.pdf", long_pages("orchard", 1))
    locked.write_bytes(encrypted(locked.read_bytes(), "secret"))

    def answer(password: str, name: str) -> None:
        (card,) = panel._errors.cards()
        assert name in card._error.what
        card.findChildren(QPushButton)[-1].click()
        dialog = panel.findChildren(QInputDialog)[-1]
        assert name in dialog.labelText()
        dialog.setTextValue(password)
        dialog.accept()

    panel.importing.add([locked, make_pdf("open.pdf", long_pages("harbour", 1))])
    qtbot.waitUntil(lambda: names(panel) == ["open.pdf"] and bool(panel._errors.cards()))
    assert QApplication.activeModalWidget() is None, "what the reader writes meanwhile goes where it went"
    answer("guessed", "locked.pdf needs a password")
    qtbot.waitUntil(lambda: bool(panel._errors.cards()))
    answer("secret", "The password for locked.pdf is wrong")
    qtbot.waitUntil(lambda: "locked.pdf" in names(panel))
    assert not panel._errors.cards()


def test_locked_files_are_counted_apart(panel: LibraryPanel) -> None:
    for number in range(2):
        error = UserError(f"{number}.pdf needs a password.", "", "Give its password.")
        panel.importing.failed(ImportFailed(JobId(str(number)), Path(f"{number}.pdf"), error))
    assert panel._errors.summary.fold.text().strip() == "2 files are locked"
    panel.importing.failed(ImportFailed(JobId("3"), Path("3.pdf"), UserError("3.pdf is not a PDF.")))
    assert panel._errors.summary.fold.text().strip() == "1 import failed, 2 locked"


def test_an_error_follows_the_theme(theme: Theme, qtbot: QtBot) -> None:
    card = ErrorCard(theme, UserError("It is gone."))
    card.add_dismiss()
    qtbot.addWidget(card)
    before = card._picture.pixmap().toImage(), card._close.icon().pixmap(12).toImage()
    theme.choose("dark")
    after = card._picture.pixmap().toImage(), card._close.icon().pixmap(12).toImage()
    assert all(light != dark for light, dark in zip(before, after, strict=True))
