"""A conversation's state as bars, lines and sentences. No widgets."""

from __future__ import annotations

from app.core.explain import TO_BE_MOVED, explain_lines, must_be_read, reason_words, reuse_words, to_be_moved
from app.core.kept import documents_of
from app.core.records import Message
from app.core.spans import NEW_WORK
from app.widgets.bars import Part
from app.widgets.format import about, ago, count, plural
from engine.messages import PageBits, StateReport, document_of_state
from rag.sizes import size_text

SAMPLED_HELP = "the answer's last token; the model reads it with the next question"
LAST_SAMPLED = 1  # the last token of an answer has no state until the next turn


def token_parts(report: StateReport) -> list[Part]:
    missing = missing_tokens(report)
    return [
        Part("in memory", report.tokens_memory, count(report.tokens_memory), "bar_restore"),
        Part("on disk", report.tokens_disk_only, count(report.tokens_disk_only), "bar_decode"),
        Part("kept, moves up", to_be_moved(report), count(to_be_moved(report)), "bar_first"),
        Part("must be read", missing, count(missing), "bar_prefill"),
        Part("sampled last", sampled_last(report), count(sampled_last(report)), "bar_queue", SAMPLED_HELP),
    ]


def byte_parts(report: StateReport) -> list[Part]:
    return [
        Part("memory", report.bytes_memory, size_text(report.bytes_memory), "bar_restore"),
        Part("disk", report.bytes_disk, size_text(report.bytes_disk), "bar_decode"),
    ]


def missing_tokens(report: StateReport) -> int:
    """Tokens that go through the model again; the last sampled one is new work in any case."""
    missing = must_be_read(report)
    return missing if missing > LAST_SAMPLED else 0


def sampled_last(report: StateReport) -> int:
    """1 where all is kept that was read: the last token sampled gets its state with the next question."""
    return must_be_read(report) - missing_tokens(report)


def missing_words(report: StateReport) -> str:
    """`117 tokens: evicted by gc at 2026-11-30 08:44 to meet the disk budget`, by reason."""
    lost = [part for part in report.missing if part.reason not in (*NEW_WORK, TO_BE_MOVED)]
    why = "; ".join(f"{plural(part.tokens, 'token')}: {reason_words(part)}" for part in lost)
    return why or (count(missing_tokens(report)) if missing_tokens(report) else "nothing")


def dropped_words(report: StateReport, disk: bool) -> str:
    """What is left after memory was freed or, with `disk`, the state was dropped, and why."""
    left = report.tokens_memory + (report.tokens_disk_only if disk else 0)
    others = sharers(report) or "documents read ahead or other conversations"
    kept = f"{plural(left, 'token')} {'is' if left == 1 else 'are'} shared with {others}"
    if disk:
        return f"Dropped. {kept} and stay." if left else "Dropped from memory and disk. The text stays."
    if left:
        return f"Memory freed where it could be. {kept} and stay in memory."
    return "Memory freed. The state comes back from disk." if report.tokens_disk_only else "Memory freed."


def sharers(report: StateReport) -> str:
    """`2 other conversations and the documents read ahead`; "" where nobody shares it."""
    conversations = [name for name in report.shared_with if document_of_state(name) is None]
    parts = [plural(len(conversations), "other conversation")] if conversations else []
    read_ahead = {part for name in report.shared_with for part in documents_of(name)}
    if read_ahead:
        parts.append("the document read ahead" if len(read_ahead) == 1 else "the documents read ahead")
    return " and ".join(parts)


def values(report: StateReport) -> dict[str, str]:
    others = sharers(report)
    pages = sum(bool(bits & PageBits.SHARED) for bits in report.pages)
    whole = f" in {plural(pages, 'page')}" if pages else ""
    shared = f"{size_text(report.bytes_shared)}{whole} with {others}" if others else "with none"
    return {
        "Tokens": count(report.tokens) + (", the last one sampled has no state yet" if sampled_last(report) else ""),
        "In memory": count(report.tokens_memory),
        "On disk only": count(report.tokens_disk_only),
        "Must be read": missing_words(report),
        "Not saved yet": count(report.tokens_unsaved) + (f": refused. {report.refused}" if report.refused else ""),
        "Last saved": ago(report.last_saved) if report.last_saved is not None else "never",
        "Shared": shared,
        "To rebuild": about(report.rebuild_seconds) if report.rebuild_seconds > 0 else "not measured yet",
    }


def headline(report: StateReport) -> str:
    missing = missing_tokens(report)
    if to_be_moved(report):
        read = f"{plural(missing, 'token')} must be read" if missing else "Nothing must be read"
        return f"{read}; what stands behind the removed turns moves up with the next question (approximate)."
    if not missing:
        part = "part of it" if report.tokens_memory else "all of it"
        where = "in memory" if not report.tokens_disk_only else f"kept; {part} comes back from disk"
        return f"Everything is {where}. Nothing will be read again."
    wait = report.rebuild_seconds * missing / report.tokens if report.tokens else 0.0
    cost = f", {about(wait)}" if wait > 0 else ""
    return f"{plural(missing, 'token')} must be read on return{cost}."


def turn_words(answer: Message | None) -> str:
    """What the turn of that answer, a conversation's last, reused and read again, and why."""
    if answer is None:
        return "No turn yet."
    if answer.report is not None:
        return "\n".join([reuse_words(answer.report), *explain_lines(answer.report)])
    if answer.state == "partial":
        return "It has not come to its end, which tells what it reused."
    return "It ended before it could tell what it reused."
