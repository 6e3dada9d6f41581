"""Words of older libraries are stemmed from the stored text."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rag import IntakeCancelled, Library, restem
from rag.index import records, stems
from rag.index.migrations import STEPS
from rag.types import IngestProgress, Renewed
from tests.rag import pdf_files
from tests.rag.test_languages import TABLES, TEXTS, add, rows

BEFORE_STEMS = 4  # version of the schema


def as_before_stems(library: Library) -> Library:
    """The library as a program without stems left it, opened by this one."""
    library.close()
    path = library.folder / "library.sqlite"
    with closing(sqlite3.connect(path)) as db:
        for table in (*TABLES, "other_names", "reread_pages", "rereads"):
            db.execute(f"DROP TABLE {table}")
        db.execute("DROP INDEX windows_by_page")
        for column in ("language", "stemming", "extraction", "metadata", "revision"):
            db.execute(f"ALTER TABLE documents DROP COLUMN {column}")
        db.execute(f"PRAGMA user_version = {BEFORE_STEMS:d}")
        db.commit()
    opened = Library(library.folder)
    assert opened._shelf.db.tuples("PRAGMA user_version") == [(len(STEPS),)]
    return opened


def contents(library: Library) -> list[object]:
    db = library._shelf.db
    return [db.tuples(f"SELECT rowid, * FROM {table} ORDER BY rowid") for table in TABLES]


def test_an_older_library_gets_its_stems(library: Library, tmp_path: Path) -> None:
    german = add(library, tmp_path, "german")
    english = library.add(pdf_files.write_pdf(tmp_path / "english.pdf", [["A word."]]))
    made = contents(library)
    older = as_before_stems(library)
    assert [document.id for document in older.outdated()] == [german.id, english.id]
    assert older.search("Haus") == []
    told: list[IngestProgress] = []
    assert older.index_words(told.append).words == 2
    assert older.search("Haus")[0].page_index == 1
    assert (older.document(german.id).language, older.document(english.id).language) == ("german", "")
    assert contents(older) == made
    assert [(p.document_id, p.phase) for p in told if p.phase == "done"] == [(german.id, "done"), (english.id, "done")]
    assert any(p.phase == "words" and 0 < p.done < p.total for p in told)
    assert (older.outdated(), older.index_words()) == ([], Renewed())
    older.close()


@pytest.mark.parametrize("steps", range(7))
def test_it_goes_on_where_it_was_stopped(
    library: Library, tmp_path: Path, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stems, "PAGES_A_STEP", 1)
    monkeypatch.setattr(restem, "WINDOWS_A_STEP", 1)
    pages = 3 * [" ".join(TEXTS["german"][:2])]
    german = library.add(pdf_files.write_pdf(tmp_path / "more.pdf", [[page] for page in pages]))
    made = contents(library)
    older = as_before_stems(library)
    older._shelf.db.run("UPDATE documents SET extraction = ?", (records.EXTRACTION,))
    left = [steps]

    def stopped() -> bool:
        left[0] -= 1
        return left[0] < 0

    with pytest.raises(IntakeCancelled):
        older.index_words(cancelled=stopped)
    half = rows(older, "page_stems") + rows(older, "window_stems")
    assert half == min(steps, 3) + max(0, steps - 4)  # a step finds that no page is left
    assert older.document(german.id).language == ""
    assert older.search("Schlüssel")[0].page_index in range(3)  # by the words as they were
    older.index_words()
    assert contents(older) == made
    older.close()


def test_another_stemming_takes_the_place_of_the_last(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    german = add(library, tmp_path, "german")
    made = contents(library)
    library._shelf.db.run("UPDATE page_stems SET text = 'other'")
    assert library.outdated() == []
    monkeypatch.setattr(stems, "STEMMING", stems.STEMMING + 1)
    assert library.index_words() == Renewed(words=1)
    assert contents(library) == made
    assert library.document(german.id).language == "german"
