"""A model of the reader's choice finds by meaning, once it has read everything."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.core.embedding import Shelves, embedder_of, make_vectors_beside, usable_embedder
from app.core.errors import UserError
from app.core.paths import Paths
from app.core.settings import Settings, StoredSettings, save_settings
from app.core.workspace import Workspace
from assets import sample_pdf
from rag import IntakeCancelled, Library
from rag.index.locks import exclusive
from rag.types import IngestProgress
from tests.engine.embedding.test_embedder import folder


@pytest.fixture
def models(tmp_path: Path) -> tuple[Path, Path]:
    return folder(tmp_path / "one"), folder(tmp_path / "two", pooling="cls_token")


def embedded(shelf: Path, model: Path) -> bool:
    library = Library(shelf, embedder_of(model))
    (document,) = library.documents()
    library.close()
    return document.embedded


def nothing(progress: IngestProgress) -> None:
    pass


def test_vectors_are_made_beside_those_in_use(tmp_path: Path, models: tuple[Path, Path]) -> None:
    one, two = models
    library = Library(tmp_path / "shelf", embedder_of(one))
    document = library.add(sample_pdf())
    before = library.search("deposit")[0]
    assert not embedded(library.folder, two)
    with pytest.raises(IntakeCancelled):
        make_vectors_beside(library.folder, usable_embedder(two), nothing, lambda: True)
    assert (embedded(library.folder, one), embedded(library.folder, two)) == (True, False)
    assert make_vectors_beside(library.folder, usable_embedder(two), nothing, lambda: False) == 1
    assert (embedded(library.folder, one), embedded(library.folder, two)) == (True, True)
    assert library.search("deposit")[0] == before
    library.close()
    shelves = Shelves(library.folder, tmp_path / "default", wait_for_vectors=True, chosen=lambda: two)
    hit = shelves.found("deposit", [document.id], 1)[0]
    assert hit.why["vectors"] != before.why["vectors"]
    assert shelves.library().embedder.name == embedder_of(two).name
    shelves.close()


def test_an_open_window_takes_what_another_process_switched_to(tmp_path: Path, models: tuple[Path, Path]) -> None:
    one, two = models
    paths = Paths.below(tmp_path / "home")
    save_settings(paths.settings, Settings(embedder=one))
    workspace = Workspace(paths, lambda event: None, wait_for_vectors=True)
    document = workspace.library.add(sample_pdf())
    before = workspace.search("deposit", [int(document.id)]).passages[0]
    make_vectors_beside(paths.library, usable_embedder(two), nothing, lambda: False)
    StoredSettings(paths.settings).change(lambda s: replace(s, embedder=two))  # as `pagekeep index model` does
    after = workspace.search("deposit", [int(document.id)]).passages[0]
    assert workspace.library.embedder.name == embedder_of(two).name
    assert before.vectors != after.vectors != 0
    StoredSettings(paths.settings).change(lambda s: replace(s, embedder=tmp_path / "gone"))
    assert workspace.library.embedder.name == embedder_of(two).name  # until there is another one
    workspace.update_settings(embedder=one)
    assert workspace.search("deposit", [int(document.id)]).passages[0].vectors == before.vectors
    workspace.close()


def test_nothing_is_switched_while_another_process_has_a_document(tmp_path: Path, models: tuple[Path, Path]) -> None:
    one, two = models
    library = Library(tmp_path / "shelf", embedder_of(one))
    document = library.add(sample_pdf())
    with exclusive(library._lock(document.sha256), lambda: False), pytest.raises(UserError, match="not been switched"):
        make_vectors_beside(library.folder, usable_embedder(two), nothing, lambda: False)
    library.close()


def test_a_chosen_model_that_is_gone_is_not_replaced_in_silence(tmp_path: Path) -> None:
    shelves = Shelves(tmp_path / "shelf", tmp_path / "default", wait_for_vectors=True, chosen=lambda: tmp_path / "gone")
    assert not shelves.embedder_present
    with pytest.raises(UserError, match="gone") as told:
        shelves.fetch_embedder(lambda done, total: None, lambda: False)
    assert "pagekeep index model" in told.value.next
    assert not (tmp_path / "default").exists()


def test_folders_that_cannot_be_used(tmp_path: Path, models: tuple[Path, Path]) -> None:
    one, _ = models
    with pytest.raises(UserError, match="not there"):
        usable_embedder(tmp_path)
    weights = one / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-5000])
    with pytest.raises(UserError, match="cannot be used"):
        usable_embedder(one)
    weights.rename(one / "pytorch_model.bin")  # a pickle may run code
    with pytest.raises(UserError, match="not there"):
        usable_embedder(one)
