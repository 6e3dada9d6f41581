"""A turn's report as bars and lines of text. No widgets."""

from __future__ import annotations

import json
from collections.abc import Sequence

from app.chat.words import speed_words
from app.core.explain import exact_again, operation_words, place_words, reason_words
from app.core.records import Message, TurnReport
from app.widgets.bars import Part
from app.widgets.format import count, duration, plural, rate
from rag.sizes import size_text

_PHASES = (
    ("queue", "bar_queue", "waiting for other answers"),
    ("retrieve", "bar_retrieve", "looking for passages in the documents"),
    ("restore", "bar_restore", "bringing kept state back"),
    ("remove", "bar_first", "taking turns out of the context"),
    ("prefill", "bar_prefill", "the model reads what is new"),
    ("decode", "bar_decode", "the model writes the answer"),
    ("save", "bar_save", "putting the new state away"),
)
ENDED = {
    "stop": "by itself",
    "stop_string": "at a text that ends answers (Preferences)",
    "length": "at the token limit",
    "cancelled": "stopped",
    "repetition": "stopped: it repeated itself",
    "context": "stopped: the context is full",
    "empty": "at once, without a word",
}
HELP = {
    "First token": "From the question to the first piece of the answer",
    "Prefill": "What the model read for this answer, and how fast",
    "Decode": "What the model wrote, and how fast",
    "Drafted ahead": "Words guessed from earlier text and checked several at a time; the answer is the same without",
    "Operations": "What was done to the kept state before the answer",
    "First difference": "The first token that is not as it was kept; what follows was read again",
    "Restore": "How long bringing kept state back took",
    "Reading avoided": "How long it would have taken to read what was kept",
    "Documents reused": "Tokens of documents that had been read before",
    "Read from disk": "Kept state that came back from files",
    "Written to disk": "State that was put away for the next time",
}
SHOWN_FROM_MS = 0.5
_REUSED_COLORS = ("bar_restore", "bar_decode")
_NEW = {"new": "bar_prefill", "last sampled": "bar_queue", "first token": "bar_queue"}
_AGAIN_COLORS = ("bar_first", "bar_retrieve", "warn")


def time_parts(report: TurnReport) -> list[Part]:
    """Phases after each other. First token is no phase of its own: it ends the prefill."""
    times = report.timings_ms
    return [
        Part(key, getattr(times, key), duration(getattr(times, key) / 1000), color, help)
        for key, color, help in _PHASES
        if getattr(times, key) >= SHOWN_FROM_MS and (key != "restore" or has_restored(report))
    ]


def has_restored(report: TurnReport) -> bool:
    """Looking for state takes its moment also where there is none."""
    return report.tokens.reused.total > 0 or report.bytes_read > 0


def token_parts(report: TurnReport) -> list[Part]:
    """Reused by origin, computed by reason."""
    reused = report.tokens.reused
    parts = [
        Part("reused from memory", reused.memory, count(reused.memory), _REUSED_COLORS[0]),
        Part("reused from disk", reused.disk, count(reused.disk), _REUSED_COLORS[1]),
    ]
    again = [part.reason for part in report.tokens.computed if part.reason not in _NEW]
    for computed in report.tokens.computed:
        color = _NEW.get(computed.reason) or _AGAIN_COLORS[min(again.index(computed.reason), len(_AGAIN_COLORS) - 1)]
        parts.append(Part(f"computed: {computed.reason}", computed.tokens, count(computed.tokens), color))
    return [*parts, Part("not read", report.tokens.unread, count(report.tokens.unread), "line")]


def total_ms(report: TurnReport) -> float:
    return sum(part.value for part in time_parts(report))


def lines(report: TurnReport) -> list[tuple[str, str]]:
    """Names and values for the table of numbers."""
    times, tokens = report.timings_ms, report.tokens
    computed = sum(part.tokens for part in tokens.computed)
    pairs = [
        ("First token", duration(times.first_token / 1000) if times.first_token else ""),
        ("Prefill", _with_rate(computed, rate(computed, times.prefill))),
        ("Decode", _with_rate(tokens.generated, speed_words(report))),
        ("Drafted ahead", draft_words(report)),
        ("Operations", operations(report)),
        *_read_again(report),
        ("First difference", difference_words(report)),
        ("Restore", duration(times.restore / 1000) if times.restore >= SHOWN_FROM_MS and has_restored(report) else ""),
        ("Reading avoided", duration(report.saved_ms / 1000) if report.saved_ms > 0 else ""),
        ("Documents reused", count(tokens.reused.of_which_shared) if tokens.reused.total else ""),
        ("Read from disk", size_text(report.bytes_read) if report.bytes_read else ""),
        ("Written to disk", size_text(report.bytes_written) if report.bytes_written else ""),
        ("Documents", _pages(report)),
        ("Ended", ENDED.get(report.finish_reason, report.finish_reason.replace("_", " "))),
        ("Model", report.model),
    ]
    return [(name, value) for name, value in pairs if value]


def _read_again(report: TurnReport) -> list[tuple[str, str]]:
    spans = report.recomputed()
    return [(f"Read again ({reason_words(span)})", f"tokens {span.start:,}–{span.stop - 1:,}") for span in spans]


def draft_words(report: TurnReport) -> str:
    """`62 tokens from earlier text, 48 right`; empty where nothing was tried."""
    tokens = report.tokens
    return f"{plural(tokens.drafted, 'token')} from earlier text, {tokens.accepted:,} right" if tokens.drafted else ""


def operations(report: TurnReport) -> str:
    """`took out 80 tokens 0.6 ms, recomputed 812 tokens 1.2 s`; empty where the prompt only grew."""
    mark = "approximate" if report.approximate else "exact again" if exact_again(report) else ""
    return ", ".join(filter(None, (operation_words(report), mark)))


def difference_words(report: TurnReport) -> str:
    """`message 3 (question), token 12: “ long” → “ deep”`"""
    found = report.difference
    if found is None or not report.recomputed():
        return ""
    change = "once as prompt, once as answer" if found.roles_differ else f"“{found.expected}” → “{found.found}”"
    return f"{place_words(found)}: {change}"


def as_json(messages: Sequence[Message]) -> str:
    """The turns, oldest first; no text of question or answer."""
    turns = [
        {
            "message": message.id,
            "created": message.created,
            "state": message.state,
            "report": message.report.to_json(),
        }
        for message in messages
        if message.report is not None
    ]
    return json.dumps(turns, indent=2)


def _with_rate(tokens: int, speed: str) -> str:
    if not tokens:
        return ""
    return ", ".join(part for part in (plural(tokens, "token"), speed) if part)


def _pages(report: TurnReport) -> str:
    if not report.pages_in_context:
        return ""
    pages = sum(len(use.pages) for use in report.pages_in_context)
    lost = sum(use.unreadable for use in report.pages_in_context)
    whole = all(use.whole for use in report.pages_in_context)
    of_all = f"{count(pages)} of {plural(pages + lost, 'page')}" if whole and lost else plural(pages, "page")
    return f"{of_all} {'read whole' if whole else 'in passages'}{f', {count(lost)} unreadable' if lost else ''}"
