"""Files that PDFium refuses, repaired as far as something is left of them."""

import re
import zlib
from pathlib import Path

import pytest

from rag import DocumentError, Library
from rag.ingest import FOUND_ANEW
from rag.pdf.repair import LOST, REBUILT, collect
from tests.rag import pdf_files

DATA = pdf_files.pdf_bytes(pdf_files.book(12))
ROOT = re.compile(rb"/Root \d+ 0 R")


@pytest.mark.parametrize("root", [b"", b"/Root 999 0 R", b"/Root 1 0 R"])
def test_a_lost_root_is_found(library: Library, tmp_path: Path, root: bytes) -> None:
    path = tmp_path / "book.pdf"
    path.write_bytes(ROOT.sub(root, DATA))
    document = library.add(path)
    assert (document.pages, document.state) == (12, "words")
    assert library.report(document.id).note == f"{REBUILT} 12 pages found, all that its page tree tells of."
    assert library.search("page11mark")[0].page_index == 11
    assert library.find(path) == document  # its hash is the file's, not the copy's
    assert library.add(path) == document


def test_the_whole_pages_of_a_file_that_is_cut_off(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "book.pdf"
    path.write_bytes(DATA[: len(DATA) * 6 // 10])
    document = library.add(path)
    assert 5 <= document.pages <= 8
    assert document.note == library.report(document.id).note
    assert document.note.startswith(f"{LOST} The end of the file is missing. {document.pages} pages ")
    for page in range(document.pages):
        assert f"page{page}mark" in library.page_text(document.id, page)


def test_pages_in_packed_objects(tmp_path: Path) -> None:
    """As pdfTeX writes them, with the end of the file gone."""
    page = b"<< /Type /Page /Parent 9 0 R /Contents 1 0 R /Resources << /Font << /F 3 0 R >> >> >>"
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    head = b"2 0 3 %d " % (len(page) + 1)
    packed = zlib.compress(head + page + b" " + font)
    text = b"BT /F 12 Tf 50 700 Td (Saved from the flood) Tj ET"
    path = tmp_path / "cut.pdf"
    path.write_bytes(
        b"%%PDF-1.5\n1 0 obj\n<< /Length %d >>\nstream\n%s\nendstream\nendobj\n"
        b"4 0 obj\n<< /Type /ObjStm /N 2 /First %d /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream\nendobj\n"
        b"5 0 obj\n<< /Type /Cat" % (len(text), text, len(head), len(packed), packed)
    )
    assert collect(str(path), str(tmp_path / "out.pdf")) == (1, 0)
    import pypdfium2

    document = pypdfium2.PdfDocument(tmp_path / "out.pdf")
    assert document[0].get_textpage().get_text_range() == "Saved from the flood"
    document.close()


def test_nothing_to_save(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "none.pdf"
    path.write_bytes(b"%PDF-1.5\n1 0 obj\n<< /Length 3 >>\nendobj\n")
    with pytest.raises(DocumentError) as error:
        library.add(path)
    assert error.value.kind == "truncated"
    assert list((library.folder / "files").iterdir()) == []


def test_a_page_tree_that_is_left_tells_how_many_pages_are_missing(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "book.pdf"
    places = [match.start() for match in re.finditer(rb"/Type /Page\b", DATA)]
    rotten = bytearray(ROOT.sub(b"", DATA))
    for place in places[2:5]:
        rotten[place : place + 11] = b"/Type /Pxge"
    path.write_bytes(bytes(rotten).replace(b"/Catalog", b"/Catalxg"))
    document = library.add(path)
    assert document.note.endswith("9 pages of at least 12 were found, 3 are missing.")


def test_a_wrong_place_of_the_table_is_told(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "book.pdf"
    path.write_bytes(re.sub(rb"startxref\s+\d+", b"startxref\n7", DATA))
    assert library.add(path).note == f"{FOUND_ANEW} 12 pages found."
    (tmp_path / "junk.pdf").write_bytes(b"some lines of a mail\n\n" + DATA)
    assert library.add(tmp_path / "junk.pdf").note == ""
