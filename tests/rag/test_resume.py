"""Imports that are killed, and imports of the same file by two processes."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rag import Document, Library
from tests.rag import pdf_files
from tests.rag.conftest import WordBag

ROOT = Path(__file__).parents[2]
KILLED = """
import os, signal, sys
from pathlib import Path
from rag import Library
from tests.rag.conftest import WordBag
folder, path, phase, done = sys.argv[1:]
def watch(progress):
    if progress.phase == phase and progress.done >= int(done):
        os.kill(os.getpid(), signal.SIGKILL)
Library(Path(folder), WordBag()).add(Path(path), watch)
"""
ADDED = """
import sys
from pathlib import Path
from rag import Library
library = Library(Path(sys.argv[1]))
print(library.add(Path(sys.argv[2])).id)
library.close()
"""
ADDED_WITH_VECTORS = ADDED.replace("import Library", "import Library\nfrom tests.rag.conftest import WordBag").replace(
    "(sys.argv[1]))", "(sys.argv[1]), WordBag())"
)


def python(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def everything(folder: Path) -> list[object]:
    """All that intake stores, without ids and times."""
    library = Library(folder)
    db = library._shelf.db
    contents: list[object] = [
        db.tuples("SELECT page_index, text, positions, kind FROM pages ORDER BY page_index"),
        db.tuples("SELECT ordinal, text, heading, pieces, ranges FROM passages ORDER BY ordinal"),
        db.tuples("SELECT ordinal, page_index, start, count FROM windows ORDER BY ordinal"),
        db.tuples("SELECT page_index, label FROM labels ORDER BY page_index"),
        db.tuples("SELECT language FROM documents"),
        [(d.sha256, d.pages, d.characters, d.state) for d in library.documents()],
        [path.read_bytes() for path in sorted((folder / "vectors").iterdir())],
        sorted(path.name for path in (folder / "files").iterdir()),
    ]
    for table in ("page_words", "page_parts", "window_words"):
        db.run(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
    library.close()
    return contents


def add(folder: Path, path: Path) -> Document:
    library = Library(folder, WordBag())
    document = library.add(path)
    library.close()
    return document


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pdf_files.write_pdf(tmp_path_factory.mktemp("pdf") / "book.pdf", pdf_files.book(150))


@pytest.fixture(scope="module")
def undisturbed(path: Path, tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    folder = tmp_path_factory.mktemp("undisturbed")
    add(folder, path)
    return everything(folder)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize(
    ("phase", "done"),
    [
        ("copy", 1),
        ("text", 0),
        ("text", 33),
        ("text", 150),
        ("words", 0),
        ("words", 100),
        ("vectors", 0),
        ("vectors", 130),
    ],
)
def test_a_killed_import_goes_on(phase: str, done: int, path: Path, undisturbed: list[object], tmp_path: Path) -> None:
    child = python(KILLED, tmp_path, path, phase, done)
    child.communicate(timeout=500)
    assert child.returncode == -9
    assert everything(tmp_path) != undisturbed
    add(tmp_path, path)
    assert everything(tmp_path) == undisturbed


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.timeout(1800)
def test_imports_killed_at_random_moments(path: Path, undisturbed: list[object], tmp_path: Path) -> None:
    """Each import is killed some time after it began, until one survives; then the next library is begun.

    PAGEKEEP_KILLS sets how often; a few times are enough for every run, 50 for a release.
    """
    kills = int(os.environ.get("PAGEKEEP_KILLS", "4"))
    chance = random.Random(kills)
    longest = timed(tmp_path / "timed", path)
    done = rounds = 0
    while done < kills:
        folder = tmp_path / str(rounds)
        while done < kills and killed_after(folder, path, chance.uniform(0.3, longest)):
            done += 1
        rounds += 1
        add(folder, path)
        assert everything(folder) == undisturbed


def timed(folder: Path, path: Path) -> float:
    start = time.monotonic()
    python(ADDED_WITH_VECTORS, folder, path).communicate(timeout=300)
    return time.monotonic() - start


def killed_after(folder: Path, path: Path, seconds: float) -> bool:
    """False when the import was faster than that."""
    child = python(ADDED_WITH_VECTORS, folder, path)
    try:
        child.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        child.kill()
    child.communicate(timeout=500)
    return child.returncode == -9


def test_two_processes_add_the_same_file(path: Path, undisturbed: list[object], tmp_path: Path) -> None:
    children = [python(ADDED, tmp_path, path) for _ in range(2)]
    answers = [child.communicate(timeout=500)[0].strip() for child in children]
    assert [child.returncode for child in children] == [0, 0]
    assert answers[0] == answers[1] != ""
    add(tmp_path, path)
    assert everything(tmp_path) == undisturbed


def test_another_process_sees_what_this_one_adds(library: Library, path: Path) -> None:
    child = python(ADDED, library.folder, path)
    answer, _ = child.communicate(timeout=500)
    document = library.document(int(answer))  # type: ignore[arg-type]
    assert document.state == "words"
    assert library.search("page77mark")[0].page_index == 77
