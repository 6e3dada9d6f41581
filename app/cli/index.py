"""`pagekeep index`: documents in the library, what could be read of them, and search."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from app.cli.again import again
from app.cli.collections import collect, list_collections, scan
from app.cli.console import Console
from app.cli.document_lines import about_lines, letter_lines, not_taken, state_words, taken_words
from app.cli.embedder import model
from app.cli.evaluate_answers import evaluate_answers, greedy
from app.cli.session import Session, open_session, stored_settings
from app.cli.vectors import make_vectors, vectors
from app.core.errors import EXIT_ERROR, UserError
from app.core.lookups import FoundPassage, Scope
from app.core.settings import Settings
from rag import Library
from rag.metadata import data_words
from rag.sizes import plural
from rag.types import Document, PageReport


def run(options: Namespace, console: Console) -> int | None:
    """The exit status; None: all went well."""
    with open_session(console, _settings(options)) as session:
        return ACTIONS[options.action](options, console, session)


def _settings(options: Namespace) -> Settings | None:
    """None: the stored ones."""
    if options.action == "evaluate" and options.answers:
        return stored_settings(lambda settings: greedy(settings, options.max_tokens))
    return None


def _add(options: Namespace, console: Console, session: Session) -> int:
    """Of several files those that can be taken are; what is wrong with the others is told at once and at the end."""
    documents, failed = _taken(options, session)
    if documents and not options.words_only:
        make_vectors(session, [document.id for document in documents])
    library = session.workspace.library
    documents = [library.document(document.id) for document in documents]
    notices = [{"what": n.what, "why": n.why, "next": n.next} for n in session.notices]
    failures = {"failed": [{"file": file, **error.to_json()} for file, error in failed]} if failed else {}
    console.result({"documents": [document_json(d) for d in documents], **failures, "notices": notices})
    _print(console, documents, library, letters=True)
    if not console.as_json:
        for file, error in failed:
            console.note(not_taken(file, error))
    return EXIT_ERROR if failed else 0


def _taken(options: Namespace, session: Session) -> tuple[list[Document], list[tuple[str, UserError]]]:
    """Documents, and files that failed. Raises the UserError of the only file."""
    documents, failed = [], []
    for file in options.files:
        try:
            document = session.import_file(Path(file), options.password)
            if not options.words_only or len(options.files) > 1:
                session.console.note(taken_words(document))
            documents += [document] if document.id not in {one.id for one in documents} else []
            _tell_other_name(session, Path(file), document)
        except UserError as error:
            if len(options.files) == 1:
                raise
            session.console.note(not_taken(file, error))
            failed.append((file, error))
    session.console.clear()
    return documents, failed


def _tell_other_name(session: Session, file: Path, document: Document) -> None:
    if file.name != document.name and file.name != document.path.name:
        what = f"{file.name} is the same file as {document.name}."
        session.notice(what, "The library has its content once.", "It is found by either name.")


def _remove(options: Namespace, console: Console, session: Session) -> None:
    """All names are looked up before the first document goes."""
    documents = [session.workspace.library.find(name) for name in options.names]
    for document in documents:
        session.workspace.documents.trash(int(document.id))
    console.result({"removed": [document.name for document in documents]})
    for document in documents:
        console.text(f"{document.name} is in the trash. Back again: pagekeep trash restore '{document.name}'")


def _ls(options: Namespace, console: Console, session: Session) -> None:
    library = session.workspace.library
    documents = library.in_collection(options.collection) if options.collection else library.documents()
    console.result({"documents": [document_json(document) for document in documents]})
    _print(console, documents, library)
    if not documents:
        console.text("No documents yet: 'pagekeep index add FILE'.")


def _report(options: Namespace, console: Console, session: Session) -> None:
    report = session.workspace.library.report(session.document(options.file).id)
    pages = [page_json(page) for page in report.pages]
    console.result({**document_json(report.document), "note": report.note, "pages": pages})
    console.text(f"{report.document.name}: {plural(report.document.pages, 'page')}")
    said = f"    {data_words(report.document)}" if report.document.metadata else ""
    for line in (*about_lines(replace(report.document, note=report.note)), *letter_lines(report), said):
        if line:
            console.text(line)
    console.text(f"{'page':>5}  {'label':>6}  {'class':<8} {'letters':>7}")
    for page in report.pages:
        reason = f"  {page.reason}" if page.reason else ""
        console.text(f"{page.page_index + 1:>5}  {page.label:>6}  {page.kind:<8} {page.characters:>7,}{reason}")


def _ocr(options: Namespace, console: Console, session: Session) -> None:
    """Reads a document's scanned pages; from then on they are searched and cited like the others."""
    document = session.document(options.file)
    pages = _scanned(session, document, options.pages) if options.pages else None
    library, nothing = session.workspace.library, pages is None and not document.unreadable_pages
    document = library.recognise(document.id, pages, session.show_import)
    console.clear()
    console.result({"documents": [document_json(document)]})
    if nothing:
        console.text("There is nothing to recognise: each page can be read as it is.")
    _print(console, [document], library)


def _scanned(session: Session, document: Document, pages: str) -> list[int]:
    """Those of the pages that cannot be read as they are."""
    wanted = session.workspace.scopes.by_pages(int(document.id), pages)
    found = [page for page in wanted.pages if page in document.unreadable_pages]
    if not found:
        raise UserError(
            "There is nothing to recognise.",
            f"{wanted.label[:1].upper()}{wanted.label[1:]} of {document.name} can be read already.",
            "'pagekeep index report FILE' shows what each page is.",
        )
    return found


