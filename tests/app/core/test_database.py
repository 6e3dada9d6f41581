import sqlite3
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlite_utils

from app.core.database import MigratedDatabase
from app.core.errors import UserError


def _first(db: sqlite_utils.Database) -> None:
    db.execute("CREATE TABLE a (x INTEGER)")


def _second(db: sqlite_utils.Database) -> None:
    db.execute("ALTER TABLE a ADD COLUMN y INTEGER")


def _broken(db: sqlite_utils.Database) -> None:
    db.execute("CREATE TABLE b (x INTEGER)")
    db.execute("INSERT INTO a (x) VALUES (2)")
    raise sqlite3.OperationalError("the disk is full")


def rows(path: Path) -> list[tuple[int, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute("SELECT x FROM a").fetchall()
    finally:
        connection.close()


def test_two_in_one_process_keep_their_log_when_another_process_leaves(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    first, second = (MigratedDatabase(path, [_first], "The things") for _ in range(2))
    with first.transaction() as db:
        db.execute("INSERT INTO a (x) VALUES (1)")
    read = f"c = sqlite3.connect({str(path)!r}); print(c.execute('SELECT x FROM a').fetchall())"
    seen = subprocess.run(
        [sys.executable, "-c", f"import sqlite3; {read}; c.close()"], capture_output=True, text=True, check=True
    )
    assert seen.stdout.strip() == "[(1,)]"
    assert path.with_name("a.db-wal").exists()
    first.close()
    second.close()


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file of format 1 with one row."""
    path = tmp_path / "a.db"
    database = MigratedDatabase(path, [_first], "The things")
    with database.transaction() as db:
        db.execute("INSERT INTO a (x) VALUES (1)")
    database.close()
    return path


def test_wal_and_private(old: Path) -> None:
    assert stat.S_IMODE(old.stat().st_mode) == 0o600
    connection = sqlite3.connect(old)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_copied_before_it_is_migrated(old: Path) -> None:
    database = MigratedDatabase(old, [_first, _second], "The things")
    with database.reading() as db:
        assert list(db.query("SELECT x, y FROM a")) == [{"x": 1, "y": None}]
    database.close()
    copy = old.with_name("a.db.format-1")
    assert rows(copy) == [(1,)]
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_a_failed_migration_changes_nothing(old: Path) -> None:
    with pytest.raises(UserError):
        MigratedDatabase(old, [_first, _broken], "The things")
    assert rows(old) == [(1,)]
    again = MigratedDatabase(old, [_first], "The things")
    with again.reading() as db:
        assert db.table_names() == ["a"]
    again.close()


def test_a_newer_file_is_refused_unchanged(old: Path) -> None:
    MigratedDatabase(old, [_first, _second], "The things").close()
    before = old.read_bytes()
    with pytest.raises(UserError, match="newer Pagekeep") as caught:
        MigratedDatabase(old, [_first], "The things")
    assert "format 2" in caught.value.why
    assert old.read_bytes() == before


def test_no_database_is_refused_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(b"this is a letter, not a database, and long enough to be looked at" * 20)
    with pytest.raises(UserError, match="could not be opened"):
        MigratedDatabase(path, [_first], "The things")
    assert path.read_bytes().startswith(b"this is a letter")


def test_a_transaction_that_fails_leaves_nothing(old: Path) -> None:
    database = MigratedDatabase(old, [_first], "The things")
    with pytest.raises(sqlite3.IntegrityError), database.transaction() as db:  # noqa: PT012
        db.execute("INSERT INTO a (x) VALUES (7)")
        db.execute("INSERT INTO a (rowid, x) VALUES (1, 8)")
    with database.reading() as db:
        assert [row["x"] for row in db.query("SELECT x FROM a")] == [1]
    database.close()


def test_a_full_disk_is_told_and_nothing_is_lost(old: Path) -> None:
    database = MigratedDatabase(old, [_first], "The things")
    (pages,) = database.db.execute("PRAGMA page_count").fetchone()
    database.db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(UserError, match="full") as caught, database.transaction() as db:
        db.execute("CREATE TABLE large AS SELECT randomblob(100000) AS x")
    assert "Free some space" in caught.value.next
    with database.transaction() as db:
        db.execute("INSERT INTO a (x) VALUES (2)")
    database.close()
    assert rows(old) == [(1,), (2,)]


def test_a_file_that_another_program_holds_is_told(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.core.database.BUSY_SECONDS", 0.05)
    database = MigratedDatabase(old, [_first], "The things")
    other = sqlite3.connect(old, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(UserError, match="Another program"), database.transaction():
        pass
    other.close()
    database.close()


def test_advice_names_only_a_copy_that_is_there(old: Path) -> None:
    def refused() -> UserError:
        old.write_bytes(b"no database at all" * 100)
        with pytest.raises(UserError) as caught:
            MigratedDatabase(old, [_first, _second], "The things")
        return caught.value

    kept = old.read_bytes()
    assert "format-" not in refused().next
    old.write_bytes(kept)
    MigratedDatabase(old, [_first, _second], "The things").close()
    assert "a.db.format-1" in refused().next


def test_a_folder_that_cannot_be_written_can_be_read(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    database = MigratedDatabase(old, [_first], "The things")
    with database.reading() as db:
        assert [row["x"] for row in db.query("SELECT x FROM a")] == [1]
    with pytest.raises(UserError, match="read-only"), database.transaction() as db:
        db.execute("INSERT INTO a (x) VALUES (2)")
    database.close()


def test_an_older_file_that_cannot_be_written_says_so(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = old.read_bytes()
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(UserError) as caught:
        MigratedDatabase(old, [_first, _second], "The things")
    assert "older Pagekeep" in caught.value.what
    assert "format 1, this version reads 2" in caught.value.why
    assert old.read_bytes() == before
    assert not list(old.parent.glob("*.format-*"))


def test_many_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    for number in range(12):
        barrier = threading.Barrier(4)

        def make(path: Path = tmp_path / f"{number}.db", barrier: threading.Barrier = barrier) -> None:
            barrier.wait(60)
            MigratedDatabase(path, (_first, _second), "The things").close()

        with ThreadPoolExecutor(4) as pool:
            for opened in [pool.submit(make) for _ in range(4)]:
                opened.result(60)
