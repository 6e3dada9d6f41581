"""`pagekeep cache`: what is kept of what the model has read. Needs no model; the store may be in use meanwhile."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from app.cli.cache_text import (
    Collected,
    collected_line,
    conversation_lines,
    difference_lines,
    megabytes,
    page_lines,
    stat_lines,
)
from app.cli.console import Console
from app.core.conversations import ConversationStore
from app.core.errors import UserError
from app.core.explain import Decoder, explained
from app.core.imported import imported_names, note_imported
from app.core.kept import documents_of
from app.core.log_words import log_time, log_words
from app.core.naming import conversation_called
from app.core.paths import Paths
from app.core.records import Conversation, Difference
from app.core.settings import load_settings
from engine.kv.log import read_log
from engine.messages import ConversationId, FirstDifference
from engine.store.inspect import StateDifference
from engine.store.tools import StoreTools


def run(options: Namespace, console: Console) -> None:
    paths = Paths.default().create()
    with StoreTools(paths.kv) as tools:
        ACTIONS[options.action](tools, paths, console, options)


def _ls(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    found = tools.ls()
    titles = _titles(paths, [entry.conversation for entry in found])
    console.result({"conversations": [{"title": titles.get(e.conversation), **asdict(e)} for e in found]})
    for line in conversation_lines(found, {e.conversation: _title(titles, e.conversation) for e in found}):
        console.text(line)


def _title(titles: dict[str, str], conversation: str) -> str:
    return titles.get(conversation, "(deleted conversation)")


def _named(paths: Paths, wanted: str, kept: Iterable[str] = ()) -> str:
    """The conversation whose id or title is given, or what was imported under that name; `kept`: names among which a
    document read ahead may be."""
    titles = _titles(paths, kept)
    by_title = [name for name, title in titles.items() if title == wanted and documents_of(name)]
    by_title += [state for state, name in imported_names(paths.cache).items() if name == wanted]
    found = _conversation(paths, wanted)
    return found.id if found else by_title[0] if by_title else wanted


def _kept(tools: StoreTools, paths: Paths, wanted: str) -> str:
    """The name under which something is kept. Raises UserError: unknown, ambiguous, or nothing is kept."""
    kept = tools.names()
    name = _named(paths, wanted, kept)
    if name in kept:
        return name
    titles = _conversations(paths)
    if name in titles:
        why = "The model has read nothing for it yet, or its state was evicted or removed."
        raise UserError(f"Nothing is kept of {titles[name]!r}.", why, "Ask something in it; it is kept from then on.")
    raise UserError("There is no such conversation.", f"None is called {wanted!r}.", "See 'pagekeep cache ls'.")


def _titles(paths: Paths, kept: Iterable[str] = ()) -> dict[str, str]:
    """Of conversations, of imported states, and of those of `kept` that are documents read ahead: such have a state of
    their own."""
    ahead = {state: documents for state in kept if (documents := documents_of(state))}
    names = document_names(paths) if ahead else {}
    shown = {
        state: ", ".join(names.get(document, f"document {document}, deleted") for document in documents)
        for state, documents in ahead.items()
    }
    imported = {state: f"{name} (imported, no conversation)" for state, name in imported_names(paths.cache).items()}
    return {**imported, **_conversations(paths), **{state: f"{name} (read ahead)" for state, name in shown.items()}}


def document_names(paths: Paths) -> dict[int, str]:
    """Names of all documents, the trash included."""
    from rag import Library

    if not paths.library.is_dir():
        return {}
    library = Library(paths.library)
    try:
        return {int(document.id): document.name for document in library.documents(include_trashed=True)}
    finally:
        library.close()


def _conversation(paths: Paths, wanted: str) -> Conversation | None:
    """Those in the trash come after the others."""
    present, trashed = _stored(paths)
    return conversation_called(present, wanted) or conversation_called(trashed, wanted)


def _conversations(paths: Paths) -> dict[str, str]:
    present, trashed = _stored(paths)
    return {c.id: c.title for c in (*present, *trashed)}


def _stored(paths: Paths) -> tuple[tuple[Conversation, ...], tuple[Conversation, ...]]:
    """Conversations, and those in the trash."""
    if not paths.conversations.is_file():
        return (), ()
    store = ConversationStore(paths.conversations)
    try:
        return store.list(), store.list(trashed=True)
    finally:
        store.close()


def _stat(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    settings, _ = load_settings(paths.settings)
    found, budget = tools.stat(), settings.engine.disk_budget_bytes
    console.result({**asdict(found), "budget_bytes": budget})
    for line in stat_lines(found, budget):
        console.text(line)


def _verify(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    """Damaged pages are taken out: they will be read again, from the stored ids."""
    found = tools.verify(
        drop_damaged=True, on_progress=lambda done, total: console.progress(f"{done:,} of {total:,} records")
    )
    console.clear()
    console.result({"records": found.records, "bytes": found.bytes, "damaged": [asdict(d) for d in found.damaged]})
    console.text(f"{found.records:,} records, {found.bytes / 1e6:,.1f} MB, {len(found.damaged)} damaged")
    for damage in found.damaged:
        console.text(f"  tokens {damage.start:,} to {damage.start + damage.tokens:,}: {damage.why}")


def _gc(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    settings, _ = load_settings(paths.settings)
    collected = asdict(tools.gc(settings.engine.disk_budget_bytes))
    console.result(collected)
    console.text(collected_line(Collected(**collected)))


def _show(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    entry = tools.show(_kept(tools, paths, options.conversation))
    console.result(asdict(entry))
    saved = f"{entry.tokens_saved:,} of {entry.tokens:,} tokens, {megabytes(entry.bytes)}"
    console.text(f"{_title(_titles(paths, [entry.conversation]), entry.conversation)}  {saved}, {entry.model}")
    for line in page_lines(entry.pages):
        console.text(f"  {line}")


def _diff(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    first, second = _kept(tools, paths, options.first), _kept(tools, paths, options.second)
    found, one, two = tools.diff(first, second), tools.show(first), tools.show(second)
    same = found.position < 0 and one.tokens == two.tokens == found.shared_tokens
    words = _in_words(paths, first, found, one.model)
    console.result({**asdict(found), "same": same, "difference": asdict(words) if words else None})
    for line in difference_lines(found, same, words):
        console.text(line)


def _in_words(paths: Paths, first: str, found: StateDifference, model: str) -> Difference | None:
    """Where they part as message and text; None where the model's file or the conversation is not at hand."""
    decoder = _decoder(paths, model) if found.position >= 0 else None
    if decoder is None or not paths.conversations.is_file():
        return None
    part = FirstDifference(found.position, found.first_token, found.second_token, 0, 0)
    store = ConversationStore(paths.conversations)
    try:
        messages = store.messages(ConversationId(first))
        return explained(part, [message for message in messages if message.in_context], decoder)
    finally:
        store.close()


