"""What happened to a history, in messages and words: why reuse ended where it did, and what was put aside."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any, Protocol

from app.core.records import Difference, Message, TokenReport, TurnReport
from app.core.spans import ComputedSpan, Operation
from engine.messages import ComputedRange, FirstDifference, PageBits, StateReport
from rag.sizes import plural

TURNS_REMOVED = "turns removed"
TO_BE_MOVED = "to be moved up"
EXACT = "exact"  # the operation, see spans.py


class Decoder(Protocol):
    """`engine.tokenizer.Tokenizer`."""

    def token_bytes(self, token_id: int, *, special: bool = True) -> bytes: ...


def explained(found: FirstDifference | None, messages: Sequence[Message], decoder: Decoder) -> Difference | None:
    """`messages`: what the prompt was made of, in order."""
    if found is None:
        return None
    number, message, start = _message_at(found.position, messages)
    return Difference(
        position=found.position,
        message=message.id if message else None,
        number=number,
        role=message.role if message else "user",
        index=found.position - start,
        expected=token_words(decoder, found.expected),
        found=token_words(decoder, found.found),
        roles_differ=found.expected == found.found,
        head=message.placement.head_tokens if message else 0,
    )


def last_computed(messages: Sequence[Message]) -> float:
    """When the last answer began for which the conversation's own state went through the model; 0.0: never. The
    catalogue's answers don't ask the model, and a survey computes its parts apart."""
    answers = (message for message in reversed(messages) if message.role == "assistant" and message.tokens.ids)
    computed = (m.created for m in answers if m.report is None or m.report.mode != "survey")
    return next(computed, 0.0)


def after_cut(parts: Iterable[ComputedRange], moved: int = 0) -> tuple[ComputedRange, ...]:
    """The engine sees other tokens where the reader has taken turns out; `moved` of them will be moved up."""
    return tuple(named for part in parts for named in _after_cut(part, moved) if named.tokens)


def _after_cut(part: ComputedRange, moved: int) -> tuple[ComputedRange, ...]:
    if part.reason not in ("edited", "not in cache"):
        return (part,)
    up = min(moved, part.tokens)
    return ComputedRange(up, TO_BE_MOVED), replace(part, tokens=part.tokens - up, reason=TURNS_REMOVED)


def to_be_moved(report: StateReport) -> int:
    """Tokens that are kept for a history from which turns were taken out, and move up with the next question."""
    return sum(part.tokens for part in report.missing if part.reason == TO_BE_MOVED)


def with_moves(report: StateReport, moved: int) -> bytes:
    """The page map, with the pages marked that are there once the `moved` tokens behind what is kept have moved up."""
    kept, size = report.tokens_memory + report.tokens_disk_only, report.page_tokens or 1
    coming = range(kept // size, -(-(kept + moved) // size) if moved else 0)
    return bytes(bits | (PageBits.MOVES if place in coming else 0) for place, bits in enumerate(report.pages))


def must_be_read(report: StateReport) -> int:
    """Tokens that go through the model when the conversation goes on, the one sampled last included."""
    return report.tokens - report.tokens_memory - report.tokens_disk_only - to_be_moved(report)


# What the engine's reasons mean where they do not say it themselves; {at}: when that was, with the word before it.
_MEANING = {
    "evicted": "evicted{at} to meet the disk budget",
    "evicted by gc": "evicted by gc{at} to meet the disk budget",
    "evicted from memory": "evicted from memory{at}, and it was not on disk",
    "dropped": "dropped{at} by the reader",
    "damaged": "damaged on disk, found{at}",
    "removed": "its file was removed, found{at}",
    "edited": "other tokens were kept here",
    "not saved": "not saved before the process ended",
    "refused by the budget": "not saved: the disk budget refused it{at}",
    "refused by a full disk": "not saved: the disk was full{at}",
    "refused by an error": "not saved: writing it failed{at}",
    "stopped": "the turn was stopped before its page was full",
    "moved state undone": "moved (approximate) pages were undone",
    "sliding window": "layers that look back a little are not kept here",
    "not in cache": "nothing of it is kept",
}


def reason_words(part: ComputedRange | ComputedSpan) -> str:
    """`evicted by gc at 2026-11-30 08:44 to meet the disk budget`"""
    at = time.strftime(" at %Y-%m-%d %H:%M", time.localtime(part.at)) if part.at else ""
    words = _MEANING.get(part.reason, part.reason).format(at=at)
    return words if at else words.removesuffix(", found")


def reason_key(reason: str) -> str:
    """For programs: `evicted_by_gc`; what a reason says besides is left out."""
    return "other_kv_type" if reason.startswith("kept as KV type") else reason.replace(" ", "_")


def tokens_json(tokens: TokenReport) -> dict[str, Any]:
    """`at` of a computed range only where it is known."""
    computed = [{key: value for key, value in asdict(part).items() if key != "at" or value} for part in tokens.computed]
    return {**asdict(tokens), "computed": computed}


def spans_json(report: TurnReport) -> list[dict[str, Any]]:
    """What was read again, with the reason for programs (`key`) and for people (`words`)."""
    return [
        {**asdict(span), "key": reason_key(span.reason), "words": reason_words(span)} for span in report.recomputed()
    ]


def token_words(decoder: Decoder, token: int) -> str:
    """A token's text; bytes that are no character by themselves as \\xNN."""
    return decoder.token_bytes(token).decode("utf-8", "backslashreplace")


