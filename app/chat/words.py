"""What the chat says in words: reports, phases, sources. No widgets."""

from __future__ import annotations

from app.core.borne_out import doubt
from app.core.events import TurnPhase
from app.core.records import Message, StoredCitation, TurnReport
from app.widgets.format import about, count, duration, per_second, plural, rate

VERIFIED_WORDS = {
    "exact": "quoted exactly",
    "altered": "altered quote",
    "matched": "matched by Pagekeep",
    "not_found": "not found",
}
OWN_WORDS = "found by Pagekeep"
OWN_HELP = (
    "Nothing in the answer could be matched with the pages. Pagekeep found these words on the page; they stand there "
    "exactly so."
)
VERIFIED_COLORS = {"exact": "good", "altered": "warn", "matched": "accent", "not_found": "bad"}
VERIFIED_HELP = {
    "exact": "These words stand in the document exactly so. What else the sentence says is not among them.",
    "altered": "The document says nearly this; the answer changed some words.",
    "matched": "The model named no source; Pagekeep found this passage by its content.",
    "not_found": "The cited passage does not say this, there is no such passage, or a quotation or number is in none.",
}


NO_DOCUMENT = "No document is attached: the model wrote this by itself, from no page."


def report_line(report: TurnReport) -> str:
    """`18,204 tokens reused (disk), 42 computed, first token 310 ms, 45 tok/s`."""
    if report.mode == "catalogue":
        return "From the library's catalogue, without the model"
    if report.mode == "survey":
        return survey_line(report)
    times, tokens = report.timings_ms, report.tokens
    parts = [reused_words(report), f"{count(sum(part.tokens for part in tokens.computed))} computed"]
    if tokens.unread:
        parts.append(f"{count(tokens.unread)} not read")
    if times.first_token > 0:
        parts.append(f"first token {duration(times.first_token / 1000)}")
    return ", ".join(part for part in [*parts, speed_words(report)] if part)


def speed_words(report: TurnReport) -> str:
    """Of an answer, everywhere the same: its tokens behind the first, which belongs to the prefill, by the time of
    decoding alone. "" where nothing was measured."""
    return rate(report.tokens.generated - 1, report.timings_ms.decode)


def survey_line(report: TurnReport) -> str:
    """`All of it read: 48,210 tokens in 1 min 12 s, 3,020 written`."""
    times = report.timings_ms
    taken = duration((times.prefill + times.decode) / 1000)
    begun = "Read so far" if report.finish_reason == "cancelled" else "All of it read"
    return f"{begun}: {plural(report.tokens.prompt, 'token')} in {taken}, {count(report.tokens.generated)} written"


def reused_words(report: TurnReport) -> str:
    reused = report.tokens.reused
    if not reused.total:
        return "nothing reused"
    if reused.disk and reused.memory:
        return f"{count(reused.total)} tokens reused ({count(reused.memory)} memory, {count(reused.disk)} disk)"
    return f"{plural(reused.total, 'token')} reused ({'disk' if reused.disk else 'memory'})"


def saved_words(report: TurnReport) -> str:
    """The reading that was not done again; empty when it would not have taken a second."""
    if report.saved_ms < 1000:
        return ""
    return f"saved {duration(report.saved_ms / 1000)} of reading"


def phase_words(phase: TurnPhase, speed: float = 0.0) -> str:
    """One line for what a turn is doing; `speed` in tokens per second where it was measured."""
    if phase.phase == "queued":
        return f"Waiting for {plural(phase.done, 'turn')} ahead" if phase.done else "Waiting for the engine"
    if phase.phase == "retrieving":
        return "Looking through the documents"
    if phase.phase == "answering":
        return "Writing"
    if phase.phase == "surveying":
        left = f", {about(phase.seconds_left)} left" if phase.seconds_left else ""
        return f"Reading all of it: step {count(min(phase.done + 1, phase.total))} of {count(phase.total)}{left}"
    if phase.phase == "summarising":
        return f"Summarising the conversation: {count(phase.done)} of at most {plural(phase.total, 'token')}"
    verb = "Restoring saved state" if phase.phase == "restoring" else "Reading"
    if not phase.total:
        return verb
    parts = [
        f"{verb}: {phase.done * 100 // phase.total} %",
        f"{count(phase.done)} of {count(phase.total)} tokens",
    ]
    if speed > 0:
        parts.append(per_second(speed))
    if phase.seconds_left is not None and phase.done < phase.total:
        parts.append(f"{about(phase.seconds_left)} left")
    return ", ".join(parts)


def state_words(message: Message, elsewhere: bool = False) -> str:
    """Why an answer is not complete; empty when it is. `elsewhere`: another process is writing it."""
    if elsewhere:
        return "Being answered by another Pagekeep. What it has stored is shown."
    reason = message.report.finish_reason if message.report else ""
    kept = "The text so far is kept." if message.text.strip() else "There was no text yet."
    if message.state == "cancelled":
        return f"Stopped. {kept}"
    if message.state == "partial":
        return f"Interrupted. {kept}"
    if message.state == "failed":
        return "This answer could not be finished."
    if reason == "length":
        return "Stopped at the token limit."
    if reason == "empty":
        return "The model ended its answer at once."
    if reason == "repetition":
        return "Stopped because it repeated itself."
    if reason == "context":
        return "Stopped: the context is full."
    return ""


def doubt_words(message: Message, is_last: bool) -> str:
    """What to think of an answer on state that was found damaged, and what to do; empty for others."""
    again = "Answer again to be sure (Ctrl+R)." if is_last else "Edit its question to have it answered again."
    found = doubt(message)
    return f"{found} {again}" if found else ""


def page_words(citation: StoredCitation) -> str:
    """Printed label and file page of the first range: `p. iv (file page 4)`, `pp. 12-13`."""
    if not citation.ranges:
        return ""
    first, last = citation.ranges[0].page_index, citation.ranges[-1].page_index
    labels = citation.page_labels or (str(first + 1),)
    printed, printed_last = labels[0] or str(first + 1), labels[-1] or str(last + 1)
    shown = f"p. {printed}" if first == last else f"pp. {printed}–{printed_last}"
    if printed == str(first + 1):
        return shown
    return f"{shown} (file page {first + 1})" if first == last else f"{shown} (file pages {first + 1}–{last + 1})"


def source_words(citation: StoredCitation, number: int) -> str:
    """`number`: as shown to the reader."""
    return ", ".join(part for part in source_parts(citation, number) if part)


def source_parts(citation: StoredCitation, number: int) -> tuple[str, str]:
    """The document, which may be cut where there is no room, and the page, which may not. `number` 0: none is shown."""
    if not citation.ranges:
        known = f"{citation.document} does not say this" if citation.document else "no such passage in the documents"
        return f"[{number}]  {known}", ""
    return f"[{number}]  {citation.document}" if number else citation.document, page_words(citation)
