"""`pagekeep cache budget`: how much memory and disk state may take, shown or set."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace

from app.cli.console import Console
from app.core.paths import Paths
from app.core.settings import StoredSettings
from engine.store.tools import StoreTools
from rag.sizes import size_text


def run(tools: StoreTools, paths: Paths, console: Console, options: Namespace) -> None:
    """Sets what was given; tells what holds now, and what of it is used."""
    settings = StoredSettings(paths.settings, on_notice=lambda notice: console.note(f"{notice.what} {notice.why}"))
    given = {"ram_budget_bytes": options.ram, "disk_budget_bytes": options.disk}
    changes = {name: value for name, value in given.items() if value is not None}
    if changes:
        settings.change(lambda stored: replace(stored, engine=replace(stored.engine, **changes)))
    engine, found = settings.current.engine, tools.stat()
    budgets = {"ram_budget_bytes": engine.ram_budget_bytes, "disk_budget_bytes": engine.disk_budget_bytes}
    console.result({**budgets, "bytes_on_disk": found.bytes_on_disk, "pinned_bytes": found.pinned_bytes})
    console.text(f"memory  {size_text(engine.ram_budget_bytes)} for state, what is mapped from files included")
    console.text("        weights, free buffers and the index come on top")
    console.text(f"disk    {size_text(engine.disk_budget_bytes)}, of which {size_text(found.bytes_on_disk)} are used")
    if changes:
        console.text("The next command and the next start of the window use it.")
    if found.bytes_on_disk > engine.disk_budget_bytes:
        console.text(
            "More is kept than that. 'pagekeep cache gc' removes what is least worth now, else the next save does."
        )
