import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from rag import DocumentError, Library
from rag.index.database import Database
from rag.index.migrations import STEPS, migrate

MORE = (*STEPS, "ALTER TABLE documents ADD COLUMN colour TEXT;\nCREATE TABLE shelves (id INTEGER PRIMARY KEY);")


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def test_a_copy_is_made_before_migrating(library: Library, sample: object) -> None:
    path = library.folder / "library.sqlite"
    library.close()
    migrate(path, MORE)
    copy = path.with_name(f"library.sqlite.before-{len(MORE)}")
    assert (version(path), version(copy)) == (len(MORE), len(STEPS))
    assert copy.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(copy)) as old, closing(sqlite3.connect(path)) as new:
        assert old.execute("SELECT count(*) FROM pages").fetchone() == (10,)
        assert new.execute("SELECT name, colour FROM documents").fetchall() == [("pagekeep-sample.pdf", None)]


def test_a_step_that_fails_changes_nothing(library: Library, sample: object) -> None:
    path = library.folder / "library.sqlite"
    library.close()
    with pytest.raises(sqlite3.OperationalError):
        migrate(path, (*STEPS, "CREATE TABLE shelves (id INTEGER);\nALTER TABLE nothing ADD COLUMN x;"))
    assert version(path) == len(STEPS)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT * FROM sqlite_master WHERE name = 'shelves'").fetchall() == []


def test_a_newer_library_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "library.sqlite"
    migrate(path, MORE)
    with pytest.raises(DocumentError, match="newer"):
        Database(path)


def test_nothing_is_copied_for_a_new_library(library: Library) -> None:
    assert [path.name for path in library.folder.glob("*.before-*")] == []


def test_two_openers_migrate_once(tmp_path: Path) -> None:
    path = tmp_path / "library.sqlite"
    errors: list[Exception] = []

    def opened() -> None:
        try:
            migrate(path)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=opened) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert version(path) == len(STEPS)


def test_a_failed_transaction_is_rolled_back(tmp_path: Path) -> None:
    db = Database(tmp_path / "library.sqlite")
    db.run("CREATE TABLE shelf (name TEXT UNIQUE)")
    with pytest.raises(sqlite3.IntegrityError), db.transaction():
        db.run_many("INSERT INTO shelf VALUES (?)", [("one",), ("two",), ("one",)])
    assert db.tuples("SELECT * FROM shelf") == []
    db.close()


def test_many_may_migrate_a_new_file_at_once(tmp_path: Path) -> None:
    """The steps have a transaction each; whoever comes between two of them goes on where they are."""
    for number in range(12):
        barrier = threading.Barrier(4)

        def make(path: Path = tmp_path / f"{number}.db", barrier: threading.Barrier = barrier) -> None:
            barrier.wait(60)
            migrate(path)

        with ThreadPoolExecutor(4) as pool:
            for migrated in [pool.submit(make) for _ in range(4)]:
                migrated.result(60)
