"""The embedder behind search by meaning: fetched when first wanted, loaded when first used."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.core.downloads import IsCancelled, OnBytes
from app.core.errors import UserError, as_user_error
from app.core.starter import embedder_path, fetch_embedder
from rag.types import DocumentId, Hit

if TYPE_CHECKING:
    from rag import Library
    from rag.library import VectorUse
    from rag.protocols import Cancelled, Embedder, OnProgress

log = logging.getLogger(__name__)


class Shelves:
    """The library, opened again with the embedder once that is there; thread-safe.

    `wait_for_vectors`: a search may load the embedder first (seconds: command line); else words alone are
    searched until it has been loaded behind the scenes. `chosen` tells the model to use instead of the one that is
    fetched into `embedder_folder`; it is asked each time, and another one is used from the next search on.
    """

    def __init__(
        self,
        folder: Path,
        embedder_folder: Path,
        wait_for_vectors: bool,
        chosen: Callable[[], Path | None] = lambda: None,
    ) -> None:
        self._folder = folder
        self._embedder_folder = embedder_folder
        self._chosen = chosen
        self._wait = wait_for_vectors
        self._lock = threading.Lock()
        self._opened: list[Library] = []
        self._with: Path | None = None  # the embedder of the library opened last
        self._warming: Embedder | None = None

    @property
    def embedder_present(self) -> bool:
        return is_embedder(self.folder_of_embedder)

    @property
    def folder_of_embedder(self) -> Path:
        return self._chosen() or embedder_path(self._embedder_folder)

    def library(self) -> Library:
        """With the embedder when its files are there. Torch is not loaded by this."""
        with self._lock:
            wanted = self.folder_of_embedder
            if not self._opened or (wanted != self._with and is_embedder(wanted)):
                self._open(wanted)
            return self._opened[-1]

    def words_library(self) -> Library:
        """The same shelf without an embedder: takes documents in as far as their words."""
        from rag import Library

        with self._lock:
            if not self._opened or self._opened[0].embedder is not None:
                self._opened.insert(0, Library(self._folder))
            return self._opened[0]

    def fetch_embedder(self, on_bytes: OnBytes, cancelled: IsCancelled) -> None:
        """Nothing to do for one the reader chose. Raises UserError, Cancelled."""
        chosen = self._chosen()
        if chosen is None:
            fetch_embedder(self._embedder_folder, on_bytes, cancelled)
        elif not is_embedder(chosen):
            raise no_embedder(chosen)

    def search(
        self,
        query: str,
        documents: list[DocumentId],
        top: int,
        *,
        pages: Mapping[DocumentId, Sequence[int]] | None = None,
    ) -> list[Hit]:
        """The best passages, then those right before and after them."""
        from rag.context import with_neighbours

        return with_neighbours(self.found(query, documents, top, pages), self.library())

    def found(
        self, query: str, documents: list[DocumentId], top: int, pages: Mapping[DocumentId, Sequence[int]] | None = None
    ) -> list[Hit]:
        """The best passages. `pages`: of a document, where not all of them are searched."""
        library = self.library()
        vectors: VectorUse = "never"
        if any(library.document(document).embedded for document in documents):
            vectors = "wait" if self._wait else "if_loaded"
            if not self._wait:
                self.warm()
        return library.search(query, documents, top, vectors=vectors, pages=pages)

    def warm(self) -> None:
        """Loads the embedder on a thread of its own, once."""
        embedder = self.library().embedder
        with self._lock:
            if embedder is None or embedder.loaded or self._warming is embedder:
                return
            self._warming = embedder
        threading.Thread(target=_load, args=(embedder.embed,), name="embedder-load", daemon=True).start()

    def close(self) -> None:
        with self._lock:
            for library in self._opened:
                library.close()
            self._opened.clear()
            self._with = None

    def _open(self, wanted: Path) -> None:
        """Libraries that were opened before stay open: searches may be running in them."""
        from rag import Library

        if not is_embedder(wanted):
            self._opened.append(Library(self._folder))
            return
        self._opened.append(Library(self._folder, embedder_of(wanted)))
        self._with = wanted


def is_embedder(folder: Path) -> bool:
    """Whether a model in sentence-transformers' format may lie there; weights that are pickles are not taken."""
    return (folder / "config.json").is_file() and any(folder.glob("*.safetensors"))


def no_embedder(folder: Path) -> UserError:
    return UserError(
        "The chosen embedder is not there.",
        f"{folder} holds no model in sentence-transformers' format (config.json and .safetensors files).",
        "Put it back, choose another with 'pagekeep index model FOLDER', or 'pagekeep index model default'.",
    )


def usable_embedder(folder: Path) -> Embedder:
    """The embedder, tried on a text. Raises UserError."""
    if not is_embedder(folder):
        raise no_embedder(folder)
    try:
        embedder = embedder_of(folder)
        embedder.embed(["A text to try it with."])
    except Exception as error:  # whatever a model of others may make their library raise
        log.info("unusable embedder", exc_info=True)
        why = as_user_error(error).why or str(error)
        raise UserError("This model cannot be used to find by meaning.", why, "Choose another folder.") from error
    return embedder


def make_vectors_beside(folder: Path, embedder: Embedder, on_progress: OnProgress, cancelled: Cancelled) -> int:
    """Vectors of every document by another embedder, while those in use stay as they are; the number of documents.

    What an earlier, interrupted call has made is kept. Raises IntakeCancelled, DocumentError, and UserError where
    another process has a document in its hands.
    """
    from rag import Library

    library = Library(folder, embedder)
    try:
        library.embed_missing(on_progress, cancelled)
        documents = library.documents()
        if left := [document.name for document in documents if not document.embedded]:
            raise UserError(
                "The search has not been switched yet.",
                f"Another Pagekeep is working on {len(left):,} of the documents, {left[0]} among them.",
                "Try again when that is done; what was made is kept.",
            )
        return len(documents)
    finally:
        library.close()


def embedder_of(path: Path) -> Embedder:
    """Our own encoder where it knows the kind of model, else sentence-transformers. Their vectors of one model agree
    to cosine 0.999, so an index may hold both."""
    from engine.embedding import NativeEmbedder, can_embed
    from rag.embed import SentenceTransformersEmbedder, identity

    if can_embed(path):
        return NativeEmbedder(path, identity(path), threads=os.cpu_count() or 1)
    return SentenceTransformersEmbedder(path)


def _load(embed: Callable[[list[str]], object]) -> None:
    try:
        embed(["warm"])
    except Exception:
        log.exception("the embedder could not be loaded")
