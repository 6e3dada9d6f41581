"""`pagekeep index collect|collections|scan`: documents under a name, by hand or from a folder."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.cli.console import Console
from app.cli.session import Session
from app.core.events import ImportCancelled, ImportDone, ImportFailed
from rag.sizes import plural

if TYPE_CHECKING:
    from rag.collections import Collection


def collect(options: Namespace, console: Console, session: Session) -> None:
    library = session.workspace.library
    if options.remove and not options.files:
        library.drop_collection(options.name)
    elif options.remove:
        library.take_out(options.name, [library.find(name).id for name in options.files])
    else:
        documents = [session.document(name).id for name in options.files]  # before anything is made
        if options.follow:
            session.workspace.folders.follow(Path(options.follow), options.name)
        name = library.make_collection(options.name).name
        library.put_in(name, documents)
        if options.follow:
            _scan(session)
    list_collections(options, console, session)


def scan(options: Namespace, console: Console, session: Session) -> None:
    _scan(session)
    list_collections(options, console, session)


def _scan(session: Session) -> None:
    """Waits for what is new and tells what failed; files that were changed a moment ago are taken as they are."""
    waiting = set(session.workspace.folders.scan(settled_s=0.0))
    failures = []
    events = session.events()
    while waiting:
        event = next(events)
        if isinstance(event, ImportDone | ImportFailed | ImportCancelled):
            waiting.discard(event.job)
        if isinstance(event, ImportFailed):
            failures.append(event)
    session.console.clear()
    for failed in failures:
        session.console.note(f"{failed.path.name}: {failed.error.what} {failed.error.why}")


def list_collections(options: Namespace, console: Console, session: Session) -> None:
    library = session.workspace.library
    found = library.collections()
    names = {document.id: document.name for document in library.documents()}
    console.result({"collections": [_json(one, names) for one in found]})
    for one in found:
        followed = f", follows {one.folder}" if one.folder else ""
        console.text(f"{one.name}  {plural(len(one.documents), 'document')}{followed}")
    if not found:
        console.text("No collections yet: 'pagekeep index collect NAME FILE'.")


def _json(collection: Collection, names: dict[Any, str]) -> dict[str, Any]:
    documents = [names[d] for d in collection.documents if d in names]
    folder = str(collection.folder) if collection.folder else None
    return {"collection": collection.name, "folder": folder, "documents": documents}
