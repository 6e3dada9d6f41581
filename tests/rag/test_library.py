import os
import shutil
import stat
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pypdfium2
import pytest

from assets import sample_pdf
from rag import Document, DocumentError, IngestProgress, IntakeCancelled, Library
from rag.pdf.text import clean
from rag.protocols import Vectors
from tests.rag import pdf_files
from tests.rag.conftest import WordBag


def test_the_sample_is_complete(library: Library, sample: Document) -> None:
    assert (sample.name, sample.pages, sample.state, sample.embedded) == ("pagekeep-sample.pdf", 10, "words", False)
    assert library.documents() == [sample]
    assert library.page_label(sample.id, 1) == "ii"
    assert library.page_label(sample.id, 5) == "3"
    assert "kept in the trash for 30 days" in library.page_text(sample.id, 5)
    assert ("3.1 The trash", 5) in [(e.title, e.page_index) for e in library.outline(sample.id)]
    assert {page.kind for page in library.report(sample.id).pages} == {"text"}


def test_passage_ranges_are_the_passage_text_in_pdfium(library: Library, tmp_path: Path) -> None:
    lines = ["A word is bro-", "ken here, and the next page goes on with a sentence that has not"]
    rest = ["ended on the page before it. Then another sentence follows here."]
    plain = pdf_files.write_pdf(tmp_path / "b.pdf", [lines, rest, *pdf_files.book(3)])
    crossing = 0
    for document in (library.add(sample_pdf()), library.add(plain)):
        pdf = pypdfium2.PdfDocument(document.path)
        for passage in library.passages(document.id):
            crossing += len(passage.ranges) > 1
            assert "\n".join(_stored(pdf, *vars(r).values()) for r in passage.ranges) == passage.text
        pdf.close()
    assert crossing == 1


def _stored(pdf: pypdfium2.PdfDocument, page_index: int, start: int, count: int) -> str:
    page = pdf[page_index]
    textpage = page.get_textpage()
    text = clean(textpage.get_text_range(start, count))[0]
    textpage.close()
    page.close()
    return text


def test_adding_again_gives_the_same_document_at_once(library: Library, sample: Document, tmp_path: Path) -> None:
    other_name = tmp_path / "copy.pdf"
    shutil.copy(sample_pdf(), other_name)
    phases: list[str] = []
    again = library.add(other_name, lambda progress: phases.append(progress.phase))
    assert again == replace(sample, other_names=("copy.pdf",))
    assert library.find("copy.pdf") == library.find(sample.name) == again
    with pytest.raises(DocumentError, match=r"There is “copy\.pdf”"):
        library.find("copy")
    assert phases == ["done"]
    assert len(library.documents()) == 1


def test_progress_counts_every_page(library: Library, tmp_path: Path) -> None:
    path = pdf_files.write_pdf(tmp_path / "a.pdf", pdf_files.book(40))
    seen: list[IngestProgress] = []
    document = library.add(path, seen.append)
    pages = [progress.done for progress in seen if progress.phase == "text"]
    assert pages == list(range(41))
    assert {progress.total for progress in seen if progress.phase == "text"} == {40}
    assert [*dict.fromkeys(progress.phase for progress in seen)] == ["copy", "text", "words", "done"]
    assert seen[-1].document_id == document.id


def test_cancel_keeps_what_was_read_and_adding_again_goes_on(library: Library, tmp_path: Path) -> None:
    path = pdf_files.write_pdf(tmp_path / "a.pdf", pdf_files.book(100))
    seen: list[int] = []

    def watch(progress: IngestProgress) -> None:
        if progress.phase == "text":
            seen.append(progress.done)

    with pytest.raises(IntakeCancelled):
        library.add(path, watch, lambda: bool(seen) and seen[-1] >= 70)
    (document,) = library.documents()
    assert document.state == "importing"
    assert "page3mark" in library.page_text(document.id, 3)
    seen.clear()
    done = library.add(path, watch)
    assert seen[0] >= 64
    assert done.id == document.id
    assert len(library.report(done.id).pages) == 100


def test_the_text_can_be_searched_while_it_is_read(library: Library, tmp_path: Path) -> None:
    path = pdf_files.write_pdf(tmp_path / "a.pdf", pdf_files.book(80))
    found: list[int] = []

    def watch(progress: IngestProgress) -> None:
        if progress.phase == "text" and progress.done == 60:
            rows = library._shelf.db.tuples("SELECT rowid FROM page_words WHERE page_words MATCH 'page5mark'")
            found.append(len(rows))

    library.add(path, watch)
    assert found == [1]


def test_files_and_folders_are_private(library: Library, sample: Document) -> None:
    if os.name != "posix":
        pytest.skip("modes are POSIX")
    for path in [library.folder, *library.folder.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_the_original_may_go_away(library: Library, tmp_path: Path) -> None:
    path = pdf_files.write_pdf(tmp_path / "a.pdf", pdf_files.book(2))
    document = library.add(path)
    data = path.read_bytes()
    path.unlink()
    assert document.path.read_bytes() == data


def test_trash_restore_and_purge(library: Library, sample: Document) -> None:
    library.trash(sample.id)
    assert library.documents() == []
    assert library.documents(include_trashed=True)[0].state == "trashed"
    assert library.search("deposit") == []
    library.restore(sample.id)
    assert library.search("deposit")[0].page_label == "1"
    library.purge(sample.id)
    assert library.documents(include_trashed=True) == []
    assert [path.name for path in library.folder.rglob(f"{sample.sha256}*")] == []
    with pytest.raises(DocumentError):
        library.document(sample.id)


def test_a_trashed_document_comes_back_when_it_is_added(library: Library, sample: Document) -> None:
    library.trash(sample.id)
    assert library.add(sample_pdf()) == sample


def test_purging_leaves_the_full_text_indexes_sound(library: Library, sample: Document, tmp_path: Path) -> None:
    other = library.add(pdf_files.write_pdf(tmp_path / "a.pdf", pdf_files.book(3)))
    library.purge(sample.id)
    db = library._shelf.db
    for table in ("page_words", "page_parts", "window_words"):
        db.run(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
        rows = db.tuples(f"SELECT count(*) FROM {table} WHERE {table} MATCH 'deposit'")
        assert rows == [(0,)]
    assert library.search("page1mark")[0].document_id == other.id


def test_an_id_is_never_used_again(library: Library, sample: Document) -> None:
    library.purge(sample.id)
    assert library.add(sample_pdf()).id != sample.id


@pytest.mark.parametrize("key", ["pagekeep-sample.pdf", "/elsewhere/pagekeep-sample.pdf", str(sample_pdf())])
def test_find(library: Library, sample: Document, key: str) -> None:
    assert library.find(key) == sample
    assert library.find(sample.sha256[:12]) == sample
    with pytest.raises(DocumentError):
        library.find("other.pdf")


def test_vectors_come_later_when_there_was_no_embedder(library: Library, sample: Document) -> None:
    bag = WordBag()
    later = Library(library.folder, bag)
    assert later.document(sample.id).state == "words"
    later.embed_missing()
    assert later.document(sample.id).state == "ready"
    windows = later._shelf.db.tuples("SELECT count(*) FROM windows")[0][0]
    assert later._shelf.vectors.done(sample.id, bag.name) == windows > 20
    made = bag.texts
    later.embed_missing()
    assert bag.texts == made
    later.close()
    assert library.document(sample.id).embedded


def test_vectors_of_the_named_documents_are_made_first(library: Library, sample: Document, tmp_path: Path) -> None:
    small = library.add(pdf_files.write_pdf(tmp_path / "small.pdf", pdf_files.book(1)))
    later = Library(library.folder, WordBag())
    done: list[int | None] = []
    later.embed_missing(lambda p: done.append(p.document_id) if p.phase == "done" else None, first=[small.id])
    assert done == [small.id, sample.id]
    later.close()


def test_a_short_document_that_comes_in_meanwhile_has_its_vectors_before_a_long_one(
    library: Library, tmp_path: Path
) -> None:
    long = library.add(pdf_files.write_pdf(tmp_path / "long.pdf", pdf_files.book(30)))
    later = Library(library.folder, WordBag())
    seen: list[tuple[int | None, str, int]] = []

    def watch(progress: IngestProgress) -> None:
        seen.append((progress.document_id, progress.phase, progress.done))
        if len(seen) == 1:
            library.add(pdf_files.write_pdf(tmp_path / "short.pdf", pdf_files.book(1)))

    later.embed_missing(watch)
    short = next(one for one in later.documents() if one.id != long.id)
    assert [id for id, phase, _ in seen if phase == "done"] == [short.id, long.id]
    order = [id for id, phase, _ in seen if phase == "vectors"]
    at = order.index(short.id)
    assert set(order[:at]) == {long.id} == set(order[at + order.count(short.id) :])
    counts = [done for id, phase, done in seen if id == long.id and phase == "vectors"]
    assert counts == sorted(set(counts)), "nothing is made twice"
    assert all(one.embedded for one in later.documents())
    later.close()


def test_connections_of_ended_threads_are_closed(library: Library, sample: Document) -> None:
    for _ in range(5):
        thread = threading.Thread(target=library.documents)
        thread.start()
        thread.join()
    assert len(library._shelf.db._open) <= 2


def test_many_threads_at_once(library: Library, sample: Document, tmp_path: Path) -> None:
    paths = [pdf_files.write_pdf(tmp_path / f"{n}.pdf", pdf_files.book(12, seed=n)) for n in range(3)]
    results: list[object] = []

    def add(path: Path) -> None:
        results.append(library.add(path).pages)

    def ask() -> None:
        results.extend(len(library.search("lost key")) >= 1 for _ in range(10))

    threads = [threading.Thread(target=add, args=(path,)) for path in [*paths, paths[0]]]
    threads += [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, results)) == ["12"] * 4 + ["True"] * 20
    assert len(library.documents()) == 4


def test_adding_what_another_is_embedding_does_not_wait(library: Library, tmp_path: Path) -> None:
    class Slow(WordBag):
        def embed(self, texts: Sequence[str]) -> Vectors:
            begun.set()
            assert go_on.wait(60)
            return super().embed(texts)

    begun, go_on = threading.Event(), threading.Event()
    slow = Library(library.folder, Slow())
    thread = threading.Thread(target=slow.add, args=(sample_pdf(),))
    thread.start()
    assert begun.wait(60)
    other = Library(library.folder, WordBag())
    assert other.add(sample_pdf()).state == "words"
    go_on.set()
    thread.join()
    assert other.add(sample_pdf()).state == "ready"
    other.close()
    slow.close()