def _decoder(paths: Paths, model: str) -> Decoder | None:
    """The tokenizer of the chosen model, when it is the one that the state is of."""
    from engine.gguf import GgufFile
    from engine.models.families import spec_from_gguf
    from engine.tokenizer import Tokenizer

    chosen = load_settings(paths.settings)[0].model
    if chosen is None or not chosen.is_file():
        return None
    with GgufFile.open(chosen) as file:
        return Tokenizer.from_gguf(file) if spec_from_gguf(file).name == model else None


def _log(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    name = _named(paths, options.conversation) if options.conversation else ""
    entries = read_log(paths.kv, options.last, options.level, name)
    console.result({"entries": entries})
    titles = _titles(paths, {str(entry.get("conversation", "")) for entry in entries})
    for entry in entries:
        who = f"{_title(titles, entry['conversation'])}: " if entry.get("conversation") else ""
        console.text(f"{log_time(entry)}  {who}{log_words(entry)}")
    if not entries:
        console.text("Nothing was done yet.")


def _export(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    moved = tools.export_state(_kept(tools, paths, options.conversation), Path(options.file))
    console.result(asdict(moved))
    console.text(f"{moved.tokens:,} tokens in {moved.bytes / 1e6:,.1f} MB: {options.file}")


def _import(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    moved, name = tools.import_state(Path(options.file)), Path(options.file).stem
    here = _conversations(paths).get(moved.conversation)
    if here is None:
        note_imported(paths.cache, moved.conversation, name, tools.names())
    console.result({**asdict(moved), "name": here or name})
    console.text(f"{moved.tokens:,} tokens, {moved.new} of {moved.records} records were new")
    if here is None:
        console.text(f"Kept as “{name}”; what begins with the same tokens (its documents) is not read again.")


def _pin(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    name = _kept(tools, paths, options.conversation)
    tools.pin(name, not options.off)
    console.result({"conversation": name, "pinned": not options.off})
    console.text("It may be evicted again." if options.off else "It stays, whatever the budget.")


ACTIONS = {
    "ls": _ls,
    "show": _show,
    "diff": _diff,
    "log": _log,
    "stat": _stat,
    "verify": _verify,
    "gc": _gc,
    "pin": _pin,
    "export": _export,
    "import": _import,
}
