import os

import numpy as np
import pytest

from rag import Document, Library
from rag.index import vectors
from rag.index.vectors import DocumentScores, VectorFiles


@pytest.fixture
def files(library: Library) -> VectorFiles:
    return library._shelf.vectors


def rows(count: int, seed: int = 0) -> np.ndarray:
    made = np.random.default_rng(seed).standard_normal((count, 5)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def test_scores_are_cosines(files: VectorFiles, sample: Document) -> None:
    first, second = rows(3), rows(4, seed=1)
    assert files.append(sample.id, sample.sha256, "e", first) == 3
    assert files.append(sample.id, sample.sha256, "e", second) == 7
    scores = files.scores(sample.id, sample.sha256, "e", first[1])
    assert scores is not None
    np.testing.assert_allclose(scores.windows, np.concatenate([first, second]) @ first[1], atol=2e-3)
    assert scores.pages.shape == (7,)


@pytest.mark.parametrize("kept_bytes", [0, 100, 10**6])
def test_what_is_kept_in_memory_follows_the_file(
    files: VectorFiles, sample: Document, monkeypatch: pytest.MonkeyPatch, kept_bytes: int
) -> None:
    monkeypatch.setattr(vectors, "KEPT_BYTES", kept_bytes)

    def cosines() -> np.ndarray:
        scores = files.scores(sample.id, sample.sha256, "e", rows(1)[0])
        assert scores is not None
        return scores.windows

    files.append(sample.id, sample.sha256, "e", rows(3))
    np.testing.assert_array_equal(cosines(), cosines())
    files.append(sample.id, sample.sha256, "e", rows(4, seed=2))
    np.testing.assert_allclose(cosines(), np.concatenate([rows(3), rows(4, seed=2)]) @ rows(1)[0], atol=2e-3)
    path = files._path(sample.sha256, "e")
    path.write_bytes(rows(7, seed=3).astype("<f2").tobytes())  # as another process would after reading anew
    os.utime(path, ns=(1, 1))
    np.testing.assert_allclose(cosines(), rows(7, seed=3) @ rows(1)[0], atol=2e-3)


def test_who_has_vectors_mapped_keeps_them_while_they_are_made_anew(files: VectorFiles, sample: Document) -> None:
    """A file that is cut under its map ends the process that reads it."""
    files.append(sample.id, sample.sha256, "e", rows(7))
    mapped = np.memmap(files._path(sample.sha256, "e"), "<f2", "r", shape=(7, 5))
    files._db.run("DELETE FROM vectors WHERE document_id = ?", (sample.id,))
    files.append(sample.id, sample.sha256, "e", rows(2, seed=1))
    np.testing.assert_allclose(mapped, rows(7), atol=2e-3)
    scores = files.scores(sample.id, sample.sha256, "e", rows(1)[0])
    assert scores is None or len(scores.windows) == 2


def test_windows_cut_anew_by_another_library_are_followed(
    files: VectorFiles, library: Library, sample: Document
) -> None:
    """As when scans are read, or `pagekeep index ocr` runs beside a window."""
    other, query = VectorFiles(files._folder, library._shelf.db), rows(1)[0]
    files.append(sample.id, sample.sha256, "e", rows(7))
    before = other.scores(sample.id, sample.sha256, "e", query)
    assert before is not None
    with library._shelf.db.transaction():
        library._shelf.db.run("DELETE FROM vectors WHERE document_id = ?", (sample.id,))
        library._shelf.db.run("UPDATE windows SET page_index = page_index + 3 WHERE document_id = ?", (sample.id,))
    assert other.scores(sample.id, sample.sha256, "e", query) is None
    files.append(sample.id, sample.sha256, "e", rows(5))
    after = other.scores(sample.id, sample.sha256, "e", query)
    assert after is not None
    np.testing.assert_array_equal(after.pages, before.pages[:5] + 3)
    library._shelf.db.run("DELETE FROM windows WHERE document_id = ? AND ordinal >= 4", (sample.id,))
    os.utime(files._path(sample.sha256, "e"), ns=(1, 1))
    assert other.scores(sample.id, sample.sha256, "e", query) is None, "windows and vectors of two cuts"


def test_what_a_killed_writer_left_is_written_over(files: VectorFiles, sample: Document) -> None:
    files.append(sample.id, sample.sha256, "e", rows(2))
    path = files._path(sample.sha256, "e")
    path.write_bytes(path.read_bytes() + b"\x7f" * 13)
    files.append(sample.id, sample.sha256, "e", rows(2, seed=1))
    assert path.stat().st_size == 4 * 5 * 2
    scores = files.scores(sample.id, sample.sha256, "e", rows(2, seed=1)[0])
    assert scores is not None
    assert scores.windows.argmax() == 2


def test_two_embedders_do_not_mix(files: VectorFiles, sample: Document) -> None:
    files.append(sample.id, sample.sha256, "e", rows(2))
    assert files.scores(sample.id, sample.sha256, "other", rows(1)[0]) is None


def test_a_lost_file_counts_as_no_vectors(files: VectorFiles, sample: Document) -> None:
    files.append(sample.id, sample.sha256, "e", rows(2))
    files._path(sample.sha256, "e").unlink()
    assert files.scores(sample.id, sample.sha256, "e", rows(1)[0]) is None


def test_a_page_speaks_with_its_three_nearest_windows() -> None:
    pages = np.array([4, 1, 4, 1, 4, 4])
    scores = DocumentScores(np.array([0.5, -0.25, 0.75, -0.5, 0.25, -1.0], np.float32), pages)
    assert scores.best_windows() == {1: -0.25, 4: 0.75}
    assert scores.together() == {1: -0.5, 4: 0.75 + 0.25 + 0.0625}


def test_scores_know_the_pages_of_the_windows_embedded_so_far(files: VectorFiles, sample: Document) -> None:
    files.append(sample.id, sample.sha256, "e", rows(2))
    first = files.scores(sample.id, sample.sha256, "e", rows(1)[0])
    files.append(sample.id, sample.sha256, "e", rows(3, seed=1))
    more = files.scores(sample.id, sample.sha256, "e", rows(1)[0])
    assert first is not None
    assert more is not None
    assert len(first.pages) == len(first.windows) == 2
    assert len(more.pages) == len(more.windows) == 5
    assert list(more.pages[:2]) == list(first.pages)