def reuse_words(report: TurnReport) -> str:
    """`18,204 of 18,246 tokens reused (0 memory, 18,204 disk; 17,900 shared), 42 computed.`"""
    tokens = report.tokens
    computed = sum(part.tokens for part in tokens.computed)
    shared = f"; {tokens.reused.of_which_shared:,} of header and documents" if tokens.reused.of_which_shared else ""
    origin = f"{tokens.reused.memory:,} memory, {tokens.reused.disk:,} disk{shared}"
    unread = f"; {plural(tokens.unread, 'token')} not read: it was stopped" if tokens.unread else ""
    return f"{tokens.reused.total:,} of {tokens.prompt:,} tokens reused ({origin}), {computed:,} computed{unread}."


def explain_lines(report: TurnReport) -> list[str]:
    """What was read again and why, in sentences; empty where nothing was."""
    spans = report.recomputed()
    lines = [f"Read again: tokens {span.start:,} to {span.stop - 1:,} ({reason_words(span)})." for span in spans]
    if report.difference is not None and spans:
        lines.append(difference_line(report.difference))
    if report.approximate:
        lines.append("Approximate: part of the state was moved up instead of being computed again.")
    if exact_again(report):
        lines.append("Exact again: state that had been moved up, or was to be, was not kept; it was computed.")
    if operations := operation_words(report):
        lines.append(f"Operations: {operations}.")
    return lines


_DONE = {
    "trim": "trimmed", "take_out": "took out", "fork": "forked", "edit": "edited", "undo": "undone", "redo": "redone",
    "move_up": "moved up", "recompute": "recomputed",
}  # fmt: skip


def operations_of(report: TurnReport) -> tuple[Operation, ...]:
    """What was done to the history before the turn, what of its state was moved in it, and what was read again for it:
    each with its own time."""
    again = sum(span.stop - span.start for span in report.recomputed())
    computed = sum(part.tokens for part in report.tokens.computed)
    times, done = report.timings_ms, list(report.operations)
    if times.remove > 0:
        done.append(Operation("move_up", times.remove))
    if again:
        done.append(Operation("recompute", times.prefill * again / computed, again))
    return tuple(done)


def operation_words(report: TurnReport) -> str:
    """`took out 80 tokens 0.6 ms, moved up 0.4 ms, recomputed 812 tokens 1.2 s`; empty where the prompt only grew."""
    return ", ".join(_operation(one) for one in operations_of(report) if one.name != EXACT)


def exact_again(report: TurnReport) -> bool:
    """Whether what was approximate before the turn is not any more."""
    return any(one.name == EXACT for one in report.operations)


def _operation(one: Operation) -> str:
    tokens = f" {plural(one.tokens, 'token')}" if one.tokens is not None else ""
    took = f"{one.milliseconds:.1f} ms" if one.milliseconds < 999.5 else f"{one.milliseconds / 1e3:,.1f} s"
    return f"{_DONE.get(one.name, one.name)}{tokens} {took}"


def difference_line(found: Difference) -> str:
    """`First difference: message 3 (question), token 12: “ long” was kept, “ deep” is there now.`"""
    where = place_words(found)
    if found.roles_differ:
        return f"First difference: {where}: “{found.found}” was read once as prompt and once as answer."
    return f"First difference: {where}: “{found.expected}” was kept, “{found.found}” is there now."


def place_words(found: Difference) -> str:
    """`message 3 (question), token 12`: counted from where the question begins, behind documents and header."""
    if found.message is None:
        return "the end"
    if found.index < found.head:
        return f"message {found.number} (what stands before the question), token {found.index + 1:,}"
    kind = "question" if found.role == "user" else "answer"
    return f"message {found.number} ({kind}), token {found.index - found.head + 1:,}"


def _message_at(position: int, messages: Sequence[Message]) -> tuple[int, Message | None, int]:
    start = 0
    for number, message in enumerate(messages, start=1):
        if position < start + len(message.tokens):
            return number, message, start
        start += len(message.tokens)
    return len(messages) + 1, None, start


def put_aside_words(messages: int) -> str:
    """`1 message that stood there is put aside`."""
    stood = "1 message that stood there is" if messages == 1 else f"{messages:,} messages that stood there are"
    return f"{stood} put aside"
