import os
import sys
import threading
import time
from pathlib import Path

import pypdfium2
import pytest

from assets import sample_pdf
from rag.errors import IntakeCancelled
from rag.pdf.client import Extraction, Limits
from rag.pdf.process import Child
from tests.rag import pdf_files

MISBEHAVE = """
import os, time
import rag.pdf.worker as worker
read = worker.page
def page(document, index):
    if index in {crash}:
        os._exit(9)
    if index in {hang}:
        time.sleep(60)
    return read(document, index)
worker.page = page
worker.main()
"""


def misbehaving(tmp_path: Path, crash: tuple[int, ...] = (), hang: tuple[int, ...] = ()) -> tuple[str, str]:
    script = tmp_path / "worker.py"
    script.write_text(MISBEHAVE.format(crash=crash, hang=hang))
    return sys.executable, str(script)


def test_text_labels_and_outline_of_the_sample() -> None:
    with Extraction(sample_pdf()) as extraction:
        contents = extraction.contents()
        (page,) = extraction.pages([4])
    assert contents.pages == 10
    assert contents.labels[:5] == ("i", "ii", "iii", "1", "2")
    assert [(e.title, e.page_index, e.level) for e in contents.outline if "trash" in e.title] == [
        ("3.1 The trash", 5, 1)
    ]
    assert page.kind == "text"
    assert "which has a\nsecond computer with" in page.text  # broken as "comp-" / "uter" in the PDF


def test_positions_are_pdfium_character_indices() -> None:
    with Extraction(sample_pdf()) as extraction:
        pages = list(extraction.pages(range(10)))
    document = pypdfium2.PdfDocument(sample_pdf())
    for page in pages:
        loaded = document[page.page_index]
        textpage = loaded.get_textpage()
        for start in range(0, len(page.text) - 11, 37):
            first, count = page.positions.span(start, 11)
            raw = textpage.get_text_range(first, count).replace("\ufffe", "").replace("\r\n", "\n")
            assert raw.strip("\r") == page.text[start : start + 11]
        textpage.close()
        loaded.close()
    document.close()


def test_a_page_that_crashes_the_reader_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    path = pdf_files.write_pdf(tmp_path / "a.pdf", pdf_files.book(7))
    with Extraction(path, command=misbehaving(tmp_path, crash=(2, 3))) as extraction:
        pages = list(extraction.pages(range(7)))
    assert [page.page_index for page in pages] == list(range(7))
    assert [page.kind for page in pages] == ["text", "text", "garbled", "garbled", "text", "text", "text"]
    assert "crash" in pages[2].reason


def test_a_page_that_hangs_is_given_up(tmp_path: Path) -> None:
    path = pdf_files.write_pdf(tmp_path / "a.pdf", pdf_files.book(4))
    limits = Limits(page_seconds=3.0)
    with Extraction(path, limits=limits, command=misbehaving(tmp_path, hang=(1,))) as extraction:
        pages = list(extraction.pages(range(4)))
    assert [page.kind for page in pages] == ["text", "garbled", "text", "text"]
    assert "too long" in pages[1].reason


def test_a_file_of_hanging_pages_is_given_up(tmp_path: Path) -> None:
    path = pdf_files.write_pdf(tmp_path / "a.pdf", pdf_files.book(6))
    limits = Limits(page_seconds=3.0, failing_seconds=4.5)
    with Extraction(path, limits=limits, command=misbehaving(tmp_path, hang=tuple(range(1, 6)))) as extraction:
        pages = list(extraction.pages(range(6)))
    assert [page.kind for page in pages] == ["text", *["garbled"] * 5]
    assert ["left out" in page.reason for page in pages] == [False] * 3 + [True] * 3


def test_time_in_which_the_child_has_no_processor_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = time.monotonic()
    monkeypatch.setattr("rag.pdf.process._kept_off", lambda process: min(1.0, time.monotonic() - begun))
    child = Child((sys.executable, "-c", "import time; time.sleep(60)"), {}, lambda: False)
    assert child.next(0.5) == {"type": "stalled"}
    assert time.monotonic() - begun >= 1.5
    child.kill()


def test_cancelling_kills_the_reader_at_once(tmp_path: Path) -> None:
    path = pdf_files.write_pdf(tmp_path / "a.pdf", pdf_files.book(4))
    stop = threading.Event()
    command = misbehaving(tmp_path, hang=(1,))
    with Extraction(path, cancelled=stop.is_set, command=command) as extraction:
        pages = extraction.pages(range(4))
        next(pages)
        stop.set()
        start = time.monotonic()
        with pytest.raises(IntakeCancelled):
            next(pages)
    assert time.monotonic() - start < 15  # a page may take 20, this one takes 60


@pytest.mark.skipif(sys.platform == "win32", reason="address space limits are POSIX")
def test_memory_is_bounded(tmp_path: Path) -> None:
    greedy = tmp_path / "worker.py"
    greedy.write_text(
        "import rag.pdf.worker as worker\n"
        "read = worker.page\n"
        "worker.page = lambda document, index: (bytearray(3 << 30), read(document, index))[1]\n"
        "worker.main()\n"
    )
    path = pdf_files.write_pdf(tmp_path / "a.pdf", pdf_files.book(2))
    limits = Limits(memory_bytes=2 << 30)
    with Extraction(path, limits=limits, command=(sys.executable, str(greedy))) as extraction:
        pages = list(extraction.pages([0, 1]))
    assert [page.kind for page in pages] == ["garbled", "garbled"]


def test_the_worker_runs_from_any_folder(tmp_path: Path) -> None:
    path = pdf_files.write_pdf(tmp_path / "a.pdf", pdf_files.book(1))
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        with Extraction(path) as extraction:
            (page,) = extraction.pages([0])
    finally:
        os.chdir(before)
    assert "page0mark" in page.text


def test_the_kinds_of_pages(tmp_path: Path) -> None:
    codes = pdf_files.at(20, 700, "7K\x03H@T X{LF}N 3[E)U 9RZ\\Q ]IR[= M^XP V5RYH " * 4, "N", 5)
    lines = "".join(f"{50 + n} 100 m {60 + 3 * n} 700 l S\n" for n in range(80))
    picture = "q 595 0 0 500 0 0 cm /P Do Q\n" + pdf_files.at(20, 700, "The harbour in winter. " * 6)
    pages = ["q 595 0 0 842 0 0 cm /P Do Q", codes, "", pdf_files.at(60, 700, "Plain words."), lines, picture]
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf_files.drawn_pdf(pages))
    with Extraction(path) as extraction:
        read = list(extraction.pages(range(6)))
    assert [page.kind for page in read] == ["scan", "garbled", "empty", "text", "drawing", "mixed"]
    assert [bool(page.reason) for page in read] == [True, True, True, False, True, True]
