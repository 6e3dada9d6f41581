"""Documents are read before anybody asks: real engine, starter model, library and conversations."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from app.core import read_ahead
from app.core.events import ImportDone, ImportFailed
from app.core.gate import ReadyModel
from app.core.kept import documents_of
from engine.messages import ComputedRange, DocumentProgress, DocumentRead, DocumentStopped, StopDocument
from engine.store.tools import StoreTools
from rag import reread
from rag.pdf.client import ExtractedPage
from rag.pdf.text import CharMap
from tests.app.core.test_workspace import QUICK, Desk
from tests.app.held import held_until
from tests.rag import pdf_files
from tests.rag.test_reread import hebrew

pytestmark = [pytest.mark.model, pytest.mark.slow]


class Battery(NamedTuple):
    """As psutil tells of one."""

    percent: float
    secsleft: int
    power_plugged: bool


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """No model is loaded."""
    made = Desk(tmp_path, read_ahead=True)
    yield made
    made.workspace.close()


@pytest.fixture
def _unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No document is read to its end before it was told to stop."""
    held_until(monkeypatch, StopDocument, 2)


def events_for(desk: Desk, seconds: float) -> list[Any]:
    """What is reported within that time."""
    found, until = [], time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        try:
            found.append(desk.events.get(timeout=left))
        except queue.Empty:
            break
    return found


def about_documents(events: list[Any]) -> list[Any]:
    return [e for e in events if isinstance(e, DocumentProgress | DocumentRead | DocumentStopped)]


def test_a_first_question_computes_only_what_is_its_own(desk: Desk, starter_model: Path) -> None:
    desk.load(starter_model)
    document = desk.book(3)
    read = desk.until(DocumentRead, DocumentStopped)
    assert isinstance(read, DocumentRead), read
    assert (read.document, read.label, read.computed) == (str(document), "book1.pdf", read.tokens)
    for i, question in enumerate(("Which word is on page two?", "Tell me about the harbour.")):
        c = desk.workspace.chats.new(documents=(document,))
        price = desk.workspace.price(c.id, question)
        report = desk.answer(c.id, question).report
        shared = desk.workspace.conversations.messages(c.id)[0].placement.shared_tokens
        reused = report.tokens.reused
        assert read.tokens == shared == reused.of_which_shared
        assert price.reused_tokens == reused.memory
        assert reused.memory == shared if i == 0 else shared < reused.memory < shared + 10, "the template's glue"
        assert report.tokens.computed == (ComputedRange(report.tokens.prompt - reused.memory, "new"),)


def test_newest_first_and_only_what_is_read_whole(desk: Desk, starter_model: Path) -> None:
    first, long, last = desk.book(1, seed=1), desk.book(16, seed=2), desk.book(1, seed=3)
    desk.load(starter_model)
    assert [desk.until(DocumentRead).document for _ in range(2)] == [str(last), str(first)]
    model = ReadyModel.of(desk.workspace.engine.model)
    assert desk.workspace._planner.shared_prefix([long], model) is None
    assert about_documents(events_for(desk, 0.5)) == []


def test_what_was_read_is_not_read_again(desk: Desk, starter_model: Path) -> None:
    desk.load(starter_model)
    desk.book(2)
    read = desk.until(DocumentRead)
    desk.workspace.close()
    again = Desk(desk.home, read_ahead=True)
    try:
        again.load(starter_model)
        (event,) = about_documents(events_for(again, 1.5))
        assert event == replace(read, computed=0, seconds=0.0, bytes_written=0)
    finally:
        again.workspace.close()


