"""The reader on a real PDF: exact characters, several pages, history, search, and a main thread that stays free."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import shiboken6
from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QImage
from pytestqt.qtbot import QtBot

from app.core.errors import UserError
from app.core.lookups import StoredRange
from app.reader.page_view import Place
from app.reader.panel import ReaderPanel
from app.reader.pdf import PdfFile, lines
from app.reader.toolbar import ReaderToolbar
from app.services import Services
from app.widgets.cards import ErrorCard
from app.widgets.watchdog import Watchdog
from assets import sample_pdf
from tests.app.gui.pdf_files import long_pages

MakePdf = Callable[..., Path]
PAGES = 40


@pytest.fixture
def document(services: Services, make_pdf: MakePdf) -> int:
    return services.workspace.library.add(make_pdf("harbour.pdf", long_pages("harbour", PAGES))).id


@pytest.fixture
def reader(services: Services, qtbot: QtBot) -> ReaderPanel:
    made = ReaderPanel(services)
    qtbot.addWidget(made)
    made.resize(520, 700)
    made.show()
    return made


def opened(reader: ReaderPanel, qtbot: QtBot, document: int, *where: object) -> None:
    with qtbot.waitSignal(reader.shown):
        reader.open(document, *where)


def test_another_documents_zoom_is_shown_as_it_is(
    reader: ReaderPanel, qtbot: QtBot, services: Services, document: int
) -> None:
    """Its pages have another width, and both fit the panel's."""
    opened(reader, qtbot, document)
    wide = reader.view.zoom
    opened(reader, qtbot, int(services.workspace.library.add(sample_pdf()).id))
    assert reader.view.zoom > 1.1 * wide
    assert reader.toolbar.zoom.text() == f"{reader.view.zoom * 100:.0f}\N{NO-BREAK SPACE}%"


def test_boxes_of_characters_join_to_lines() -> None:
    boxes = [QRectF(0, 0, 5, 10), QRectF(6, 1, 5, 9), QRectF(0, 14, 5, 10), QRectF(7, 14, 0, 0)]
    assert lines(boxes) == [QRectF(0, 0, 11, 10), QRectF(0, 14, 5, 10)]


def test_columns_stay_apart() -> None:
    assert len(lines([QRectF(0, 0, 50, 10), QRectF(200, 0, 50, 10)])) == 2


def test_rectangles_cover_exactly_the_characters(make_pdf: MakePdf, qtbot: QtBot) -> None:
    file = PdfFile(make_pdf("two.pdf", [["first line here", "second line"]]))
    text = file.document.getAllText(0).text()
    start = text.index("line here")
    (box,) = file.rectangles(0, start, len("line here"))
    (whole,) = file.rectangles(0, 0, len("first line here"))
    assert whole.left() < box.left() < box.right() <= whole.right() + 0.1
    assert len(file.rectangles(0, 0, len(text))) == 2
    file.close()


def test_citation_over_two_pages_is_marked_on_both_and_shown(reader: ReaderPanel, qtbot: QtBot, document: int) -> None:
    ranges = (StoredRange(20, 900, 200), StoredRange(21, 0, 60))
    opened(reader, qtbot, document, None, ranges)
    qtbot.waitUntil(lambda: set(reader.view._marks) == {20, 21})
    qtbot.waitUntil(lambda: reader.view.page == 20)
    view = reader.view
    top = view._box(20).top() + view._marks[20][0].top() * view._scale()
    assert 0 < top < view.viewport().height()


def test_pages_are_rendered_sharp_and_only_near_the_view(reader: ReaderPanel, qtbot: QtBot, document: int) -> None:
    opened(reader, qtbot, document, Place(10))
    view = reader.view
    qtbot.waitUntil(lambda: (10, view._pixels(10).width()) in view._images)
    image = view._images[(10, view._pixels(10).width())]
    assert image.width() == round(view._box(10).width() * view.devicePixelRatioF())
    qtbot.wait(200)
    assert {page for page, _ in view._images} <= set(range(0, 14))


def test_back_and_forward(reader: ReaderPanel, qtbot: QtBot, document: int) -> None:
    opened(reader, qtbot, document, Place(3))
    reader._go_to_page(30)
    assert reader.view.page == 30
    reader.go_back()
    assert reader.view.page == 3
    reader.go_forward()
    assert reader.view.page == 30


