"""The embedder behind search by meaning: fetched when first wanted, loaded when first used."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from app.core.downloads import IsCancelled, OnBytes
from app.core.starter import EMBEDDER_WEIGHTS, embedder_path, fetch_embedder
from rag.types import DocumentId, Hit

if TYPE_CHECKING:
    from rag import Library
    from rag.library import VectorUse
    from rag.protocols import Embedder

log = logging.getLogger(__name__)


class Shelves:
    """The library, opened again with the embedder once that is there; thread-safe.

    `wait_for_vectors`: a search may load the embedder first (seconds: command line); else words alone are
    searched until it has been loaded behind the scenes.
    """

    def __init__(self, folder: Path, embedder_folder: Path, wait_for_vectors: bool) -> None:
        self._folder = folder
        self._embedder_folder = embedder_folder
        self._wait = wait_for_vectors
        self._lock = threading.Lock()
        self._opened: list[Library] = []
        self._with_embedder = False
        self._warming: threading.Thread | None = None

    @property
    def embedder_present(self) -> bool:
        return (embedder_path(self._embedder_folder) / EMBEDDER_WEIGHTS).is_file()

    @property
    def folder_of_embedder(self) -> Path:
        return embedder_path(self._embedder_folder)

    def library(self) -> Library:
        """With the embedder when its files are there. Torch is not loaded by this."""
        with self._lock:
            if not self._opened or (self.embedder_present and not self._with_embedder):
                self._open()
            return self._opened[-1]

    def words_library(self) -> Library:
        """The same shelf without an embedder: takes documents in as far as their words."""
        from rag import Library

        with self._lock:
            if not self._opened or self._opened[0].embedder is not None:
                self._opened.insert(0, Library(self._folder))
            return self._opened[0]

    def fetch_embedder(self, on_bytes: OnBytes, cancelled: IsCancelled) -> None:
        """Raises UserError, Cancelled."""
        fetch_embedder(self._embedder_folder, on_bytes, cancelled)

    def search(
        self, query: str, documents: list[DocumentId], top: int, *, pages: Mapping[DocumentId, range] | None = None
    ) -> list[Hit]:
        """The best passages, then those right before and after them."""
        from rag.context import with_neighbours

        return with_neighbours(self.found(query, documents, top, pages), self.library())

    def found(
        self, query: str, documents: list[DocumentId], top: int, pages: Mapping[DocumentId, range] | None = None
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
            if embedder is None or embedder.loaded or self._warming is not None:
                return
            self._warming = threading.Thread(target=_load, args=(embedder.embed,), name="embedder-load", daemon=True)
            self._warming.start()

    def close(self) -> None:
        with self._lock:
            for library in self._opened:
                library.close()
            self._opened.clear()
            self._with_embedder = False

    def _open(self) -> None:
        from rag import Library

        if not self.embedder_present:
            self._opened.append(Library(self._folder))
            return
        self._opened.append(Library(self._folder, embedder_of(embedder_path(self._embedder_folder))))
        self._with_embedder = True


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
