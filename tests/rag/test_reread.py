"""Documents with lines from the right that an older version read are read anew; what points into them goes on to."""

from __future__ import annotations

import re
import threading
from functools import partial
from pathlib import Path

import pypdfium2
import pytest

from rag import DocumentId, IntakeCancelled, Library, reread
from rag.cite import cite
from rag.index import records, rereads
from rag.pdf.client import ExtractedPage, Extraction, Limits
from rag.pdf.text import CharMap
from rag.types import CharRange, IngestProgress, Renewed
from tests.rag.conftest import WordBag, sample_pdf
from tests.rag.pdf_files import at, drawn_pdf
from tests.rag.test_extraction import misbehaving

NUMBER = re.compile(r"\d+")
LINES = [
    "ראו את התמונה של המגדל בעמוד 42.",
    "הנמל סגור בלילה, אבל המגדל לא סגור אף פעם (כך כתב השומר).",
    "המחיר של מפתח אבוד הוא 25 שקל, כי אין מפתח אחר.",
]


def hebrew(folder: Path) -> Path:
    drawn = [NUMBER.sub(lambda match: match[0][::-1], line[::-1]) for line in LINES]
    pages = ["\n".join(at(60, 700 - 20 * n, line, "R") for n in range(3)) for line in drawn]
    path = folder / "hebrew.pdf"
    path.write_bytes(drawn_pdf([*pages, at(60, 700, "A page in English about anchors and ropes.")]))
    return path


@pytest.fixture
def older(tmp_path: Path) -> tuple[Library, DocumentId]:
    """A library in which Hebrew stands as PDFium gives it."""
    library = Library(tmp_path / "library", WordBag())
    document = library.add(hebrew(tmp_path))
    with library._shelf.db.transaction():
        reread._replace(library._shelf, document, [as_it_was(document.path, n) for n in range(len(LINES))])
        library._shelf.db.run("UPDATE documents SET extraction = 1")
    library.embed_missing()
    return library, document.id


def as_it_was(path: Path, page: int) -> ExtractedPage:
    text = raw(path, CharRange(page, 0, -1)).replace("\r\n", " \n")
    return ExtractedPage(page, text, CharMap((0,), (0,)), "text", "")


def raw(path: Path, where: CharRange) -> str:
    with pypdfium2.PdfDocument(path) as pdf:
        return str(pdf[where.page_index].get_textpage().get_text_range(where.char_start, where.char_count))


def texts(library: Library, document: DocumentId) -> list[str]:
    return [library.page_text(document, page) for page in range(len(LINES) + 1)]


def test_the_older_text_is_put_in_order(older: tuple[Library, DocumentId], tmp_path: Path) -> None:
    library, document = older
    fresh = Library(tmp_path / "fresh")
    expected = texts(fresh, fresh.add(hebrew(tmp_path)).id)
    assert texts(library, document) != expected, "there is something to do"
    numbers = [passage.id for passage in library.passages(document)]
    told: list[IngestProgress] = []
    assert [one.id for one in library.outdated()] == [document]
    assert library.report(document).note == reread.READ_BEFORE
    assert library.index_words(told.append) == Renewed(1, (document,))
    assert texts(library, document) == expected
    assert [passage.id for passage in library.passages(document)] == numbers
    assert (library.outdated(), library.index_words(), library.report(document).note) == ([], Renewed(), "")
    assert [p.done for p in told if p.phase == "text"] == [1, 2, 3, 4]
    assert [hit.page_index for hit in library.search("מפתח", vectors="never")] == [2]
    assert library.document(document).state == "words"
    library.embed_missing()
    assert library.document(document).state == "ready"
    library.close()
    fresh.close()


def test_citations_of_the_old_text_mark_what_they_marked(older: tuple[Library, DocumentId]) -> None:
    library, document = older
    path = library.document(document).path
    (old,) = (passage for passage in library.passages(document) if 0 in passage.pages)
    line = as_it_was(path, 0).text.split("\n")[0].strip()
    assert line != LINES[0], "the older version had another order"
    (citation,) = cite(f"{line} [1]", [old], library)
    marked = [raw(path, part) for part in citation.ranges]
    assert citation.verified == "exact"
    assert "המגדל" in "".join(marked)
    library.index_words()
    assert [raw(library.document(document).path, part) for part in citation.ranges] == marked
    (again,) = cite(f"{LINES[0]} [1]", [library.passage(old.id)], library)
    assert (again.verified, again.quote) == ("exact", LINES[0].rstrip("."))
    library.close()


