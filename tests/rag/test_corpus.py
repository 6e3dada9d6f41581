"""Every PDF of a folder goes through intake; PAGEKEEP_CORPUS names the folder (many real files of many kinds)."""

import os
from collections import Counter
from pathlib import Path

import pytest

from rag.errors import DocumentError
from rag.pdf import inspect
from rag.pdf.client import Contents, ExtractedPage, Extraction

FOLDER = Path(os.environ.get("PAGEKEEP_CORPUS", ""))
FILES = sorted(FOLDER.glob("*.pdf")) if os.environ.get("PAGEKEEP_CORPUS") else []
LINES = {  # file: page, words that stand on it
    "debian-policy.pdf": (22, "control information files"),
    "debian-reference.ja.pdf": (40, "既存ファイルのタイムスタンプを変更するには touch(1) コマンドを使って下さい。"),
    "debian-reference.zh-cn.pdf": (40, "命名管道是一个像管道一样的文件。"),
    "debian-faq.ru.pdf": (20, "пакет"),
    "lshort-fa.pdf": (30, "دست آخر این که پاراگراف ها را باید به طور منطقی در فصل ها"),
    "aps-sample.pdf": (1, "The citation key may contain letters, numbers, the dash (-) character, or the period"),
    "made-mixed-text-scan.pdf": (15, "Asymptote"),
    "made-enc-owner-only.pdf": (111, "skips lines only at the start of the file"),
    "made-bad-startxref.pdf": (35, "it copies a string from Program Space"),
}

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
    if path.name in LINES:
        index, words = LINES[path.name]
        assert words in " ".join(pages[index].text.split())


@pytest.mark.parametrize(
    ("name", "kind", "least"), [("lshort-th.pdf", "garbled", 50), ("made-mixed-text-scan.pdf", "scan", 10)]
)
def test_classes(name: str, kind: str, least: int) -> None:
    if not (FOLDER / name).is_file():
        pytest.skip(f"there is no {name}")
    kinds = Counter(page.kind for page in read(FOLDER / name)[1])
    assert kinds[kind] >= least  # type: ignore[index]
