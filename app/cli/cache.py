"""`pagekeep cache`: what is kept of what the model has read. Needs no model; the store may be in use meanwhile."""

from __future__ import annotations

import time
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

from app.cli.console import Console
from app.core.conversations import ConversationStore
from app.core.errors import UserError
from app.core.paths import Paths
from app.core.settings import load_settings
from engine.kv.log import read_log
from engine.store.tools import ConversationEntry, StoreTools


def run(options: Namespace, console: Console) -> None:
    paths = Paths.default().create()
    with StoreTools(paths.kv) as tools:
        ACTIONS[options.action](tools, paths, console, options)


def _ls(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    titles = _titles(paths)
    entries = [{"title": titles.get(e.conversation), **asdict(e)} for e in tools.ls()]
    console.result({"conversations": entries})
    for entry in tools.ls():
        console.text(_line(entry, _title(titles, entry.conversation)))
    if not entries:
        console.text("Nothing is kept yet.")


def _line(entry: ConversationEntry, title: str) -> str:
    saved = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.saved))
    tokens = f"{entry.tokens_saved:,} of {entry.tokens:,} tokens"
    size = f"{entry.bytes / 1e6:,.1f} MB ({entry.shared_bytes / 1e6:,.1f} shared)"
    return ", ".join(part for part in (f"{title}  {tokens}", size, saved, entry.model) if part)


def _title(titles: dict[str, str], conversation: str) -> str:
    """Documents that were read ahead have a state of their own, which no conversation owns."""
    name, _, document = conversation.partition(":")
    return f"(document {document})" if name == "document" else titles.get(conversation, "(deleted conversation)")


def _named(paths: Paths, wanted: str) -> str:
    """The conversation whose id or title is given."""
    titles = _titles(paths)
    by_title = [name for name, title in titles.items() if title == wanted]
    return wanted if wanted in titles or not by_title else by_title[0]


def _titles(paths: Paths) -> dict[str, str]:
    if not paths.conversations.is_file():
        return {}
    store = ConversationStore(paths.conversations)
    try:
        return {c.id: c.title for c in (*store.list(), *store.list(trashed=True))}
    finally:
        store.close()


def _stat(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    settings, _ = load_settings(paths.settings)
    data = {**asdict(tools.stat()), "budget_bytes": settings.engine.disk_budget_bytes}
    console.result(data)
    for key, value in data.items():
        console.text(f"{key}: {value:,}" if isinstance(value, int) else f"{key}: {value}")


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
    console.text(", ".join(f"{key}: {value}" for key, value in collected.items()))


def _show(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    entry = tools.show(_named(paths, options.conversation))
    console.result(asdict(entry))
    saved = f"{entry.tokens_saved:,} of {entry.tokens:,} tokens, {entry.bytes / 1e6:,.1f} MB"
    console.text(f"{_title(_titles(paths), entry.conversation)}  {saved}, {entry.model}")
    for page in entry.pages:
        kind = "tail" if page.tail else "page"
        shared = f", shared with {page.users}" if page.users else ""
        place = f"{page.segment}:{page.offset}"
        console.text(f"  {page.start:>8,} {kind} of {page.tokens} tokens, {page.bytes:,} bytes, {place}{shared}")


def _diff(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    found = tools.diff(_named(paths, options.first), _named(paths, options.second))
    console.result(asdict(found))
    console.text(f"{found.shared_tokens:,} tokens in common, {found.shared_bytes / 1e6:,.1f} MB of pages kept once")
    if found.position < 0:
        console.text(found.why)
    else:
        console.text(f"at {found.position:,}: token {found.first_token} and token {found.second_token} ({found.why})")


def _log(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    name = _named(paths, options.conversation) if options.conversation else ""
    entries = read_log(paths.kv, options.last, options.level, name)
    console.result({"entries": entries})
    titles = _titles(paths)
    for entry in entries:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry["at"]))
        rest = [f"{key} {value}" for key, value in entry.items() if key not in _SHOWN_APART]
        who = [_title(titles, entry["conversation"])] if entry.get("conversation") else []
        console.text("  ".join([when, entry["operation"], *who, ", ".join(rest)]))


def _export(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    moved = tools.export_state(_named(paths, options.conversation), Path(options.file))
    console.result(asdict(moved))
    console.text(f"{moved.tokens:,} tokens in {moved.bytes / 1e6:,.1f} MB: {options.file}")


def _import(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    moved = tools.import_state(Path(options.file))
    console.result(asdict(moved))
    console.text(f"{moved.tokens:,} tokens, {moved.new} of {moved.records} records were new")


def _pin(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    name = _named(paths, options.conversation)
    if not tools.pin(name, not options.off):
        what = f"Nothing is kept of {options.conversation!r}."
        raise UserError("There is no such conversation.", what, "See 'cache ls'.")
    console.result({"conversation": name, "pinned": not options.off})
    console.text("It may be evicted again." if options.off else "It stays, whatever the budget.")


_SHOWN_APART = {"at", "operation", "conversation", "process", "level"}
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
