"""Followed folders: what comes, changes and leaves, with the real library."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.core.errors import UserError
from app.core.events import ImportDone, ImportFailed
from app.core.paths import Paths
from app.core.workspace import Workspace
from assets import sample_pdf
from tests.rag.pdf_files import book, encrypted, pdf_bytes, write_pdf


class Desk:
    def __init__(self, home: Path, folder: Path) -> None:
        import queue

        self.events: queue.SimpleQueue[object] = queue.SimpleQueue()
        self.workspace = Workspace(Paths.below(home), self.events.put, make_vectors=False)
        self.folder = folder

    def scan(self) -> int:
        """Imports begun and ended."""
        waiting = set(self.workspace.folders.scan(settled_s=0.0))
        begun = len(waiting)
        while waiting:
            event = self.events.get(timeout=240)
            if isinstance(event, ImportDone | ImportFailed):
                waiting.discard(event.job)
        return begun

    def names(self) -> list[str]:
        return [document.name for document in self.workspace.library.in_collection("Papers")]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    folder = tmp_path / "papers"
    (folder / "below").mkdir(parents=True)
    shutil.copy(sample_pdf(), folder / "a.pdf")
    made = Desk(tmp_path / "home", folder)
    made.workspace.folders.follow(folder, "Papers")
    yield made
    made.workspace.close(60)


def test_files_come_in_once_from_the_folder_and_below(desk: Desk) -> None:
    write_pdf(desk.folder / "below" / "b.pdf", [["Another text entirely."]])
    (desk.folder / "notes.txt").write_text("no PDF")
    assert desk.scan() == 2
    assert desk.names() == ["a.pdf", "b.pdf"]
    assert desk.scan() == 0


def test_a_file_that_left_leaves_the_collection_and_goes_to_the_trash(desk: Desk) -> None:
    desk.scan()
    (document,) = desk.workspace.library.documents()
    (desk.folder / "a.pdf").unlink()
    desk.scan()
    assert desk.names() == []
    assert desk.workspace.library.document(document.id).state == "trashed"


def test_a_document_that_a_conversation_uses_stays(desk: Desk) -> None:
    desk.scan()
    (document,) = desk.workspace.library.documents()
    desk.workspace.chats.new(documents=(int(document.id),))
    (desk.folder / "a.pdf").unlink()
    desk.scan()
    assert desk.names() == []
    assert desk.workspace.library.document(document.id).state != "trashed"


def test_a_changed_file_takes_the_place_of_the_old_one(desk: Desk) -> None:
    desk.scan()
    write_pdf(desk.folder / "a.pdf", [["A new version of it."]])
    assert desk.scan() == 1
    (document,) = desk.workspace.library.in_collection("Papers")
    assert document.pages == 1


def test_what_is_no_pdf_is_tried_once_until_it_changes(desk: Desk) -> None:
    bad = desk.folder / "bad.pdf"
    bad.write_bytes(b"no PDF at all")
    assert desk.scan() == 2
    assert desk.names() == ["a.pdf"]
    assert desk.scan() == 0
    assert desk.workspace.library.seen_files("Papers")[bad].error
    write_pdf(bad, [["Now it is one."]])
    assert desk.scan() == 1
    assert desk.names() == ["a.pdf", "bad.pdf"]


def test_a_folder_that_is_not_there_changes_nothing(desk: Desk) -> None:
    desk.scan()
    desk.folder.rename(desk.folder.with_name("moved"))
    assert desk.scan() == 0
    assert desk.names() == ["a.pdf"]
    with pytest.raises(UserError, match="not there"):
        desk.workspace.folders.follow(desk.folder, "Papers")


def test_a_file_is_left_alone_while_it_is_written(desk: Desk) -> None:
    assert desk.workspace.folders.scan(settled_s=3600.0) == []


def test_watching_takes_new_files_in_by_itself(desk: Desk) -> None:
    import os
    import time

    old = time.time() - 60
    os.utime(desk.folder / "a.pdf", (old, old))
    desk.workspace.folders.watch()
    while not isinstance(desk.events.get(timeout=240), ImportDone):
        pass
    assert desk.names() == ["a.pdf"]


def test_an_encrypted_file_joins_the_collection_with_its_password(desk: Desk) -> None:
    locked = desk.folder / "locked.pdf"
    locked.write_bytes(encrypted(pdf_bytes(book(2)), "secret"))
    assert desk.scan() == 2
    assert desk.names() == ["a.pdf"]
    assert "password" in desk.workspace.library.seen_files("Papers")[locked].error
    job = desk.workspace.documents.add(locked, password="secret")
    while not (isinstance(event := desk.events.get(timeout=240), ImportDone) and event.job == job):
        pass
    assert desk.names() == ["a.pdf", "locked.pdf"]
    assert desk.scan() == 0
    assert not desk.workspace.library.seen_files("Papers")[locked].error
