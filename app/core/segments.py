"""The app's texts in a prompt, and what the prompt needs from a chat format.

Short and plain on purpose: the starter model has 135 million parameters. HEADER is part of every shared
document prefix; changing a letter of it costs every reader one prefill per document.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import date as Date
from typing import Protocol

from rag.context import reflowed
from rag.types import Passage

LONG_TEXT = 2000  # characters
KEPT_TEXTS = 8
KEPT_DATES = 8

HEADER = (
    "Answer the question from the passages. Name the number of the passage, like [2]. "
    "If the answer is not there, say so."
)
# Behind a question to a small model: by itself it talks on, and what it adds is in no passage.
# In the question's own language, or it answers in ours.
BRIEFLY = {
    "english": "\n\nAnswer in one or two sentences, in the words of the passages.",
    "german": "\n\nAntworte in ein oder zwei Sätzen, mit den Worten der Textstellen.",
    "french": "\n\nRéponds en une ou deux phrases, avec les mots des passages.",
    "spanish": "\n\nResponde en una o dos frases, con las palabras de los pasajes.",
}
HEADER_PLAIN = "You are a helpful assistant. Answer briefly and truthfully."


class ChatGlue(Protocol):
    """The template's own text between ours: `engine.chat_format.ChatFormat`."""

    def open_ids(self) -> Sequence[int]: ...

    def first_user_open_ids(self, has_system: bool = True) -> Sequence[int]: ...

    def assistant_open_ids(self) -> Sequence[int]: ...

    def next_user_open_ids(self, ended_by_eog: bool) -> Sequence[int]: ...

    def dated(self, date: Date) -> ChatGlue: ...


class Encoder(Protocol):
    """`engine.tokenizer.Tokenizer`."""

    def encode(self, text: str, *, special: bool = False) -> list[int]: ...


class PromptFormat:
    """Glue and texts as ids, each segment tokenised alone. Thread-safe.

    Our segments are parts of a message, so white space at their ends stays whatever the template trims. Long
    texts (documents) and formats of other dates are remembered: a price is asked for at every key stroke.

    Args:
        small: the model answers better when it is told with the question how to.
    """

    def __init__(self, glue: ChatGlue, encoder: Encoder, small: bool = False) -> None:
        self.glue = glue
        self.small = small
        self._encoder = encoder
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[int, ...]] = {}
        self._dated: dict[Date, PromptFormat] = {}

    def dated(self, date: Date | None) -> PromptFormat:
        """The format whose template shows that date; itself for None and where the template shows none."""
        if date is None:
            return self
        with self._lock:
            found = self._dated.pop(date, None)
        if found is None:
            glue = self.glue.dated(date)
            found = self if glue is self.glue else PromptFormat(glue, self._encoder, self.small)
        with self._lock:
            self._dated[date] = found
            while len(self._dated) > KEPT_DATES:
                self._dated.pop(next(iter(self._dated)))
        return found

    def text_ids(self, text: str) -> Sequence[int]:
        if len(text) < LONG_TEXT:
            return self._encoder.encode(text)
        with self._lock:
            ids = self._kept.pop(text, None)
        if ids is None:
            ids = tuple(self._encoder.encode(text))
        with self._lock:
            self._kept[text] = ids
            while len(self._kept) > KEPT_TEXTS:
                self._kept.pop(next(iter(self._kept)))
        return ids


def document_text(name: str, first_marker: int, passages: Sequence[Passage]) -> str:
    """A whole document in reading order, each passage with its number."""
    return f"\n\nDocument: {name}\n\n" + passages_text(first_marker, passages)


def passages_text(first_marker: int, passages: Sequence[Passage]) -> str:
    numbered = enumerate(passages, first_marker)
    return "\n\n".join(f"[{marker}] {reflowed(passage.text)}" for marker, passage in numbered)


def found_passage_text(marker: int, passage: Passage) -> str:
    """A passage out of its surroundings, so its heading goes along. No page numbers: the app writes them."""
    heading = passage.heading.rsplit(" > ", 1)[-1]
    above = f"{heading}\n" if heading and heading not in passage.text[:200] else ""
    return f"[{marker}] {above}{reflowed(passage.text)}"


def found_text(blocks: Sequence[str], known: Sequence[int]) -> str:
    """Passages found for a question; `known` are numbers of such as are in the context already."""
    parts = list(blocks)
    if known:
        parts.append("See also " + ", ".join(f"[{marker}]" for marker in known) + ".")
    return "\n\n".join(parts) + "\n\n" if parts else ""


def instructions_text(instructions: str) -> str:
    return f"\n\n{instructions}" if instructions else ""


def later_instructions_text(instructions: str) -> str:
    return f"From now on: {instructions}\n\n" if instructions else "From now on ignore my earlier instructions.\n\n"
