"""Collections: documents under a name, put together by hand or by following a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rag.contents import Contents
from rag.errors import DocumentError
from rag.types import Document, DocumentId


@dataclass(frozen=True)
class Collection:
    """`folder`: PDFs in it and below come in by themselves; None: put together by hand."""

    id: int
    name: str
    folder: Path | None
    documents: tuple[DocumentId, ...]


@dataclass(frozen=True)
class SeenFile:
    """A file of a followed folder as it was when it was taken in. `document_id` None: it could not be (`error`)."""

    path: Path
    size: int
    modified_ns: int
    document_id: DocumentId | None
    error: str = ""


class Collections(Contents):
    """The part of `rag.Library` that groups documents."""

    def collections(self) -> list[Collection]:
        """By name; documents in the trash are not counted."""
        rows = self._shelf.db.rows("SELECT * FROM collections ORDER BY name COLLATE NOCASE")
        return [self._collection(row) for row in rows]

    def collection(self, name: str) -> Collection:
        """Errors: DocumentError of kind "collection"."""
        row = self._shelf.db.row("SELECT * FROM collections WHERE name = ? COLLATE NOCASE", (name,))
        if row is None:
            known = ", ".join(one.name for one in self.collections()) or "there are none"
            why = f"The library's collections: {known}."
            raise DocumentError(f"There is no collection “{name}”.", why, "Choose one of them.", "collection")
        return self._collection(row)

    def in_collection(self, name: str) -> list[Document]:
        """Its documents, oldest first, without those in the trash. Errors: as `collection`."""
        wanted = set(self.collection(name).documents)
        return [document for document in self.documents() if document.id in wanted]

    def make_collection(self, name: str, folder: Path | None = None) -> Collection:
        """A new one, or the one of that name; a `folder` is followed from now on."""
        name = " ".join(name.split())
        if not name:
            raise DocumentError("A collection needs a name.", "The name was empty.", "Type a name.", "collection")
        with self._shelf.db.transaction():
            self._shelf.db.run("INSERT OR IGNORE INTO collections (name) VALUES (?)", (name,))
            if folder is not None:
                self._shelf.db.run(
                    "UPDATE collections SET folder = ? WHERE name = ? COLLATE NOCASE", (str(folder.absolute()), name)
                )
        return self.collection(name)

    def drop_collection(self, name: str) -> None:
        """The documents stay. Errors: as `collection`."""
        found = self.collection(name)
        with self._shelf.db.transaction():
            self._shelf.db.run("DELETE FROM collections WHERE id = ?", (found.id,))

    def put_in(self, name: str, documents: Sequence[DocumentId]) -> None:
        found = self.collection(name)
        with self._shelf.db.transaction():
            self._shelf.db.run_many(
                "INSERT OR IGNORE INTO collection_documents VALUES (?, ?)", [(found.id, d) for d in documents]
            )

    def take_out(self, name: str, documents: Sequence[DocumentId]) -> None:
        found = self.collection(name)
        with self._shelf.db.transaction():
            self._shelf.db.run_many(
                "DELETE FROM collection_documents WHERE collection_id = ? AND document_id = ?",
                [(found.id, d) for d in documents],
            )

    def seen_files(self, name: str) -> Mapping[Path, SeenFile]:
        """What was made of the files of a followed folder."""
        rows = self._shelf.db.rows("SELECT * FROM followed_files WHERE collection_id = ?", (self.collection(name).id,))
        seen = (SeenFile(Path(r["path"]), r["size"], r["modified_ns"], r["document_id"], r["error"]) for r in rows)
        return {one.path: one for one in seen}

    def note_file(self, name: str, file: SeenFile) -> None:
        found = self.collection(name)
        with self._shelf.db.transaction():
            self._shelf.db.run(
                "INSERT OR REPLACE INTO followed_files VALUES (?, ?, ?, ?, ?, ?)",
                (found.id, str(file.path), file.size, file.modified_ns, file.document_id, file.error),
            )

    def forget_file(self, name: str, path: Path) -> None:
        found = self.collection(name)
        with self._shelf.db.transaction():
            self._shelf.db.run("DELETE FROM followed_files WHERE collection_id = ? AND path = ?", (found.id, str(path)))

    def _collection(self, row: Mapping[str, object]) -> Collection:
        documents = self._shelf.db.tuples(
            "SELECT document_id FROM collection_documents JOIN documents ON documents.id = document_id"
            " WHERE collection_id = ? AND trashed IS NULL ORDER BY documents.added, documents.id",
            (row["id"],),
        )
        folder = Path(str(row["folder"])) if row["folder"] else None
        return Collection(int(str(row["id"])), str(row["name"]), folder, tuple(DocumentId(d) for (d,) in documents))
