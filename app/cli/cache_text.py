"""`pagekeep cache` in words: tables and sentences from the store's records."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.cli.cache_names import Named, Names
from app.core.explain import place_words, reason_words
from app.core.naming import SHORT_ID
from app.core.records import Difference
from engine.kv.disk import Gone
from engine.messages import ComputedRange
from engine.store.account import ModelShare, StoreStat
from engine.store.checking import Damage, Lost, VerifyReport
from engine.store.inspect import PageEntry, StateDifference
from engine.store.listing import ConversationEntry
from engine.store.unclaimed import Unclaimed
from rag.sizes import plural, size_text

LONGEST_TITLE = 40


@dataclass(frozen=True)
class Collected:
    """What `cache gc` did (fields of engine.store.tools)."""

    evicted: int
    unlinked: int
    compacted: int
    bytes_before: int
    bytes_after: int


def table(rows: Iterable[Sequence[str]], right: frozenset[int] = frozenset()) -> list[str]:
    """Rows in columns; those of `right` are aligned at their end."""
    cells = [list(row) for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))] if cells else []
    return ["  ".join(_padded(row, widths, right)).rstrip() for row in cells]


def _padded(row: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> list[str]:
    pairs = zip(row, widths, strict=True)
    return [cell.rjust(width) if i in right else cell.ljust(width) for i, (cell, width) in enumerate(pairs)]


def with_status(named: Named) -> str:
    """`Talk`, `Talk (in the trash)`"""
    return named.name if named.status == "conversation" else f"{named.name} ({named.status})"


def _what(entry: ConversationEntry, named: Named) -> str:
    """`in the trash, pinned`; `-` for a conversation like any other."""
    found = [named.status] if named.status != "conversation" else []
    found += ["pinned"] * entry.pinned + ["approximate"] * entry.approximate
    return ", ".join(found) or "-"


def conversation_lines(entries: Sequence[tuple[ConversationEntry, Named]]) -> list[str]:
    head = ("conversation", "id", "what", "tokens", "on disk", "size", "shared", "saved", "KV", "model")
    rows = [
        (
            _short(named.name),
            e.conversation[:SHORT_ID] if named.status != "read ahead" else "",
            _what(e, named),
            f"{e.tokens:,}",
            "all" if e.tokens_saved == e.tokens else f"{e.tokens_saved:,}",
            size_text(e.bytes),
            size_text(e.shared_bytes) if e.shared_bytes else "-",
            time.strftime("%Y-%m-%d %H:%M", time.localtime(e.saved)),
            e.kv_type or "not known yet",
            e.model or "not known yet",
        )
        for e, named in entries
    ]
    return table([head, *rows], frozenset({3, 4, 5, 6})) if rows else []


def unclaimed_lines(found: Sequence[Unclaimed]) -> list[str]:
    """What is on disk of no conversation, and what becomes of it."""
    lines = [
        f"Of no conversation: {plural(e.tokens, 'token')} in {plural(e.pages, 'page')}, {size_text(e.bytes)}, of "
        f"{e.model or e.fingerprint[:8]}, {e.kv_type or 'KV type not known yet'}."
        for e in found
    ]
    why = (
        "A prompt was cut off before its end, its end was not saved, or it was edited or removed since. Asked again, "
        "it goes on from there; or else this goes in its turn when the disk budget is used up."
    )
    return [*lines, why] if lines else []


def refused_lines(found: Sequence[tuple[Named, Gone]]) -> list[str]:
    """`End not on disk: c1, c2 (not saved: the disk budget refused it).`, by reason."""
    names: dict[str, list[str]] = {}
    for named, gone in found:
        names.setdefault(gone.reason, []).append(_short(named.name))
    return [
        f"End not on disk: {', '.join(called)} ({reason_words(ComputedRange(0, reason))})."
        for reason, called in names.items()
    ]


def stat_lines(stat: StoreStat, budget: int) -> list[str]:
    rows = [
        ("conversations", f"{stat.conversations:,} of {plural(stat.models, 'model')}"),
        ("on disk", f"{size_text(stat.bytes_on_disk)} of {size_text(budget)}, in {plural(stat.segments, 'file')}"),
        *((f"  {share_name(share)}", share_words(share)) for share in stat.shares),
        ("  of that pinned", size_text(stat.pinned_bytes)),
        ("  to be compacted", size_text(stat.dead_bytes)),
        ("  index", size_text(stat.index_bytes)),
        ("checked again", checked_words(stat)),
        ("ever written", size_text(stat.bytes_written)),
        ("folder", stat.folder),
    ]
    return [*table(rows), *pinned_lines(stat, budget)]


def pinned_lines(stat: StoreStat, budget: int) -> list[str]:
    """Why the store is above its budget, where pins hold it there, and what that means."""
    if not stat.pinned_bytes or stat.bytes_on_disk <= budget:
        return []
    held = f"Pinned conversations hold {size_text(stat.pinned_bytes)}, which the budget of {size_text(budget)} spares."
    nothing = " Nothing else is saved until some are unpinned or the budget is raised."
    more = nothing if stat.pinned_bytes >= budget else ""
    return [f"{held}{more} pagekeep cache pin --off NAME lets one go."]


def share_name(share: ModelShare) -> str:
    return f"{share.model or share.fingerprint[:8]}, {share.kv_type or 'KV type not known yet'}"


def share_words(share: ModelShare) -> str:
    states = f", {plural(share.states, 'snapshot')}" if share.states else ""
    counts = f"{plural(share.pages, 'page')}, {plural(share.tails, 'unfinished end')}{states}"
    return f"{size_text(share.bytes)} in use: {counts}"


def checked_words(stat: StoreStat) -> str:
    """What the canary found."""
    if not stat.pages_checked:
        return "no page yet (a random one in idle time, computed and compared bit for bit)"
    found = f"{stat.pages_wrong:,} wrong and dropped" if stat.pages_wrong else "all equal"
    return f"{plural(stat.pages_checked, 'page')} computed and compared, {found}"


def page_lines(pages: Sequence[PageEntry]) -> list[str]:
    head = ("tokens", "what", "size", "also used by", "file")
    rows = [
        (
            f"{page.start:,}-{page.start + page.tokens - 1:,}",
            ("end" if page.tail else "page") + (", approximate" if page.approximate else ""),
            size_text(page.bytes),
            plural(page.users, "other") if page.users else "-",
            f"{page.segment} at {page.offset:,}",
        )
        for page in pages
    ]
    return table([head, *rows], frozenset({0, 2}))


def collected_line(done: Collected) -> str:
    freed = max(0, done.bytes_before - done.bytes_after)
    return (
        f"{size_text(freed)} freed, {size_text(done.bytes_after)} left: {plural(done.evicted, 'page')} evicted, "
        f"{plural(done.unlinked, 'file')} removed, {done.compacted:,} rewritten."
    )


def verify_lines(found: VerifyReport, names: Names) -> list[str]:
    """Damage, then what went with its file, each with the conversations that it is of."""
    lost = f", {found.lost_records:,} lost: their file was removed" if found.lost else ""
    first = f"{plural(found.records, 'record')}, {size_text(found.bytes)}, {len(found.damaged):,} damaged{lost}"
    lines = [f"  {_range(part)}: {part.why}{_in(part.conversations, names)}" for part in found.damaged]
    lines += [f"  {_range(part)}: lost{_in([part.conversation], names)}" for part in found.lost]
    again = ["What is damaged or lost is read again when it is needed."] if lines else []
    return [first, *lines, *again]


def _range(part: Damage | Lost) -> str:
    return f"tokens {part.start:,} to {part.start + part.tokens - 1:,}"


def _in(conversations: Sequence[str], names: Names) -> str:
    return f", in {', '.join(f'“{names.of(name).name}”' for name in conversations)}" if conversations else ""


def difference_lines(found: StateDifference, same: bool, words: Difference | None) -> list[str]:
    common = f"{plural(found.shared_tokens, 'token')} in common, {size_text(found.shared_bytes)} of pages kept once."
    if same:
        return [common, "They are the same."]
    if found.position < 0:
        return [common, found.why]
    if words is None:
        there = f"Token {found.position:,}: id {found.first_token} in the first, id {found.second_token} in the second"
        return [common, f"{there} ({found.why})."]
    where = f"{place_words(words)} (token {words.position + 1:,} of the whole)"
    if words.roles_differ:
        return [common, f"They part in {where}: “{words.found}” was read once as prompt and once as answer."]
    return [common, f"They part in {where}: “{words.expected}” in the first, “{words.found}” in the second."]


def _short(title: str) -> str:
    return title if len(title) <= LONGEST_TITLE else title[: LONGEST_TITLE - 1] + "…"
