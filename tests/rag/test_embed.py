import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from assets import sample_pdf
from rag import Library
from rag.embed import SentenceTransformersEmbedder


def test_the_package_loads_neither_torch_nor_pdfium() -> None:
    """PDFium reads files in a process of its own."""
    code = "import sys, rag.library, rag.embed, rag.context; sys.exit(bool({'torch', 'pypdfium2'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False).returncode == 0


def test_the_worker_loads_neither_index_nor_numpy() -> None:
    code = "import sys, rag.pdf.worker; sys.exit(bool({'numpy', 'sqlite_utils', 'torch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False).returncode == 0


@pytest.mark.model
def test_minilm_finds_paraphrases(minilm_folder: Path, tmp_path: Path) -> None:
    embedder = SentenceTransformersEmbedder(minilm_folder)
    assert (embedder.dimensions, embedder.loaded) == (384, False)
    library = Library(tmp_path / "library", embedder)
    document = library.add(sample_pdf())
    assert (document.state, embedder.loaded) == ("ready", True)
    questions = {"Which marks can a citation have?": 6, "I misplaced the token that opens the display": 9}
    for question, page in questions.items():
        assert library.search(question)[0].page_index == page
    library.close()


@pytest.mark.model
def test_minilm_vectors(minilm_folder: Path) -> None:
    embedder = SentenceTransformersEmbedder(minilm_folder)
    texts = ["A cat sits on the mat.", "A kitten rests on a rug.", "The bond market fell."]
    vectors = embedder.embed(texts)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert vectors[0] @ vectors[1] > 0.4 > vectors[0] @ vectors[2]
    np.testing.assert_allclose(embedder.embed(texts[1:2])[0], vectors[1], atol=0.02)
    assert embedder.embed([]).shape == (0, 384)
    assert SentenceTransformersEmbedder(minilm_folder).name == embedder.name