def test_text_read_anew_is_read_ahead_again(desk: Desk, starter_model: Path) -> None:
    """Its lines are put in order: it has as many characters as before."""
    desk.workspace.documents.add(hebrew(desk.home))
    document = desk.until(ImportDone, ImportFailed).document
    library = desk.workspace.library
    new = [library.page_text(document.id, page) for page in range(document.pages)]
    old = ["\n".join(line[::-1] for line in text.split("\n")) for text in new if not text.isascii()]
    with library._shelf.db.transaction():
        pages = [ExtractedPage(n, text, CharMap((0,), (0,)), "text", "") for n, text in enumerate(old)]
        reread._replace(library._shelf, document, pages)
        library._shelf.db.run("UPDATE documents SET extraction = 1")
    desk.load(starter_model)
    assert desk.until(DocumentRead).computed > 0
    desk.workspace.documents.resume()
    read = desk.until(DocumentRead)
    assert [library.page_text(document.id, page) for page in range(document.pages)] == new
    assert library.document(document.id).characters == document.characters
    assert (read.document, read.computed > 0) == (str(document.id), True)


@pytest.mark.usefixtures("_unhurried")
def test_the_trash_ends_it(desk: Desk, starter_model: Path) -> None:
    desk.load(starter_model)
    document = desk.book(5)
    desk.until(DocumentProgress)
    desk.workspace.documents.trash(document)
    stopped = desk.until(DocumentStopped, DocumentRead)
    assert isinstance(stopped, DocumentStopped)
    assert 0 < stopped.done < stopped.total
    assert about_documents(events_for(desk, 0.5)) == []
    desk.workspace.documents.restore(document)
    read = desk.until(DocumentRead, DocumentStopped)
    assert read.computed == stopped.total - stopped.done, "it goes on where it was stopped"


@pytest.mark.usefixtures("_unhurried")
def test_the_reader_ends_it_and_a_new_document_goes_on(desk: Desk, starter_model: Path) -> None:
    desk.load(starter_model)
    first = desk.book(5)
    desk.until(DocumentProgress)
    desk.workspace.ahead.hold()
    assert isinstance(desk.until(DocumentStopped, DocumentRead), DocumentStopped)
    assert about_documents(events_for(desk, 0.5)) == []
    second = desk.book(1, seed=2)
    assert [desk.until(DocumentRead).document for _ in range(2)] == [str(second), str(first)]


@pytest.mark.usefixtures("_unhurried")
def test_a_newer_document_is_read_before_the_rest(desk: Desk, starter_model: Path) -> None:
    desk.load(starter_model)
    first = desk.book(5)
    desk.until(DocumentProgress)
    desk.workspace.documents.add(pdf_files.write_pdf(desk.home / "new.pdf", pdf_files.book(1, 2)))
    events = [desk.until(DocumentStopped, DocumentRead, ImportDone, ImportFailed) for _ in range(4)]
    (second,) = (str(e.document.id) for e in events if isinstance(e, ImportDone))
    endings = [e for e in events if not isinstance(e, ImportDone)]
    assert [(type(e), e.document) for e in endings] == [
        (DocumentStopped, str(first)),
        (DocumentRead, second),
        (DocumentRead, str(first)),
    ]


@pytest.mark.usefixtures("_unhurried")
def test_imports_and_their_vectors_come_first(desk: Desk, starter_model: Path) -> None:
    """They get next to nothing of a processor that the model reads with."""
    desk.load(starter_model)
    ahead, indexing = desk.workspace.ahead, False
    ahead._with = replace(ahead._with, indexing=lambda: indexing)
    desk.book(5)
    desk.until(DocumentProgress)
    indexing = True
    ahead.wake()
    stopped = desk.until(DocumentStopped, DocumentRead)
    assert isinstance(stopped, DocumentStopped)
    assert about_documents(events_for(desk, 1.2)) == []
    indexing = False
    assert desk.until(DocumentStopped, DocumentRead).computed == stopped.total - stopped.done


