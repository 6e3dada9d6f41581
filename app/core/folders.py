"""Followed folders: PDFs that come into them come into the library, those that leave them leave the collection.

A folder that is not there (a drive that is not mounted) changes nothing. What could not be taken in is not tried
again until the file changes.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from app.core.errors import UserError
from app.core.events import JobId
from rag.collections import Collection, SeenFile
from rag.types import Document

if TYPE_CHECKING:
    from rag import Library

log = logging.getLogger(__name__)
EVERY_S = 20.0
SETTLED_S = 2.0  # a file that changed later may still be written to
Done = Callable[[Document], None]
Failed = Callable[[UserError], None]
Submit = Callable[[Path, Done, Failed], JobId]


class Folders:
    """Looks at followed folders, at once or over and over; thread-safe.

    Args:
        submit: imports a file on another thread.
        in_use: whether any conversation has a document attached.
    """

    def __init__(self, library: Callable[[], Library], submit: Submit, in_use: Callable[[int], bool]) -> None:
        self._library = library
        self._submit = submit
        self._in_use = in_use
        self._lock = threading.Lock()
        self._waiting: set[tuple[str, Path]] = set()  # imports on their way
        self._stopped = threading.Event()
        self._woken = threading.Event()
        self._thread: threading.Thread | None = None

    def follow(self, folder: Path, name: str = "") -> Collection:
        """The folder's PDFs belong to the collection `name` (default: the folder's name) from now on.

        Errors: UserError when it is not there.
        """
        if not folder.is_dir():
            raise UserError("This folder is not there.", f"There is no folder {folder}.", "Choose another.")
        made = self._library().make_collection(name or folder.absolute().name or "Folder", folder)
        self.wake()
        return made

    def scan(self, settled_s: float = SETTLED_S) -> list[JobId]:
        """Looks at all of them once; the imports that were begun."""
        return [job for one in self._library().collections() if one.folder for job in self._scan(one, settled_s)]

    def took_in(self, path: Path, document: Document) -> None:
        """A file was imported otherwise, as an encrypted one with its password: where it was seen in a followed folder
        and could not be taken in from there, it joins the collection."""
        for one in self._library().collections():
            seen = self._library().seen_files(one.name).get(path.absolute()) if one.folder else None
            if seen is not None and seen.document_id != document.id and path.is_file():
                self._settle(one.name, path.absolute(), _mark(path.stat()), seen, document)

    def watch(self) -> None:
        """Looks at them every EVERY_S seconds from now on, on a thread of its own."""
        with self._lock:
            if self._thread is None and not self._stopped.is_set():
                self._thread = threading.Thread(target=self._run, name="folders", daemon=True)
                self._thread.start()

    def wake(self) -> None:
        """Looks at once where it watches."""
        self._woken.set()

    def close(self, timeout: float) -> None:
        self._stopped.set()
        self._woken.set()
        if self._thread is not None:
            self._thread.join(timeout)

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self.scan()
            except Exception as error:
                log.info("followed folders could not be looked at: %s", type(error).__name__)
            self._woken.wait(EVERY_S)
            self._woken.clear()

    def _scan(self, collection: Collection, settled_s: float) -> Iterator[JobId]:
        folder = collection.folder
        if folder is None or not folder.is_dir():
            return
        seen = self._library().seen_files(collection.name)
        here = dict(_pdfs(folder))
        for path, known in seen.items():
            if path not in here:
                self._left(collection.name, known)
        for path, status in here.items():
            known_as = seen.get(path)
            same = known_as is not None and (known_as.size, known_as.modified_ns) == _mark(status)
            if not same and time.time() - status.st_mtime >= settled_s:
                job = self._take_in(collection.name, path, status, known_as)
                if job is not None:
                    yield job

    def _take_in(self, name: str, path: Path, status: os.stat_result, before: SeenFile | None) -> JobId | None:
        with self._lock:
            if (name, path) in self._waiting:
                return None
            self._waiting.add((name, path))
        mark = _mark(status)

        def ended() -> None:
            with self._lock:
                self._waiting.discard((name, path))

        def done(document: Document) -> None:
            ended()
            self._settle(name, path, mark, before, document)

        def failed(error: UserError) -> None:
            ended()
            self._library().note_file(name, SeenFile(path, *mark, None, error.what))

        return self._submit(path, done, failed)

    def _settle(
        self, name: str, path: Path, mark: tuple[int, int], before: SeenFile | None, document: Document
    ) -> None:
        """The file is in the collection; what it held before leaves."""
        if before is not None and before.document_id not in (None, document.id):
            self._left(name, before)
        self._library().put_in(name, [document.id])
        self._library().note_file(name, SeenFile(path, *mark, document.id, ""))

    def _left(self, name: str, file: SeenFile) -> None:
        """Its document leaves the collection, and goes to the trash when nothing else holds it."""
        library = self._library()
        library.forget_file(name, file.path)
        if file.document_id is None:
            return
        library.take_out(name, [file.document_id])
        held = any(file.document_id in one.documents for one in library.collections())
        if not held and not self._in_use(int(file.document_id)):
            library.trash(file.document_id)


def _pdfs(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(place, name)
            if path.suffix.lower() == ".pdf" and not name.startswith(".") and path.is_file():
                yield path, path.stat()


def _mark(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns
