import random
from pathlib import Path

import pytest

from assets import sample_pdf
from rag import DocumentError, IntakeCancelled, Library, ingest
from rag.pdf.client import Limits
from tests.rag import pdf_files


def refuse(library: Library, path: Path, password: str | None = None) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        library.add(path, password=password)
    assert library.documents(include_trashed=True) == []
    assert list((library.folder / "files").iterdir()) == []
    assert path.name in caught.value.what
    assert caught.value.next
    return caught.value


@pytest.mark.parametrize(
    ("data", "looks"),
    [
        (b"<!doctype html><title>404</title><h1>Not found</h1>", "a web page"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 40, "a PNG picture"),
        (b"PK\x03\x04" + b"\0" * 40, "a ZIP archive"),
        (b"GGUF" + b"\0" * 40, "a GGUF model"),
        (b"Dear Sir,\nthis is a letter.\n", "a plain text file"),
        (bytes(range(256)) * 2, "data of an unknown kind"),
    ],
)
def test_what_is_no_pdf_is_named(library: Library, tmp_path: Path, data: bytes, looks: str) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(data)
    error = refuse(library, path)
    assert error.kind == "not_pdf"
    assert looks in error.why


def test_empty_file(library: Library, tmp_path: Path) -> None:
    (tmp_path / "a.pdf").touch()
    assert refuse(library, tmp_path / "a.pdf").kind == "empty"


def test_missing_file(library: Library, tmp_path: Path) -> None:
    assert refuse(library, tmp_path / "nowhere.pdf").kind == "missing"


def test_truncated_file(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "half.pdf"
    path.write_bytes(sample_pdf().read_bytes()[:700])
    assert refuse(library, path).kind == "truncated"


def test_damaged_file(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "damaged.pdf"
    path.write_bytes(b"%PDF-1.5\n" + b"garbage " * 100 + b"%%EOF\n")
    assert refuse(library, path).kind == "unreadable"


def test_no_pages(library: Library, tmp_path: Path) -> None:
    path = pdf_files.write_pdf(tmp_path / "none.pdf", [])
    assert refuse(library, path).kind == "zero_pages"


def test_a_file_that_takes_too_long_to_open_is_not_called_damaged(tmp_path: Path) -> None:
    library = Library(tmp_path / "library", limits=Limits(open_seconds=0.001))
    error = refuse(library, pdf_files.write_pdf(tmp_path / "a.pdf", pdf_files.book(1)))
    assert (error.kind, "too long" in error.why) == ("slow", True)
    library.close()


def test_password(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "locked.pdf"
    path.write_bytes(pdf_files.encrypted(pdf_files.pdf_bytes(pdf_files.book(3)), "secret"))
    assert "needs a password" in refuse(library, path).what
    assert "wrong" in refuse(library, path, "guess").what
    document = library.add(path, password="secret")
    assert "page2mark" in library.page_text(document.id, 2)
    assert library.add(path) == document


def test_the_stored_copy_of_a_protected_file_opens_without_password(library: Library, tmp_path: Path) -> None:
    import pypdfium2

    path = tmp_path / "locked.pdf"
    path.write_bytes(pdf_files.encrypted(pdf_files.pdf_bytes(pdf_files.book(2)), "secret"))
    stored = pypdfium2.PdfDocument(library.add(path, password="secret").path)
    assert len(stored) == 2
    stored.close()


def test_a_copy_that_is_gone_is_put_back(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "locked.pdf"
    path.write_bytes(pdf_files.encrypted(pdf_files.pdf_bytes(pdf_files.book(3)), "secret"))
    document = library.add(path, password="secret")
    document.path.unlink()
    with pytest.raises(DocumentError, match="needs a password"):
        library.add(path)
    assert library.documents() == [document]
    assert library.add(path, password="secret") == document
    assert document.path.is_file()
    assert "page2mark" in library.page_text(document.id, 2)


def test_an_unfinished_protected_file_goes_on_from_the_stored_copy(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "locked.pdf"
    path.write_bytes(pdf_files.encrypted(pdf_files.pdf_bytes(pdf_files.book(60)), "secret"))
    seen: list[int] = []
    with pytest.raises(IntakeCancelled):
        library.add(path, lambda p: seen.append(p.done), lambda: 40 in seen, password="secret")
    (document,) = library.documents()
    assert document.state == "importing"
    done = library.add(document.path)
    assert (done.id, done.name, done.state) == (document.id, "locked.pdf", "words")
    assert len(library.documents()) == 1


def test_owner_lock_opens(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "owner.pdf"
    path.write_bytes(pdf_files.encrypted(pdf_files.pdf_bytes(pdf_files.book(2)), ""))
    assert library.add(path).pages == 2


def test_a_file_that_changes_while_it_is_copied(library: Library, tmp_path: Path) -> None:
    path = pdf_files.write_pdf(tmp_path / "a.pdf", pdf_files.book(2))

    def meddle(progress: object) -> None:
        path.write_bytes(path.read_bytes().replace(b"page0mark", b"page9mark"))

    import rag.ingest as ingest

    job = ingest.Job(path, "0" * 64, None, meddle, lambda: False)
    with pytest.raises(DocumentError, match="changed"):
        ingest.take_in(library._shelf, job)
    assert list((library.folder / "files").iterdir()) == []


def test_a_document_of_scans_is_kept_and_says_so(library: Library, tmp_path: Path) -> None:
    path = pdf_files.write_pdf(tmp_path / "scan.pdf", [[pdf_files.PICTURE]] * 3)
    document = library.add(path)
    assert document.unreadable_pages == (0, 1, 2)
    assert [page.kind for page in library.report(document.id).pages] == ["scan"] * 3
    assert library.search("harbour") == []


@pytest.mark.parametrize("seed", range(8))
def test_rotten_bytes_never_hang_crash_or_leave_anything_half_done(library: Library, tmp_path: Path, seed: int) -> None:
    data = bytearray(sample_pdf().read_bytes())
    generator = random.Random(seed)
    for _ in range(40):
        data[generator.randrange(200, len(data))] = generator.randrange(256)
    path = tmp_path / "rotten.pdf"
    path.write_bytes(data)
    try:
        document = library.add(path)
    except DocumentError:
        assert library.documents() == []
        assert list((library.folder / "files").iterdir()) == []
    else:
        assert document.state == "words"
        assert len(library.report(document.id).pages) == document.pages


def test_nothing_is_left_of_a_file_that_opens_and_then_cannot_be_read(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its table of contents is read by one process, its pages by another, which may fail."""
    path = tmp_path / "book.pdf"
    path.write_bytes(sample_pdf().read_bytes())

    def fail(*_: object) -> None:
        raise DocumentError("book.pdf cannot be opened.", "Opening it took too long.", "Try again.", "slow")

    monkeypatch.setattr(ingest.Extraction, "pages", fail)
    assert refuse(library, path).kind == "slow"
    monkeypatch.undo()
    assert library.add(path).pages == 10
