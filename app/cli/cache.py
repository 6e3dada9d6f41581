"""`pagekeep cache`: what is kept of what the model has read. Needs no model; the store may be in use meanwhile."""

from __future__ import annotations

import time
from argparse import Namespace
from dataclasses import asdict

from app.cli.console import Console
from app.core.conversations import ConversationStore
from app.core.paths import Paths
from app.core.settings import load_settings
from engine.store.tools import ConversationEntry, StoreTools


def run(options: Namespace, console: Console) -> None:
    paths = Paths.default().create()
    with StoreTools(paths.kv) as tools:
        {"ls": _ls, "stat": _stat, "verify": _verify, "gc": _gc}[options.action](tools, paths, console)


def _ls(tools: StoreTools, paths: Paths, console: Console) -> None:
    titles = _titles(paths)
    entries = [{"title": titles.get(e.conversation), **asdict(e)} for e in tools.ls()]
    console.result({"conversations": entries})
    for entry in tools.ls():
        console.text(_line(entry, titles.get(entry.conversation, "(deleted conversation)")))
    if not entries:
        console.text("Nothing is kept yet.")


def _line(entry: ConversationEntry, title: str) -> str:
    saved = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.saved))
    tokens = f"{entry.tokens_saved:,} of {entry.tokens:,} tokens"
    size = f"{entry.bytes / 1e6:,.1f} MB ({entry.shared_bytes / 1e6:,.1f} shared)"
    return ", ".join(part for part in (f"{title}  {tokens}", size, saved, entry.model) if part)


def _titles(paths: Paths) -> dict[str, str]:
    store = ConversationStore(paths.conversations)
    try:
        return {c.id: c.title for c in (*store.list(), *store.list(trashed=True))}
    finally:
        store.close()


def _stat(tools: StoreTools, paths: Paths, console: Console) -> None:
    settings, _ = load_settings(paths.settings)
    data = {**asdict(tools.stat()), "budget_bytes": settings.engine.disk_budget_bytes}
    console.result(data)
    for key, value in data.items():
        console.text(f"{key}: {value:,}" if isinstance(value, int) else f"{key}: {value}")


def _verify(tools: StoreTools, paths: Paths, console: Console) -> None:
    """Damaged pages are taken out: they will be read again, from the stored ids."""
    found = tools.verify(
        drop_damaged=True, on_progress=lambda done, total: console.progress(f"{done:,} of {total:,} records")
    )
    console.clear()
    console.result({"records": found.records, "bytes": found.bytes, "damaged": [asdict(d) for d in found.damaged]})
    console.text(f"{found.records:,} records, {found.bytes / 1e6:,.1f} MB, {len(found.damaged)} damaged")
    for damage in found.damaged:
        console.text(f"  tokens {damage.start:,} to {damage.start + damage.tokens:,}: {damage.why}")


def _gc(tools: StoreTools, paths: Paths, console: Console) -> None:
    settings, _ = load_settings(paths.settings)
    collected = asdict(tools.gc(settings.engine.disk_budget_bytes))
    console.result(collected)
    console.text(", ".join(f"{key}: {value}" for key, value in collected.items()))
