"""Words of an older library are indexed anew behind the window's back."""

import itertools
import threading
from pathlib import Path

from app.core.events import ImportProgress, WorkspaceEvent
from app.core.paths import Paths
from app.core.workspace import Workspace
from rag import Library
from rag.types import DocumentId
from tests.rag.test_languages import add
from tests.rag.test_restem import as_before_stems


def older_library(folder: Path, pdfs: Path) -> DocumentId:
    library = Library(folder)
    german = add(library, pdfs, "german")
    as_before_stems(library).close()
    return german.id


def test_it_is_done_after_the_start_and_shown(tmp_path: Path) -> None:
    paths = Paths.below(tmp_path / "home").create()
    german = older_library(paths.library, tmp_path)
    told: list[ImportProgress] = []
    ended = threading.Event()

    def hear(event: WorkspaceEvent) -> None:
        if isinstance(event, ImportProgress) and event.progress.document_id == german:
            told.append(event)
            if event.progress.phase == "done":
                ended.set()

    workspace = Workspace(paths, hear, make_vectors=False)
    workspace.documents.resume()
    assert ended.wait(240)
    phases = [event.progress.phase for event in told]
    assert [phase for phase, _ in itertools.groupby(phases)] == ["text", "words", "done"]
    assert workspace.library.search("Haus")[0].page_index == 1
    assert workspace._imports.index_words() is None
    workspace.close()
