"""Words laid under scans, and scans that are read by the recogniser (when the extra is installed)."""

import math
from pathlib import Path

import pypdf
import pypdfium2
import pytest

from rag import DocumentError, Library
from rag.pdf.client import Extraction
from rag.pdf.text_layer import add_layer
from rag.recognise import available
from tests.rag import pdf_files

needs_recogniser = pytest.mark.skipif(not available(), reason="the extra 'ocr' is not installed")
LINES = [
    "The harbour book",
    "A lost lantern costs 12 euros and is replaced within 30 days.",
    "Members of the rowing club borrow one for nothing.",
    "The keeper writes every loan into the green ledger.",
]


def scan(path: Path, pages: int = 1, turned: int = 0) -> Path:
    """Pages of which only a picture is left."""
    text = pdf_files.write_pdf(path.with_suffix(".text.pdf"), [LINES] * pages)
    document = pypdfium2.PdfDocument(text)
    pictures = [page.render(scale=2).to_pil() for page in document]
    pictures[0].save(path, "PDF", resolution=144, save_all=True, append_images=pictures[1:])
    document.close()
    if turned:
        writer = pypdf.PdfWriter(clone_from=path)
        for page in writer.pages:
            page.rotate(turned)
        writer.write(path)
    return path


def test_words_are_extracted_where_they_were_put(tmp_path: Path) -> None:
    path = scan(tmp_path / "scan.pdf")
    slope = math.radians(3)
    across = (80 * math.cos(slope), 80 * math.sin(slope))
    words = [
        ("lantern", 100.0, 700.0, 60.0, 0.0, 0.0, 12.0),
        ("図書館\n", 170.0, 700.0, 45.0, 0.0, 0.0, 12.0),
        ("slanting\n", 100.0, 600.0, *across, -12 * math.sin(slope), 12 * math.cos(slope)),
    ]
    add_layer(str(path), str(tmp_path / "out.pdf"), {0: words})
    with Extraction(tmp_path / "out.pdf") as extraction:
        (page,) = extraction.pages([0])
    assert page.text.split() == ["lantern", "図書館", "slanting"]
    document = pypdfium2.PdfDocument(tmp_path / "out.pdf")
    textpage = document[0].get_textpage()
    boxes = [textpage.get_charbox(index) for index in range(11)]
    assert boxes[0] == pytest.approx((100, 700, 100 + 60 / 7, 712), abs=0.3)
    assert boxes[6] == pytest.approx((160 - 60 / 7, 700, 160, 712), abs=0.3)
    assert boxes[10] == pytest.approx((200, 700, 215, 712), abs=0.3)  # no font at hand need have its letter
    document.close()


def test_the_page_below_stays_as_it_was(tmp_path: Path) -> None:
    path = scan(tmp_path / "scan.pdf", turned=90)
    add_layer(str(path), str(tmp_path / "out.pdf"), {0: [("word\n", 50.0, 50.0, 40.0, 0.0, 0.0, 10.0)]})
    before, after = pypdfium2.PdfDocument(path), pypdfium2.PdfDocument(tmp_path / "out.pdf")
    assert after[0].get_rotation() == 90
    assert before[0].render().to_numpy().tobytes() == after[0].render().to_numpy().tobytes()
    before.close()
    after.close()


@pytest.mark.skipif(available(), reason="the extra 'ocr' is installed")
def test_what_to_install(library: Library, tmp_path: Path) -> None:
    document = library.add(scan(tmp_path / "scan.pdf"))
    with pytest.raises(DocumentError) as error:
        library.recognise(document.id)
    assert "pagekeep[ocr]" in error.value.next
    assert library.document(document.id) == document


def whole(textpage: pypdfium2.PdfTextPage, first: int, count: int) -> tuple[float, ...]:
    """The box around some characters."""
    lefts, bottoms, rights, tops = zip(*[textpage.get_charbox(n) for n in range(first, first + count)], strict=True)
    return min(lefts), min(bottoms), max(rights), max(tops)


@needs_recogniser
@pytest.mark.parametrize("turned", [0, 90])
def test_a_scan_becomes_text_that_can_be_cited(library: Library, tmp_path: Path, turned: int) -> None:
    document = library.add(scan(tmp_path / "scan.pdf", 2, turned))
    assert document.unreadable_pages == (0, 1)
    assert library.search("lantern") == []
    phases: list[str] = []
    read = library.recognise(document.id, [1], lambda p: phases.append(p.phase))
    assert phases[0] == "recognise"
    assert (read.unreadable_pages, read.state, read.sha256) == ((0,), "words", document.sha256)
    best = library.search("What does a lost lantern cost?")[0]
    assert best.page_index == 1
    assert "lantern costs 12 euros" in " ".join(best.text.split())
    assert not document.path.exists()
    textpage = pypdfium2.PdfDocument(read.path)[1].get_textpage()
    passage = best.passage
    start = passage.text.index("lantern")
    (place,) = library.ranges(passage, start, len("lantern"))
    assert textpage.get_text_range(place.char_start, place.char_count) == "lantern"
    printed = pypdfium2.PdfDocument(tmp_path / "scan.text.pdf")[1].get_textpage()
    letters = whole(printed, printed.get_text_range().index("lantern"), len("lantern"))
    mark = whole(textpage, place.char_start, place.char_count)
    assert mark[0] == pytest.approx(letters[0], abs=3)
    assert mark[2] == pytest.approx(letters[2], abs=3)
    assert mark[1] < letters[1] < letters[3] < mark[3]
    assert mark[3] - mark[1] < 20
    page = library.report(document.id).pages[1]
    assert (page.kind, "recognised" in page.reason) == ("text", True)
    # The other page later, and once more for nothing.
    assert library.recognise(document.id).unreadable_pages == ()
    assert library.recognise(document.id) == library.document(document.id)
    assert len(list(library.folder.glob("files/*"))) == 1
    library.purge(document.id)
    assert list(library.folder.glob("files/*")) == []
