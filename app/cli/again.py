"""`pagekeep index again`: documents that an older version read, or that the reader names, are read anew."""

from __future__ import annotations

from argparse import Namespace

from app.cli.console import Console
from app.cli.session import Session
from rag.sizes import plural


def again(options: Namespace, console: Console, session: Session) -> None:
    """Without names what the window does by itself."""
    library = session.workspace.library
    library.read_again([library.find(name).id for name in options.names])
    done = library.index_words(session.show_import)
    console.clear()
    anew = [library.document(document).name for document in done.read_anew]
    failed = [{"what": error.what, "why": error.why, "next": error.next} for error in done.failed]
    console.result({"indexed": done.words, "read_anew": anew, "failed": failed})
    for error in done.failed:
        console.text(f"{error.what} {error.why} Its text stays as an older version read it. {error.next}")
    if not done.words and not failed:
        same = "They come out as they are." if options.names else "All documents are up to date."
        console.text(same)
    if done.words:
        console.text(f"Words indexed anew: {plural(done.words, 'document')}.")
    for name in anew:
        console.text(f"{name}: its text came out otherwise. Found by meaning again after: pagekeep index vectors")