def test_what_is_taken_in_is_at_work_until_its_vectors_are_made(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    imports, during = desk.workspace._imports, []
    taken, embedded = imports._take_in, imports._have_embedder
    monkeypatch.setattr(imports, "_take_in", lambda *job: (during.append(imports.at_work), taken(*job))[1])
    monkeypatch.setattr(imports, "_have_embedder", lambda job: (during.append(imports.at_work), embedded(job)))
    desk.book(1)
    until = time.monotonic() + 60
    while imports.at_work and time.monotonic() < until:
        time.sleep(0.01)
    assert during == [True, True]
    assert not imports.at_work


def test_only_where_the_preference_allows_it(tmp_path: Path, starter_model: Path) -> None:
    desk = Desk(tmp_path, replace(QUICK, read_ahead=False), read_ahead=True)
    desk.load(starter_model)
    desk.book(1)
    assert about_documents(events_for(desk, 0.7)) == []
    desk.workspace.update_settings(read_ahead=True)
    desk.until(DocumentRead)
    desk.workspace.close()


def test_never_without_being_asked_for(tmp_path: Path, starter_model: Path) -> None:
    desk = Desk(tmp_path)
    desk.load(starter_model)
    desk.book(1)
    assert about_documents(events_for(desk, 0.7)) == []
    desk.workspace.close()


@pytest.mark.usefixtures("_unhurried")
def test_never_on_battery(desk: Desk, starter_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The battery is the machine's: what psutil would tell of one is put in its place."""
    plugged = False
    monkeypatch.setattr(psutil, "sensors_battery", lambda: Battery(80, 3600, plugged), raising=False)
    monkeypatch.setattr(read_ahead, "BATTERY_EVERY_S", 0.1)
    desk.load(starter_model)
    desk.book(5)
    assert about_documents(events_for(desk, 0.7)) == []
    plugged = True
    assert isinstance(desk.until(DocumentProgress), DocumentProgress)
    plugged = False
    stopped = desk.until(DocumentStopped, DocumentRead)
    assert isinstance(stopped, DocumentStopped)
    plugged = True
    assert desk.until(DocumentStopped, DocumentRead).computed == stopped.total - stopped.done


def test_a_machine_without_battery_is_not_on_battery(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "sensors_battery", lambda: None, raising=False)
    assert not read_ahead.on_battery()
    monkeypatch.delattr(psutil, "sensors_battery")
    assert not read_ahead.on_battery()


def test_documents_of_a_conversation_are_read_together_in_shelf_order(desk: Desk, starter_model: Path) -> None:
    first, second = desk.book(1, seed=1), desk.book(1, seed=2)
    desk.load(starter_model)
    for _ in range(2):
        desk.until(DocumentRead)
    c = desk.workspace.chats.new(documents=(second, first))
    read = desk.until(DocumentRead, DocumentStopped)
    assert isinstance(read, DocumentRead), read
    assert read.document == f"{first}+{second}"
    assert 0 < read.computed < read.tokens, "the first alone was read before"
    report = desk.answer(c.id, "Which word is on page two?").report
    assert desk.workspace.conversations.messages(c.id)[0].placement.shared_tokens == read.tokens
    assert report.tokens.reused.memory >= read.tokens


@pytest.mark.parametrize("loaded", [True, False])
def test_emptying_the_trash_frees_what_was_read(desk: Desk, starter_model: Path, loaded: bool) -> None:
    """Also where no model is loaded."""
    gone, kept = desk.book(1, seed=1), desk.book(1, seed=2)
    desk.load(starter_model)
    for _ in range(2):
        desk.until(DocumentRead)
    desk.workspace.chats.new(documents=(gone, kept))
    desk.until(DocumentRead)
    if not loaded:
        desk.workspace.close()
        desk = Desk(desk.home, read_ahead=True)
    with StoreTools(desk.workspace.paths.kv) as tools:
        names = {(gone,), (kept,), (gone, kept)}
        until = time.monotonic() + 60
        while {documents_of(name) for name in tools.names()} != names and time.monotonic() < until:
            time.sleep(0.05)  # it is written behind
        before = tools.stat().live_bytes
        desk.workspace.documents.trash(gone)
        desk.workspace.documents.purge(gone)
        desk.workspace.close()
        assert [documents_of(name) for name in tools.names()] == [(kept,)]
        assert tools.stat().live_bytes < before / 2