def test_page_field_takes_labels_and_refuses_nonsense(
    reader: ReaderPanel, qtbot: QtBot, document: int, services: Services
) -> None:
    opened(reader, qtbot, document)
    reader.toolbar.page_entered.emit("12")
    assert reader.view.page == 11
    reader.toolbar.page_entered.emit("xii")
    assert "no page" in services.toasts._text.text()
    assert reader.view.page == 11


def test_search_finds_and_steps(reader: ReaderPanel, qtbot: QtBot, document: int) -> None:
    opened(reader, qtbot, document)
    reader.search_in_document()
    reader.toolbar.search_for.emit("rule 423:")
    qtbot.waitUntil(lambda: reader.view.page == 21)
    qtbot.waitUntil(lambda: reader.toolbar._found.text() == "1 of 1")
    assert reader.view._found[21]


def test_all_that_is_found_is_marked_and_the_one_shown_more(reader: ReaderPanel, qtbot: QtBot, document: int) -> None:
    opened(reader, qtbot, document)
    reader.toolbar.search_for.emit("rule 2")
    qtbot.waitUntil(lambda: reader.toolbar._found.text() == "1 of 111")
    others = reader.view._others
    assert sorted(page for page, boxes in others.items() if boxes) == [0, 1, *range(10, 15)]
    (page,) = reader.view._found
    assert reader.view._found[page][0] in others[page]
    reader.finding.reset()
    assert not reader.view._others


