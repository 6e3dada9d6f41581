"""Faults of disk and file are told, not passed on as SQLite's."""

import subprocess
import sys
from pathlib import Path

import pytest

from rag import Library
from rag.errors import DocumentError
from rag.index.database import Database


def test_a_damaged_library_says_which_file_and_what_to_do(tmp_path: Path) -> None:
    Library(tmp_path).close()
    path = tmp_path / "library.sqlite"
    for side in tmp_path.glob("library.sqlite-*"):
        side.unlink()
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(DocumentError) as caught:
        Library(tmp_path)
    assert str(path) in caught.value.why
    assert "add the documents again" in caught.value.next
    assert caught.value.kind == "library"


def test_damage_within_is_told_when_it_is_read(tmp_path: Path) -> None:
    database = Database(tmp_path / "library.sqlite")
    with database.transaction():
        database.run("CREATE TABLE large AS SELECT 1 AS n, hex(zeroblob(20000)) AS x")
    database.close()
    data = bytearray(database.path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    database.path.write_bytes(data)
    with pytest.raises(DocumentError, match="damaged"):
        Database(database.path).rows("SELECT x FROM large")


def test_two_in_one_process_keep_their_log_when_another_process_leaves(tmp_path: Path) -> None:
    """The process that closes last writes the log back and removes it: it must see that this one is still there."""
    path = tmp_path / "library.sqlite"
    first = Database(path)
    with first.transaction():
        first.run("CREATE TABLE x (n)")
    second = Database(path)
    read = f"c = sqlite3.connect({str(path)!r}); print(c.execute('SELECT count(*) FROM x').fetchone()[0])"
    for number in (1, 2):
        with first.transaction():
            first.run("INSERT INTO x VALUES (?)", (number,))
        seen = subprocess.run(
            [sys.executable, "-c", f"import sqlite3; {read}; c.close()"], capture_output=True, text=True, check=True
        )
        assert seen.stdout.strip() == str(number)
        assert path.with_name("library.sqlite-wal").exists()
    first.close()
    second.close()


def test_a_full_disk_is_told_and_the_database_goes_on(tmp_path: Path) -> None:
    database = Database(tmp_path / "library.sqlite")
    (pages,) = database.tuples("PRAGMA page_count")[0]
    database.run(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(DocumentError) as caught, database.transaction():
        database.run("CREATE TABLE large AS SELECT randomblob(100000) AS x")
    assert caught.value.kind == "no_space"
    assert caught.value.next
    with database.transaction():
        database.run("DELETE FROM documents")
    database.close()


def test_a_folder_that_cannot_be_written_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database(tmp_path / "library.sqlite")
    database.run("CREATE TABLE notes AS SELECT 7 AS n")
    database.close()
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr("os.access", lambda path, mode: False)
    fixed = Database(tmp_path / "library.sqlite")
    assert fixed.rows("SELECT n FROM notes") == [{"n": 7}]
    with pytest.raises(DocumentError, match="read-only") as caught, fixed.transaction():
        fixed.run("DELETE FROM notes")
    assert "rights" in caught.value.next
    fixed.close()
    assert sorted(p for p in tmp_path.iterdir() if p.suffix == ".sqlite") == before
