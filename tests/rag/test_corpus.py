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

from rag import Library, recognise
from rag.errors import DocumentError
from rag.pdf import inspect
from rag.pdf.client import Contents, ExtractedPage, Extraction, Limits

FOLDER = Path(os.environ.get("PAGEKEEP_CORPUS", ""))
FILES = sorted(FOLDER.glob("*.pdf")) if os.environ.get("PAGEKEEP_CORPUS") else []
FUZZED_BYTES = int(os.environ.get("PAGEKEEP_FUZZ_BYTES", "1200000"))
LINES = [  # file, page, words that stand on it; names of "-user" files are opened with PASSWORD
    # plain text, hyphens at line ends joined, ligatures spelled out
    ("debian-policy.pdf", 22, "control information files"),
    ("gap-ref.pdf", 101, "understands the basic vi commands but provides much more functionality. You can find"),
    ("gap-ref.pdf", 106, "then ApplicableMethod returns the nr-th applicable method for the operation opr"),
    ("beamer-guide.pdf", 29, "This is due to fundamental flaws in the pdf-specification"),
    ("pari-users.pdf", 34, "Just like multivariate polynomials, power series are fundamentally single-variable"),
    ("pari-users.pdf", 44, "What is wrong with the following definition?"),
    ("pari-users.pdf", 45, "Defining a single function is"),
    # other writings: Japanese, Chinese, Cyrillic, Persian and Hebrew (right to left), Thai; unisugar.pdf is in the
    # documentation that Debian's texlive-xetex brings along
    ("debian-reference.ja.pdf", 40, "既存ファイルのタイムスタンプを変更するには touch(1) コマンドを使って下さい。"),
    ("debian-reference.zh-cn.pdf", 40, "命名管道是一个像管道一样的文件。"),
    ("debian-faq.ru.pdf", 20, "пакет"),
    ("lshort-fa.pdf", 30, "دست آخر این که پاراگراف ها را باید به طور منطقی در فصل ها"),
    ("lshort-fa.pdf", 52, "Or, using a more mathematical approach a2 + b2 = c2 or you can type less"),
    ("lshort-fa.pdf", 118, "\\footnotesize 8pt 9pt 10pt \\small 9pt 10pt 11pt"),
    ("unisugar.pdf", 3, "the first letter of the word מבוא. Some editors adhere to the visual flow"),
    ("unisugar.pdf", 7, "יהיה עליך לחשוב על משפט המכיל לפחות פקודת בקרה אחת של LATEX ו/או לוכסן בכדי להבין"),
    ("unisugar.pdf", 7, "ו/או לוכסן בכדי להבין למה אני מתכוון. What input does LATEX require"),
    ("lshort-th.pdf", 30, "ชิดไปทางซ้าย LATEX จะไม่พยายามปรับให้แต่ละบรรทัดมีขนาด เท่ากัน"),
    # columns
    ("aps-sample.pdf", 0, "with their required arguments, using normal TEX format. In this format, #1, #2, etc."),
    ("aps-sample.pdf", 0, "stand for required author-supplied arguments to commands. For example,"),
    ("aps-sample.pdf", 1, "The citation key may contain letters, numbers, the dash (-) character, or the period"),
    # formulas and tables
    ("pari-refcard.pdf", 0, "γ ≈ 0.57, C ≈ 0.91, I = √−1 Pi, Euler, Catalan, I"),
    ("pari-users.pdf", 77, "which is much less than √B + 106; it goes down to"),
    ("gap-ref.pdf", 216, "for odd n it is J(n,2) = (−1)k with k = (n2−1)/8."),
    ("gap-ref.pdf", 0, "Email: support@gap-system.org"),
    ("unimath-symbols.pdf", 41, "U+1D7E4 𝟤 𝟤 𝟤 𝟤 𝟤 \\msanstwo mathematical sans-serif digit 2"),
    # lying pages, scans among text, locks, damage
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
    ("made-enc-aes256-user.pdf", 100, "The load command executes each line of the specified input file as if it"),
    ("made-enc-rc4-40-user.pdf", 100, "The doc-base package implements a mechanism for handling and presenting"),
    ("made-bad-startxref.pdf", 35, "it copies a string from Program Space"),
]

LABELS = [  # file, page, what is printed on it
    ("debian-policy.pdf", 2, "i"),
    ("debian-policy.pdf", 5, "iv"),
    ("debian-policy.pdf", 20, "11"),
    ("petsc-manual.pdf", 10, "3"),
    ("lshort-fa.pdf", 2, "پ"),
    ("lshort-fa.pdf", 20, "7"),
    ("gap-ref.pdf", 216, "217"),
]
PASSWORD = "secret"
REFUSED = {  # by the reader: to be repaired, or cut off, or no PDFs at all
    "made-bitrot.pdf",
    "made-empty.pdf",
    "made-html-not-pdf.pdf",
    "made-truncated-2k.pdf",
    "made-truncated-55.pdf",
    "made-zero-pages.pdf",
}
LIGATURES = re.compile("[\ufb00-\ufb06]")

