"""A conversation as a Markdown file, its sources as footnotes with printed labels and file pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.chat.sources import distinct
from app.chat.words import VERIFIED_WORDS, source_words, state_words
from app.core.borne_out import PAGES_SAY
from app.core.paths import write_atomically
from app.core.records import Conversation, Message
from app.core.shown_numbers import renumbered, shown_numbers

MOST_QUOTE = 300


def as_markdown(conversation: Conversation, messages: Sequence[Message], reasoning: bool = False) -> str:
    """`reasoning`: what the model thought goes along, as a quotation above its answer."""
    parts = [f"# {conversation.title}"]
    for message in messages:
        if message.role == "user":
            parts.append("\n".join(f"> {line}" for line in message.text.splitlines()))
        else:
            parts.extend(_thought(message) if reasoning else ())
            parts.append(renumbered(message.text, message.citations))
            parts.extend(_notes(message))
    return "\n\n".join(parts) + "\n"


def write_markdown(
    path: Path, conversation: Conversation, messages: Sequence[Message], reasoning: bool = False
) -> None:
    """Raises OSError where the disk says no."""
    write_atomically(path, as_markdown(conversation, messages, reasoning).encode())


def file_name(title: str) -> str:
    kept = "".join(letter if letter.isalnum() or letter in " -_" else " " for letter in title)
    return f"{' '.join(kept.split())[:80] or 'conversation'}.md"


def _thought(message: Message) -> list[str]:
    quoted = "\n".join(f"> {line}".rstrip() for line in message.reasoning.splitlines())
    return [f"*Reasoning*\n\n{quoted}"] if quoted else []


def _notes(message: Message) -> list[str]:
    unfinished = state_words(message)
    notes = [f"*{unfinished}*"] if unfinished else []
    numbers = shown_numbers(message.text, message.citations)
    sources = [
        f"- {source_words(citation, numbers[citation.marker])} "
        f"({VERIFIED_WORDS[citation.verified]}){_quote(citation.quote)}"
        for citation in distinct(message.citations, numbers)
    ]
    notes += ["\n".join(sources)] if sources else []
    quoted = [
        f"- {source_words(citation, 0)}{_quote(citation.quote)}"
        for citation in (message.report.pages_say if message.report else ())
    ]
    return [*notes, f"*{PAGES_SAY}*", "\n".join(quoted)] if quoted else notes


def _quote(quote: str) -> str:
    short = quote if len(quote) <= MOST_QUOTE else quote[:MOST_QUOTE] + "…"
    return f": “{short}”" if short else ""
