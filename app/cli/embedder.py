"""`pagekeep index model`: which model finds by meaning."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from app.cli.console import Console
from app.cli.session import Session
from app.core.embedding import is_embedder, make_vectors_beside, usable_embedder
from app.core.starter import embedder_path
from rag.sizes import plural

DEFAULT = "default"


def model(options: Namespace, console: Console, session: Session) -> None:
    """Tells the model in use; given another, makes all vectors with it and then uses it from there on."""
    if options.folder is not None:
        chosen = None if options.folder == DEFAULT else Path(options.folder).expanduser().resolve()
        _switch(chosen, session)
    chosen, documents = session.workspace.settings.embedder, session.workspace.library.documents()
    name, made = DEFAULT if chosen is None else str(chosen), sum(document.embedded for document in documents)
    console.result(
        {"embedder": name, "documents": len(documents), "embedded": made, "switched": options.folder is not None}
    )
    console.text(f"Found by meaning: {made:,} of {plural(len(documents), 'document')}, with: {name}")
    if made < len(documents):
        console.text("The others are found by words only, until: pagekeep index vectors")
    if options.folder is not None:
        console.text("A window that is open uses it from its next search on.")


def _switch(chosen: Path | None, session: Session) -> None:
    """The setting changes last: whatever stops this before, the search stays as it was."""
    workspace, console = session.workspace, session.console
    if chosen is not None or _default_is_there(workspace.paths.embedder):
        embedder = usable_embedder(chosen or embedder_path(workspace.paths.embedder))
        make_vectors_beside(workspace.paths.library, embedder, session.show_import, lambda: False)
        console.clear()
    workspace.update_settings(embedder=chosen)


def _default_is_there(folder: Path) -> bool:
    """Else the next import fetches it, and makes the vectors that are missing."""
    return is_embedder(embedder_path(folder))
