"""Vectors, by which passages are found by meaning: all that are missing; after an answer, those of its documents."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from app.cli.console import Console
from app.cli.session import Session
from app.cli.vector_lines import VectorLines
from app.core.errors import UserError, as_user_error
from app.core.starter import EMBEDDER
from rag.errors import IntakeCancelled
from rag.sizes import plural, size_text

if TYPE_CHECKING:
    from rag.types import Document, DocumentId

AFTER_ANSWER_S = 20.0  # some 200 pages on two cores; what is left over goes on after the next answer


def vectors(options: Namespace, console: Console, session: Session) -> None:
    """`pagekeep index vectors`."""
    make_vectors(session, ())
    documents = session.workspace.library.documents()
    made = sum(document.embedded for document in documents)
    notices = [{"what": n.what, "why": n.why, "next": n.next} for n in session.notices]
    console.result({"embedded": made, "documents": len(documents), "notices": notices})
    console.text(f"Found by meaning: {made:,} of {plural(len(documents), 'document')}.")


def make_vectors(session: Session, first: Sequence[DocumentId]) -> None:
    """Those of `first` before all others that are missing. Fetches the embedder; without it the documents are searched
    by words."""
    console = session.console
    try:
        session.workspace.documents.fetch_embedder(
            lambda done, total: console.progress(f"Downloading the embedder: {size_text(done)}")
        )
    except UserError as error:
        session.notice(f"Documents are searched by words only for now: {error.what}", error.why, error.next)
        return
    library = session.workspace.library
    others = sum(not (document.embedded or document.id in first) for document in library.documents())
    if first and others:
        session.notice(
            f"Vectors of {plural(others, 'other document')} are made behind these.",
            "They were not finished before.",
            "Stopping (Ctrl-C) loses nothing: they go on next time.",
        )
    left = sum(not document.embedded for document in library.documents())
    lines = VectorLines(console, library.windows_without_vectors(), left, session.show_import)
    library.embed_missing(lines, first=first)
    console.clear()


def after_answer(session: Session, documents: Sequence[DocumentId], *, told: bool) -> None:
    """The answer stands already, so later questions may cost a little: vectors of its documents, for a bounded time.

    `told`: also that they cannot be made, because their model is not there; it is not fetched unasked.
    """
    library, console = session.workspace.library, session.console
    missing = [document for document in map(library.document, documents) if not document.embedded]
    if not missing:
        return
    if library.embedder is None:
        if told:
            console.note(words_only(missing))
        return
    end = time.monotonic() + AFTER_ANSWER_S
    try:
        shown = partial(session.show_import, more=" (the answer is complete; Ctrl-C leaves this for later)")
        library.embed([document.id for document in missing], shown, lambda: time.monotonic() > end)
    except (IntakeCancelled, KeyboardInterrupt):
        left = [document for document in missing if not library.document(document.id).embedded]
        if left:
            console.note(unfinished(left))
    except Exception as error:  # it must not take the answer's place
        told_error = as_user_error(error)
        console.note(f"Not found by meaning: {told_error.what} {told_error.why} {told_error.next}".rstrip())
    console.clear()


def words_only(missing: Sequence[Document]) -> str:
    which = f"{missing[0].name} is" if len(missing) == 1 else f"{plural(len(missing), 'document')} are"
    fetched = f"fetches a model of {size_text(EMBEDDER.download_bytes)} once"
    return f"{which} found by words only. To find by meaning too: pagekeep index vectors ({fetched})"


def unfinished(left: Sequence[Document]) -> str:
    which = f"{left[0].name} is" if len(left) == 1 else f"{plural(len(left), 'document')} are"
    return f"{which} not yet found by meaning. This goes on after the next answer, or now: pagekeep index vectors"