@pytest.mark.parametrize("steps", range(5))
def test_what_is_stopped_leaves_it_as_it_was(older: tuple[Library, DocumentId], steps: int) -> None:
    library, document = older
    before, left = texts(library, document), [steps]

    def stopped() -> bool:
        left[0] -= 1
        return left[0] < 0

    try:
        library.index_words(cancelled=stopped)
    except IntakeCancelled:
        assert texts(library, document) == before
        assert library.document(document).state == "ready"
        assert [one.id for one in library.outdated()] == [document]
        library.index_words()
    assert texts(library, document) != before
    library.close()


def test_a_document_that_comes_out_the_same_keeps_its_vectors(tmp_path: Path) -> None:
    library = Library(tmp_path / "library", WordBag())
    document = library.add(hebrew(tmp_path))
    library._shelf.db.run("UPDATE documents SET extraction = 1")
    assert library.index_words() == Renewed()
    assert library.document(document.id).state == "ready"
    assert library._shelf.db.tuples("SELECT extraction FROM documents") == [(records.EXTRACTION,)]
    library.close()


def test_a_broken_copy_keeps_no_other_document_from_it(older: tuple[Library, DocumentId], tmp_path: Path) -> None:
    library, broken = older
    (tmp_path / "second").mkdir()
    second = library.add(drawn(tmp_path / "second"))
    library._shelf.db.run("UPDATE documents SET extraction = 1, stemming = 1")
    before, path = texts(library, broken), library.document(broken).path
    path.chmod(0o600)
    path.write_bytes(b"no PDF any more")
    renewed = library.index_words()
    (error,) = renewed.failed
    assert (error.kind, renewed.words, renewed.read_anew) == ("format", 2, ())
    assert texts(library, broken) == before
    assert [one.id for one in library.outdated()] == [broken], "it is tried again"
    assert second.id != broken
    library.close()


def drawn(folder: Path) -> Path:
    path = folder / "english.pdf"
    path.write_bytes(drawn_pdf([at(60, 700, "Another document about anchors and ropes, which nobody has lost.")]))
    return path


def test_what_a_stopped_call_has_looked_through_is_not_read_again(
    older: tuple[Library, DocumentId], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reread, "PAGES_A_STEP", 1)
    library, document = older
    first: list[IngestProgress] = []
    with pytest.raises(IntakeCancelled):
        library.index_words(first.append, cancelled=lambda: len(first) == 2)
    then: list[IngestProgress] = []
    assert library.index_words(then.append) == Renewed(1, (document,))
    assert [[p.done for p in told if p.phase == "text"] for told in (first, then)] == [[1, 2], [3, 4]]
    assert library._shelf.db.tuples("SELECT count(*) FROM reread_pages") == [(0,)]
    library.close()


def test_another_version_begins_anew(older: tuple[Library, DocumentId], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reread, "PAGES_A_STEP", 1)
    library, document = older
    told: list[IngestProgress] = []
    with pytest.raises(IntakeCancelled):
        library.index_words(told.append, cancelled=lambda: len(told) == 2)
    library._shelf.db.run("UPDATE rereads SET extraction = extraction - 1")
    again: list[IngestProgress] = []
    assert library.index_words(again.append) == Renewed(1, (document,))
    assert [p.done for p in again if p.phase == "text"] == [1, 2, 3, 4]
    library.close()


def test_metadata_and_classes_that_an_older_version_did_not_tell_are_told(tmp_path: Path) -> None:
    library = Library(tmp_path / "library", WordBag())
    document = library.add(sample_pdf())
    before = [page.kind for page in library.report(document.id).pages]
    assert document.metadata["title"]
    library._shelf.db.run("UPDATE documents SET extraction = 2, metadata = '{}'")
    library._shelf.db.run("UPDATE pages SET kind = 'garbled', reason = 'Odd.' WHERE page_index = 1")
    assert library.index_words() == Renewed(), "no text came out otherwise"
    after = library.document(document.id)
    assert (after.metadata, after.state, after.unreadable_pages) == (document.metadata, "ready", ())
    assert [page.kind for page in library.report(document.id).pages] == before
    library.close()


