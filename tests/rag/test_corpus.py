"""Every PDF of a folder goes through intake; PAGEKEEP_CORPUS names the folder (many real files of many kinds)."""

import os
import random
import re
import time
import unicodedata
from collections import Counter
from pathlib import Path

import pypdfium2
import pytest

from rag import Library
from rag.errors import DocumentError
from rag.pdf import inspect
from rag.pdf.client import Contents, ExtractedPage, Extraction, Limits

FOLDER = Path(os.environ.get("PAGEKEEP_CORPUS", ""))
FILES = sorted(FOLDER.glob("*.pdf")) if os.environ.get("PAGEKEEP_CORPUS") else []
LINES = [  # file, page, words that stand on it
    ("debian-policy.pdf", 22, "control information files"),
    ("debian-reference.ja.pdf", 40, "既存ファイルのタイムスタンプを変更するには touch(1) コマンドを使って下さい。"),
    ("debian-reference.zh-cn.pdf", 40, "命名管道是一个像管道一样的文件。"),
    ("debian-faq.ru.pdf", 20, "пакет"),
    ("lshort-fa.pdf", 30, "دست آخر این که پاراگراف ها را باید به طور منطقی در فصل ها"),
    ("lshort-fa.pdf", 52, "Or, using a more mathematical approach a2 + b2 = c2 or you can type less"),
    ("lshort-fa.pdf", 118, "\\footnotesize 8pt 9pt 10pt \\small 9pt 10pt 11pt"),
    ("lshort-th.pdf", 30, "ชิดไปทางซ้าย LATEX จะไม่พยายามปรับให้แต่ละบรรทัดมีขนาด เท่ากัน"),
    ("aps-sample.pdf", 0, "with their required arguments, using normal TEX format. In this format, #1, #2, etc."),
    ("aps-sample.pdf", 0, "stand for required author-supplied arguments to commands. For example,"),
    ("aps-sample.pdf", 1, "The citation key may contain letters, numbers, the dash (-) character, or the period"),
    ("pari-refcard.pdf", 0, "γ ≈ 0.57, C ≈ 0.91, I = √−1 Pi, Euler, Catalan, I"),
    ("pari-users.pdf", 77, "which is much less than √B + 106; it goes down to"),
    ("gap-ref.pdf", 216, "for odd n it is J(n,2) = (−1)k with k = (n2−1)/8."),
    ("gap-ref.pdf", 0, "Email: support@gap-system.org"),
    ("unimath-symbols.pdf", 41, "U+1D7E4 𝟤 𝟤 𝟤 𝟤 𝟤 \\msanstwo mathematical sans-serif digit 2"),
    (
        "made-rotated.pdf",
        20,
        "and a status bar at the bottom. (You can detach the tree menu using ‘Window->Attach/Detach",
    ),
    (
        "made-rotated.pdf",
        120,
        "matrices that specify how to interpolate the data (they have the same meaning as in Section 8.1",
    ),
    ("made-mixed-text-scan.pdf", 15, "Asymptote"),
    ("made-enc-owner-only.pdf", 111, "skips lines only at the start of the file"),
    ("made-bad-startxref.pdf", 35, "it copies a string from Program Space"),
]

pytestmark = [pytest.mark.skipif(not FILES, reason="PAGEKEEP_CORPUS is not set"), pytest.mark.timeout(600)]


def read(path: Path) -> tuple[Contents, list[ExtractedPage]]:
    inspect.check_is_pdf(path)
    with Extraction(path) as extraction:
        contents = extraction.contents()
    with Extraction(path) as extraction:
        return contents, list(extraction.pages(range(contents.pages)))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_intake(path: Path) -> None:
    try:
        contents, pages = read(path)
    except DocumentError:
        assert path.name.startswith("made-")  # those that are locked, cut off or no PDFs at all
        return
    assert [page.page_index for page in pages] == list(range(contents.pages))
    assert len(contents.labels) == contents.pages
    for page in pages:
        assert "\ufffe" not in page.text
        assert not page.text or page.positions.index(len(page.text) - 1) >= 0
    for name, index, words in LINES:
        assert name != path.name or words in " ".join(pages[index].text.split())
    if path.name != "made-bitrot.pdf":
        check_places(path, [page for page in pages[:: max(1, len(pages) // 12)] if page.text])


def check_places(path: Path, pages: list[ExtractedPage]) -> None:
    """Stretches of text are what PDFium has at their ranges."""
    document = pypdfium2.PdfDocument(path)
    for page in pages:
        textpage = document[page.page_index].get_textpage()
        raw = [textpage.get_text_range(n, 1) for n in range(textpage.count_chars())]
        for match in re.finditer(r"\S.{20,40}\S", page.text, re.DOTALL):
            spans = page.positions.spans(match.start(), len(match[0]))
            there = "".join("".join(raw[first : first + count]) for first, count in spans)
            if "Thai" not in page.reason:
                assert bare(there) == bare(match[0])
        textpage.close()
    document.close()


LEFT_OUT = {"-", "\xad", "\ufffe", *map(chr, range(32))}


def bare(text: str) -> str:
    """Without white space, hyphens and halves of letters beyond 16 bits, in the plain forms of letters."""
    kept = "".join(
        c for c in text if not c.isspace() and c not in LEFT_OUT and (c < "\ud800" or "\udfff" < c <= "\uffff")
    )
    return unicodedata.normalize("NFKC", kept)


@pytest.mark.parametrize(
    ("name", "kind", "least"),
    [("lshort-th.pdf", "text", 65), ("made-mixed-text-scan.pdf", "scan", 10), ("asymptote.pdf", "drawing", 1)],
)
def test_classes(name: str, kind: str, least: int) -> None:
    if not (FOLDER / name).is_file():
        pytest.skip(f"there is no {name}")
    kinds = Counter(page.kind for page in read(FOLDER / name)[1])
    assert kinds[kind] >= least  # type: ignore[index]


@pytest.mark.parametrize("path", [f for f in FILES if f.stat().st_size < 1_200_000], ids=lambda path: path.name)
def test_rotten_files(path: Path, tmp_path: Path) -> None:
    """Flipped bits, holes and cuts: an error or a document within the time limits, and a library that goes on.

    PAGEKEEP_FUZZ sets how many rotten copies are made of each file.
    """
    library = Library(tmp_path / "library", limits=Limits(15.0, 5.0, 20.0))
    data = path.read_bytes()
    told: list[DocumentError] = []
    for seed in range(int(os.environ.get("PAGEKEEP_FUZZ", "1"))):
        rotten = rot(data, random.Random(seed))
        (tmp_path / f"{seed}.pdf").write_bytes(rotten)
        start = time.monotonic()
        try:
            document = library.add(tmp_path / f"{seed}.pdf")
        except DocumentError as error:
            told.append(error)
        else:
            assert len(library.report(document.id).pages) == document.pages
            library.purge(document.id)
        assert time.monotonic() - start < 200
        assert library.documents(include_trashed=True) == []
    assert all(error.what and error.next for error in told)
    library.close()


def rot(data: bytes, chance: random.Random) -> bytes:
    rotten = bytearray(data)
    for _ in range(chance.choice((1, 10, 100, 1000)) if data else 0):
        at = chance.randrange(len(rotten))
        rotten[at] ^= 1 << chance.randrange(8)
    if data and chance.random() < 0.3:
        at = chance.randrange(len(rotten))
        rotten[at : at + chance.randrange(5000)] = b""
    return bytes(rotten[: chance.randrange(len(rotten))] if data and chance.random() < 0.2 else rotten)
