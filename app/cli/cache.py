"""`pagekeep cache`: what is kept of what the model has read. Needs no model; the store may be in use meanwhile."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from app.cli import cache_budget
from app.cli.cache_names import Named, Names, names_of, nothing_kept
from app.cli.cache_text import (
    Collected,
    collected_line,
    conversation_lines,
    difference_lines,
    page_lines,
    pinned_lines,
    refused_lines,
    stat_lines,
    unclaimed_lines,
    verify_lines,
    with_status,
)
from app.cli.console import Console
from app.cli.notices import of_command
from app.core.conversations import ConversationStore
from app.core.errors import UserError
from app.core.exchanges import in_prompt
from app.core.explain import Decoder, explained
from app.core.imported import forget_imported, note_imported
from app.core.log_words import log_time, log_words
from app.core.paths import Paths
from app.core.records import Difference
from app.core.settings import load_settings
from engine.kv.log import read_log
from engine.messages import ConversationId, FirstDifference
from engine.store.inspect import StateDifference
from engine.store.listing import ConversationEntry
from engine.store.tools import StoreTools
from rag.sizes import plural, size_text


def run(options: Namespace, console: Console) -> int | None:
    """The exit status: None, or 1 where `verify` found damage or that files are gone."""
    paths = Paths.default().create()
    settings, _ = load_settings(paths.settings)
    with StoreTools(paths.kv, settings.engine.cache_log) as tools:
        status = ACTIONS[options.action](tools, paths, console, options)
        for notice in tools.notices:
            console.note(f"{notice.what} {notice.why} {of_command(notice.next)}")
        return status


def _ls(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    found, besides, names = tools.ls(), tools.unclaimed(), names_of(paths, tools)
    named = [names.of(entry.conversation) for entry in found]
    kept = [_entry_json(e, n) for e, n in zip(found, named, strict=True)]
    refused = [(state, names.of(state), gone) for state, gone in tools.refused().items()]
    refused = [one for one in refused if one[1].status != "deleted"]
    ends = [{"conversation": state, **asdict(name), **asdict(gone)} for state, name, gone in refused]
    console.result({"conversations": kept, "unclaimed": [asdict(entry) for entry in besides], "refused": ends})
    lines = [*conversation_lines(list(zip(found, named, strict=True))), *unclaimed_lines(besides)]
    for line in [*(lines or [nothing_kept(paths.kv)]), *refused_lines([(name, gone) for _, name, gone in refused])]:
        console.text(line)


def _entry_json(entry: ConversationEntry, named: Named) -> dict[str, Any]:
    """`title`: of conversations only; `name`: what other commands take."""
    title = named.name if named.status in ("conversation", "in the trash") else None
    return {"title": title, "name": named.name, "status": named.status, **asdict(entry)}


def _rm(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    """All names are looked up before the first goes. Texts stay; what others use stays too."""
    names = names_of(paths, tools)
    wanted = list(dict.fromkeys(map(names.need_kept, options.names)))
    if not options.force:
        _check_not_pinned(tools, names, wanted)
    removed = []
    for state in wanted:
        done, named = tools.forget(state), names.of(state)
        forget_imported(paths.cache, state)
        removed.append({"conversation": state, "name": named.name, "status": named.status, **asdict(done)})
        stays = "Its text stays" if named.status in ("conversation", "in the trash") else "It is gone"
        console.text(f"“{named.name}”: {size_text(done.bytes)} removed. {stays}; what others use too is still kept.")
    console.result({"removed": removed})


def _check_not_pinned(tools: StoreTools, names: Names, wanted: Sequence[str]) -> None:
    pinned = {entry.conversation for entry in tools.ls() if entry.pinned}
    for state in wanted:
        if state in pinned:
            name = names.of(state).name
            next = f"Unpin it: pagekeep cache pin '{name}' --off; or remove it all the same: --force"
            raise UserError(f"“{name}” is pinned.", "What is kept of it was to stay. Nothing was removed.", next)


def _stat(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    settings, _ = load_settings(paths.settings)
    found, budget = tools.stat(), settings.engine.disk_budget_bytes
    console.result({**asdict(found), "budget_bytes": budget})
    for line in stat_lines(found, budget):
        console.text(line)


def _verify(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> int:
    """Damaged pages are taken out: they will be read again, from the stored ids."""
    found = tools.verify(
        drop_damaged=True, on_progress=lambda done, total: console.progress(f"Checking: {done:,} of {total:,} records")
    )
    console.clear()
    console.result(asdict(found))
    for line in verify_lines(found, names_of(paths, tools)):
        console.text(line)
    return 1 if found.damaged or found.lost else 0


def _gc(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    settings, _ = load_settings(paths.settings)
    budget = settings.engine.disk_budget_bytes
    collected, found = asdict(tools.gc(budget)), tools.stat()
    console.result({**collected, "budget_bytes": budget, "pinned_bytes": found.pinned_bytes})
    console.text(collected_line(Collected(**collected)))
    for line in pinned_lines(found, budget):
        console.text(line)


def _show(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    names = names_of(paths, tools)
    entry = tools.show(names.need_kept(options.conversation))
    named = names.of(entry.conversation)
    console.result({"name": named.name, "status": named.status, **asdict(entry)})
    saved = f"{entry.tokens_saved:,} of {entry.tokens:,} tokens, {size_text(entry.bytes)}"
    of = f"{entry.model}, KV type {entry.kv_type}" if entry.kv_type else entry.model
    console.text(f"{with_status(named)}  {saved}, {of}")
    for other in tools.ls():
        if other.conversation == entry.conversation and other.fingerprint != entry.fingerprint:
            kept = f"{other.tokens_saved:,} of {other.tokens:,} tokens, {size_text(other.bytes)}"
            console.text(f"  Kept besides: {kept}, {other.model}, KV type {other.kv_type or '?'}")
    for line in page_lines(entry.pages):
        console.text(f"  {line}")


def _diff(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    names = names_of(paths, tools)
    first, second = names.need_kept(options.first), names.need_kept(options.second)
    found = tools.diff(first, second)
    same = found.position < 0 and found.first_tokens == found.second_tokens == found.shared_tokens
    words = _in_words(paths, first, found, found.model)
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
        return explained(part, in_prompt(messages), decoder)
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
    names = names_of(paths, tools)
    name = _logged(names, paths, options.conversation) if options.conversation else ""
    entries = read_log(paths.kv, options.last, options.level, name)
    console.result({"entries": entries})
    for entry in entries:
        who = f"{names.of(entry['conversation']).name}: " if entry.get("conversation") else ""
        console.text(f"{log_time(entry)}  {who}{log_words(entry)}")
    if not entries:
        console.text("Nothing was done yet.")


def _logged(names: Names, paths: Paths, wanted: str) -> str:
    """What was removed for good is still in the log, under its id."""
    if names.find(wanted) is None and read_log(paths.kv, 1, "debug", wanted):
        return wanted
    return names.need(wanted)


def _export(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    moved = tools.export_state(names_of(paths, tools).need_kept(options.conversation), Path(options.file))
    console.result(asdict(moved))
    console.text(f"{plural(moved.tokens, 'token')} in {size_text(moved.bytes)}: {options.file}")


def _import(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    moved, name = tools.import_state(Path(options.file)), Path(options.file).stem
    names = names_of(paths, tools)
    named = names.of(moved.conversation)
    here = named.name if named.status in ("conversation", "in the trash") else None
    if here is None:
        note_imported(paths.cache, moved.conversation, name, names.kept)
    console.result({**asdict(moved), "name": here or name})
    console.text(f"{plural(moved.tokens, 'token')}; new: {moved.new:,} of {plural(moved.records, 'record')}")
    if here is None:
        console.text(f"Kept as “{name}”; what begins with the same tokens (its documents) is not read again.")


def _pin(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    name = names_of(paths, tools).need_kept(options.conversation)
    tools.pin(name, not options.off)
    console.result({"conversation": name, "pinned": not options.off})
    console.text("It may be evicted again." if options.off else "It stays, whatever the budget.")


ACTIONS = {
    "budget": cache_budget.run,
    "ls": _ls,
    "rm": _rm,
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