def test_a_document_is_read_again_when_the_reader_wishes(older: tuple[Library, DocumentId]) -> None:
    library, document = older
    library.index_words()
    library.embed_missing()
    assert library.outdated() == []
    with library._shelf.db.transaction():
        reread._replace(library._shelf, library.document(document), [as_it_was(library.document(document).path, 0)])
    library.read_again([document])
    assert [one.id for one in library.outdated()] == [document]
    assert library.index_words() == Renewed(1, (document,))
    assert library.page_text(document, 0).strip().endswith(LINES[0])
    library.close()


def test_who_wishes_a_document_read_again_waits_for_who_is_reading_it(
    older: tuple[Library, DocumentId], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reread, "PAGES_A_STEP", 1)
    library, document = older
    other = Library(library.folder)
    wish = threading.Thread(target=other.read_again, args=([document],))
    waited: list[bool] = []

    def wished(progress: IngestProgress) -> None:
        if progress.phase == "text" and progress.done == 1:
            wish.start()
            wish.join(0.3)
            waited.append(wish.is_alive())

    try:
        assert library.index_words(wished) == Renewed(1, (document,))
    finally:
        wish.join(30)
    assert waited == [True]
    assert [one.id for one in library.outdated()] == [document], "the wish is met by the next call"
    assert other.index_words() == Renewed()
    assert library.outdated() == []
    other.close()
    library.close()


@pytest.mark.parametrize("steps", [2, len(LINES) + 1])
def test_a_reread_that_another_process_ended_is_begun_anew(
    older: tuple[Library, DocumentId], monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    monkeypatch.setattr(reread, "PAGES_A_STEP", 1)
    library, document = older
    before, other = texts(library, document), Library(library.folder)

    def ended(progress: IngestProgress) -> None:
        if progress.phase == "text" and progress.done == steps:
            with other._shelf.db.transaction():
                rereads.forget(other._shelf.db, document)

    assert library.index_words(ended) == Renewed()
    assert (texts(library, document), [one.id for one in library.outdated()]) == (before, [document])
    assert library.index_words() == Renewed(1, (document,))
    other.close()
    library.close()


def test_pages_for_which_no_time_is_left_are_read_the_next_time(
    older: tuple[Library, DocumentId], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older[0].close()
    monkeypatch.setattr(reread, "Extraction", partial(Extraction, command=misbehaving(tmp_path, crash=(1,))))
    library, document = Library(older[0].folder, limits=Limits(failing_seconds=1e-6)), older[1]
    before = texts(library, document)
    (error,) = library.index_words().failed
    assert error.kind == "slow"
    assert "2 of 4 pages were looked through" in error.why
    assert (texts(library, document), [one.id for one in library.outdated()]) == (before, [document])
    renewed = library.index_words()
    assert (renewed.words, renewed.read_anew, len(renewed.failed)) == (1, (document,), 1)
    after = texts(library, document)
    assert [old == new for old, new in zip(before, after, strict=True)] == [False, True, False, True]
    assert library.outdated() == []
    library.close()


def test_a_single_page_that_cannot_be_read_anew_is_told_and_keeps_its_text(
    older: tuple[Library, DocumentId], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, document = older
    before = texts(library, document)
    hanging = partial(Extraction, command=misbehaving(tmp_path, hang=(1,)))
    with monkeypatch.context() as patched:
        patched.setattr(reread, "Extraction", lambda *a, **k: hanging(*a, **{**k, "limits": Limits(page_seconds=2.0)}))
        (error,) = library.index_words().failed
    assert (error.kind, error.what) == ("slow", "1 page of hebrew.pdf could not be read anew.")
    assert "(page 2)" in error.why
    assert [old == new for old, new in zip(before, texts(library, document), strict=True)] == [False, True, False, True]
    told = library.report(document).pages[1]
    assert told.kind == "text"
    assert told.reason.endswith(reread.NOT_ANEW)
    library.read_again([document])
    assert library.index_words() == Renewed(1, (document,))
    assert library.report(document).pages[1].reason == ""
    library.close()