def _search(options: Namespace, console: Console, session: Session) -> None:
    """What the Search tab shows: pages, scores, why."""
    library = session.workspace.library
    chosen = [library.find(name) for name in options.document] if options.document else library.documents()
    ids = [int(document.id) for document in chosen]
    lookup = session.workspace.search(options.text, ids, _scope(options, session, ids), options.top)
    hits = [hit_json(hit, library) for hit in lookup.passages]
    console.result({"scope": lookup.scope, "by_meaning": lookup.by_meaning, "hits": hits})
    if lookup.scope:
        console.text(f"In {lookup.scope}:")
    for hit in lookup.passages:
        scores = f"words {hit.words:.2f}, meaning {hit.vectors:.2f}" if lookup.by_meaning else f"words {hit.words:.2f}"
        console.text(f"{hit.score:7.3f}  {hit.document}, page {hit.page_label}  ({scores})")
        console.text("         " + _beginning(hit.text))
    if not lookup.passages:
        console.text(_nothing(options.text, chosen))


def _beginning(text: str, most: int = 300) -> str:
    """Cut between words, where there are spaces."""
    if len(text) <= most:
        return text
    end = text.rfind(" ", most - 60, most + 1)
    return text[: end if end > 0 else most].rstrip() + " …"


def _nothing(text: str, documents: Sequence[Document]) -> str:
    """Why nothing was found, where it is not for the words."""
    if not text.strip():
        return "Nothing to search for: the text is empty."
    if not documents:
        return "The library is empty: 'pagekeep index add FILE'."
    if not any(document.characters for document in documents):
        return "There is no text to search: 'pagekeep index report FILE' shows what each page is."
    return "Nothing found."


def _scope(options: Namespace, session: Session, documents: Sequence[int]) -> Scope | None:
    if options.collection:
        name = session.workspace.library.collection(options.collection).name
        return Scope(name, collection=name)
    if not options.pages and not options.chapter:
        return None
    if len(documents) != 1:
        raise UserError(
            "It is not clear which document is meant.",
            "Pages and chapters belong to one document.",
            "Name it with --document.",
        )
    scopes = session.workspace.scopes
    by_pages = options.pages is not None
    return (
        scopes.by_pages(documents[0], options.pages) if by_pages else scopes.by_chapter(documents[0], options.chapter)
    )


def _evaluate(options: Namespace, console: Console, session: Session) -> None:
    """Recall by page over a set of questions about documents of the library; or answers and their citations."""
    if options.answers:
        evaluate_answers(options, console, session)
        return
    from rag.evaluate import evaluate, read_questions

    library = session.workspace.library
    questions = read_questions(Path(options.set))
    names = {question.pdf for question in questions}
    missing = [name for name in sorted(names) if not library.find(name).embedded]
    vectors = "never" if missing or options.words_only else "wait"
    if missing and not options.words_only:
        console.note(
            f"Words only: {len(missing):,} of {plural(len(names), 'document')} cannot be found by meaning yet"
            " (pagekeep index vectors)."
        )
    recalls = evaluate(library, questions, options.alone, vectors)  # type: ignore[arg-type]
    console.result({"vectors": vectors == "wait", "recall": [asdict(recall) for recall in recalls]})
    console.text("                       @1     @5    @10    MRR     ms  (95 % intervals)")
    for r in recalls:
        ranges = "  ".join(
            f"{low:.2f}-{high:.2f}" for low, high in (r.at_1_interval, r.at_5_interval, r.at_10_interval)
        )
        console.text(
            f"{r.kind:<12} {r.questions:>5}  {r.at_1:.3f}  {r.at_5:.3f}  {r.at_10:.3f}  {r.mrr:.3f}"
            f"  {r.query_ms:5.0f}  {ranges}"
        )


def document_json(document: Document) -> dict[str, Any]:
    return {
        "document": document.name,
        "id": int(document.id),
        "sha256": document.sha256,
        "page_count": document.pages,
        "characters": document.characters,
        "state": document.state,
        "embedded": document.embedded,
        "added": document.added,
        "unreadable_pages": list(document.unreadable_pages),
        "other_names": list(document.other_names),
        "note": document.note,
        "metadata": dict(document.metadata),
    }


def page_json(page: PageReport) -> dict[str, Any]:
    return {
        "page_index": page.page_index,
        "page_label": page.label,
        "class": page.kind,
        "characters": page.characters,
        "reason": page.reason,
    }


def hit_json(hit: FoundPassage, library: Library) -> dict[str, Any]:
    """`text`: the whole passage, where the look-up keeps only its beginning."""
    span = hit.ranges[0]
    return {
        "document": hit.document,
        "page_index": hit.page_index,
        "page_label": hit.page_label,
        "pages": [part.page_index for part in hit.ranges],
        "score": hit.score,
        "text": library.passage(hit.passage_id).text,
        "char_start": span.char_start,
        "char_count": span.char_count,
        "why": {"words": hit.words, "vectors": hit.vectors},
    }


def _print(console: Console, documents: list[Document], library: Library, letters: bool = False) -> None:
    """`letters`: tells of missing ones too."""
    for d in documents:
        unread = f", {plural(len(d.unreadable_pages), 'page')} not readable" if d.unreadable_pages else ""
        console.text(f"{d.name}  {plural(d.pages, 'page')}, {state_words(d, library.is_being_read(d))}{unread}")
        lines = [*about_lines(d), *(letter_lines(library.report(d.id)) if letters else ())]
        for line in lines:
            console.text(line)


ACTIONS = {
    "add": _add,
    "remove": _remove,
    "ls": _ls,
    "report": _report,
    "ocr": _ocr,
    "again": again,
    "vectors": vectors,
    "search": _search,
    "evaluate": _evaluate,
    "collect": collect,
    "collections": list_collections,
    "scan": scan,
    "model": model,
}