def test_search_begins_where_one_reads_and_says_that_it_runs(
    reader: ReaderPanel, qtbot: QtBot, document: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    show = ReaderToolbar.show_found

    def showing(bar: ReaderToolbar, *given: object) -> None:
        show(bar, *given)
        said.append(bar._found.text())

    monkeypatch.setattr(ReaderToolbar, "show_found", showing)
    opened(reader, qtbot, document, Place(30))
    qtbot.waitUntil(lambda: reader.view.page == 30)
    reader.toolbar.search_for.emit("harbour")
    qtbot.waitUntil(lambda: bool(said) and "of" in said[-1])
    assert said[0] == "searching…", "none is said only when all was searched"
    assert "none" not in said
    assert min(reader.view._found) >= 30, "what stands before the page one reads comes last"
    qtbot.waitUntil(lambda: said[-1][-1].isdigit())
    first, total = (int(number) for number in said[-1].split(" of "))
    assert total >= PAGES
    assert first > 30 * total // PAGES, "those before it were found meanwhile, and it is still the same one"
    reader.toolbar.search_for.emit("no such words")
    qtbot.waitUntil(lambda: said[-1] == "none")
    reader.toolbar.search_for.emit("")
    assert reader.toolbar._found.text() == ""


def test_words_are_searched_in_the_next_document_and_its_page_stays(
    reader: ReaderPanel, qtbot: QtBot, services: Services, document: int, make_pdf: MakePdf
) -> None:
    other = int(services.workspace.library.add(make_pdf("other.pdf", long_pages("harbour", 6))).id)
    opened(reader, qtbot, document)
    reader.toolbar.search_for.emit("no such words")
    assert reader.toolbar._found.text() == "searching…"
    opened(reader, qtbot, other)
    qtbot.waitUntil(lambda: reader.toolbar._found.text() == "none")
    reader.toolbar.search_for.emit("rule 41:")
    qtbot.waitUntil(lambda: "of" in reader.toolbar._found.text())
    opened(reader, qtbot, document, Place(9))
    qtbot.waitUntil(lambda: reader.toolbar._found.text() == "1 found")
    assert (reader.view.page, reader.view._found) == (9, {})
    reader.finding.step(1)
    assert (reader.view.page, reader.toolbar._found.text()) == (2, "1 of 1")
    reader.close_document(document)
    assert reader.toolbar._found.text() == ""


def test_who_went_to_another_page_meanwhile_stays_there(reader: ReaderPanel, qtbot: QtBot, document: int) -> None:
    opened(reader, qtbot, document)
    reader.toolbar.search_for.emit("rule 423:")
    reader.view.go(Place(33))
    qtbot.waitUntil(lambda: reader.toolbar._found.text() == "1 found")
    assert reader.view.page == 33


@pytest.mark.parametrize(("direction", "page"), [(1, 12), (-1, 11)])
def test_the_first_step_begins_at_the_page_on_the_screen(
    reader: ReaderPanel, qtbot: QtBot, document: int, direction: int, page: int
) -> None:
    opened(reader, qtbot, document)
    reader.toolbar.search_for.emit("rule 2")  # on the pages 0, 1 and 10 to 14
    reader.view.go(Place(12))
    qtbot.waitUntil(lambda: "found" in reader.toolbar._found.text())
    reader.finding.step(direction)
    assert list(reader.view._found) == [page]


def test_each_page_is_looked_at_for_itself(reader: ReaderPanel, qtbot: QtBot, document: int) -> None:
    """All that was found so far was walked with each page while nothing stood behind the page on the screen."""
    opened(reader, qtbot, document, Place(30))
    qtbot.waitUntil(lambda: reader.view.page == 30)
    search, walked = reader._file.search, []
    search.resultAtIndex = walked.append
    reader.toolbar.search_for.emit("rule 2")
    qtbot.waitUntil(lambda: reader.toolbar._found.text() == "1 of 111")
    assert (reader.view.page, walked) == (0, [])


def test_all_pages_are_searched_by_asking(reader: ReaderPanel, qtbot: QtBot, document: int) -> None:
    """The model's own pace is ten pages a second."""
    opened(reader, qtbot, document)
    asked: list[int] = []
    search, real = reader._file.search, reader._file.search.resultsOnPage
    search.resultsOnPage = lambda page: (asked.append(page), real(page))[1]
    reader.toolbar.search_for.emit("harbour")
    qtbot.waitUntil(lambda: reader.toolbar._found.text()[-1:].isdigit())
    assert sorted(set(asked)) == list(range(PAGES))


def test_file_that_is_gone_says_what_to_do(make_pdf: MakePdf, tmp_path: Path) -> None:
    with pytest.raises(UserError) as told:
        PdfFile(tmp_path / "5f1e.pdf", name="gone.pdf")
    assert "gone.pdf" in told.value.what
    assert "5f1e.pdf" in told.value.why
    assert told.value.next


def test_a_document_that_was_gone_is_shown_when_it_is_added_again(
    reader: ReaderPanel, qtbot: QtBot, services: Services, make_pdf: MakePdf
) -> None:
    library, original = services.workspace.library, make_pdf("orchard.pdf", long_pages("orchard", 4))
    document = library.add(original)
    document.path.unlink()
    reader.open(document.id, Place(2))
    qtbot.waitUntil(lambda: bool(reader.findChildren(ErrorCard)))
    assert "orchard.pdf" in reader.findChild(ErrorCard)._error.what
    reader.taken_in(library.add(original))
    qtbot.waitUntil(lambda: reader._file is not None)
    assert reader.view.page == 2


def test_reading_a_long_document_never_blocks_the_window(reader: ReaderPanel, qtbot: QtBot, document: int) -> None:
    watchdog = Watchdog(limit=0.1).start()
    opened(reader, qtbot, document)
    for page in range(0, PAGES, 3):
        reader.view.go(Place(page, 0.4))
        qtbot.wait(30)
    reader.view.set_zoom(3.0)
    qtbot.wait(500)
    assert [stall for stall in watchdog.stop() if stall.is_ours] == []


def test_renderings_come_one_at_a_time_and_the_newest_wish_counts(make_pdf: MakePdf, qtbot: QtBot) -> None:
    file = PdfFile(make_pdf("many.pdf", long_pages("many", 12)))
    pages: list[int] = []

    def take(page: int, image: QImage) -> None:
        pages.append(page)
        if len(pages) == 1:
            file.wish([(11, QSize(400, 560))])

    file.rendered.connect(take)
    file.wish([(page, QSize(400, 560)) for page in range(10)])
    qtbot.waitUntil(lambda: 11 in pages)
    qtbot.wait(50)
    assert len(pages) < 4, "pages of the older wish are left out"
    file.close()


def test_closing_in_the_middle_of_a_rendering_is_safe(make_pdf: MakePdf, qtbot: QtBot) -> None:
    path = make_pdf("many.pdf", long_pages("many", 8))
    for pause in range(0, 24, 3):
        file = PdfFile(path)
        file.wish([(page, QSize(2400, 3360)) for page in range(8)])
        qtbot.wait(pause)
        shiboken6.delete(file)