pytestmark = [pytest.mark.skipif(not FILES, reason="PAGEKEEP_CORPUS is not set"), pytest.mark.timeout(600)]


def password(path: Path) -> str | None:
    return PASSWORD if path.stem.endswith("-user") else None


def read(path: Path) -> tuple[Contents, list[ExtractedPage]]:
    inspect.check_is_pdf(path)
    with Extraction(path, password(path)) as extraction:
        contents = extraction.contents()
    with Extraction(path, password(path)) as extraction:
        return contents, list(extraction.pages(range(contents.pages)))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_intake(path: Path) -> None:
    try:
        contents, pages = read(path)
    except DocumentError:
        assert path.name in REFUSED
        return
    assert path.name not in REFUSED
    assert [page.page_index for page in pages] == list(range(contents.pages))
    assert len(contents.labels) == contents.pages
    for page in pages:
        assert "\ufffe" not in page.text
        assert not LIGATURES.search(page.text)
        assert not page.text or page.positions.index(len(page.text) - 1) >= 0
    for name, index, words in LINES:
        assert name != path.name or words in " ".join(pages[index].text.split())
    for name, index, label in LABELS:
        assert name != path.name or contents.labels[index] == label
    if path.name != "made-bitrot.pdf":
        check_places(path, [page for page in pages[:: max(1, len(pages) // 12)] if page.text])


def check_places(path: Path, pages: list[ExtractedPage]) -> None:
    """Stretches of text are what PDFium has at their ranges."""
    document = pypdfium2.PdfDocument(path, password=password(path))
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
    """Without white space, hyphens and halves of letters beyond 16 bits, in the plain forms of letters; brackets in one
    form, as in lines from the right they may be given the other."""
    kept = "".join(
        c for c in text if not c.isspace() and c not in LEFT_OUT and (c < "\ud800" or "\udfff" < c <= "\uffff")
    )
    return unicodedata.normalize("NFKC", kept).replace(")", "(")


@pytest.mark.parametrize("path", [f for f in FILES if password(f)], ids=lambda path: path.name)
def test_locked_files_ask_for_their_password(path: Path, tmp_path: Path) -> None:
    """What is kept can be opened without it."""
    library = Library(tmp_path / "library")
    for wrong, words in ((None, "needs a password"), ("wrong", "is wrong")):
        with pytest.raises(DocumentError, match=words) as told:
            library.add(path, password=wrong)
        assert told.value.kind == "encrypted"
    document = library.add(path, password=PASSWORD)
    with Extraction(document.path) as extraction:
        assert not extraction.contents().encrypted
    for name, index, words in LINES:
        if name == path.name:
            page = library._shelf.db.tuples("SELECT text FROM pages WHERE page_index = ?", (index,))[0][0]
            assert words in " ".join(page.split())
    library.close()


@pytest.mark.skipif(not recognise.available(), reason="nothing is there to read scans with")
def test_scans_are_read(tmp_path: Path) -> None:
    """Pages 20 to 29 of the file are pictures of the same pages of asymptote.pdf."""
    path, original = FOLDER / "made-mixed-text-scan.pdf", FOLDER / "asymptote.pdf"
    if not path.is_file() or not original.is_file():
        pytest.skip("there is no made-mixed-text-scan.pdf")
    library = Library(tmp_path / "library")
    document = library.add(path)
    scans = document.unreadable_pages
    document = library.recognise(document.id, scans[:2])
    assert document.unreadable_pages == scans[2:]
    with Extraction(original) as extraction:
        there = [page.text for page in extraction.pages(scans[:2])]
    for index, text in zip(scans, there, strict=False):
        found = library._shelf.db.tuples("SELECT text FROM pages WHERE page_index = ?", (index,))[0][0]
        wanted = Counter(re.findall(r"[a-z]{4,}", text.lower()))
        kept = wanted & Counter(re.findall(r"[a-z]{4,}", found.lower()))
        assert kept.total() >= 0.9 * wanted.total() > 20
    library.close()


@pytest.mark.parametrize(
    ("name", "kind", "least"),
    [("lshort-th.pdf", "text", 65), ("made-mixed-text-scan.pdf", "scan", 10), ("asymptote.pdf", "drawing", 1)],
)
def test_classes(name: str, kind: str, least: int) -> None:
    if not (FOLDER / name).is_file():
        pytest.skip(f"there is no {name}")
    kinds = Counter(page.kind for page in read(FOLDER / name)[1])
    assert kinds[kind] >= least  # type: ignore[index]


@pytest.mark.parametrize("path", [f for f in FILES if f.stat().st_size < FUZZED_BYTES], ids=lambda path: path.name)
def test_rotten_files(path: Path, tmp_path: Path) -> None:
    """Flipped bits, holes and cuts: an error or a document within the time limits, and a library that goes on.

    PAGEKEEP_FUZZ sets how many rotten copies are made of each file, PAGEKEEP_FUZZ_BYTES how large the largest may be.
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
