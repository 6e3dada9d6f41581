"""Reasoning in a model's output: told from the answer, and given one form for all models.

In the text that is shown and kept, reasoning stands between <think> and </think>, whatever the model's own marks are:
these tags (DeepSeek R1, Qwen 3, GLM), or the channels of gpt-oss ("harmony": analysis and commentary against final).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from engine.tokenizer import Tokenizer, TokenStream

OPEN, CLOSE = "<think>", "</think>"
Part = Literal["reasoning", "answer"]


@dataclass(frozen=True)
class Mark:
    """Text in the output that is not shown: what follows it is reasoning, answer, or as before (None)."""

    text: str
    part: Part | None


_TAGS = (Mark(OPEN, "reasoning"), Mark(CLOSE, "answer"))
_CHANNELS = (
    Mark("<|channel|>analysis<|message|>", "reasoning"),
    Mark("<|channel|>commentary<|message|>", "reasoning"),
    Mark("<|channel|>final<|message|>", "answer"),
    Mark("<|start|>assistant", None),
    Mark("<|end|>", None),
)


def marks_of(tokenizer: Tokenizer, template: str) -> tuple[Mark, ...]:
    """What the model may put into its output, by its vocabulary and template; none for models without reasoning."""
    if tokenizer.token_id("<|channel|>") is not None and tokenizer.token_id("<|message|>") is not None:
        return _CHANNELS
    return _TAGS if tokenizer.token_id(CLOSE) is not None or CLOSE in template else ()


def split_reasoning(text: str) -> tuple[str, str]:
    """(reasoning, answer) of a kept text; an answer that was cut off inside its reasoning is empty."""
    if not text.startswith(OPEN):
        return "", text
    reasoning, _, answer = text.removeprefix(OPEN).partition(CLOSE)
    return reasoning.strip("\n"), answer.lstrip("\n")


class ReplyStream:
    """A text source over generated tokens. `reasons`: the prompt ended inside reasoning, so the output starts there."""

    def __init__(self, tokenizer: Tokenizer, marks: tuple[Mark, ...], *, reasons: bool = False) -> None:
        self._tokenizer = tokenizer
        self._stream = TokenStream(tokenizer, special=bool(marks))
        self._marks = marks
        self._held = ""
        self._part: Part = "reasoning" if reasons else "answer"
        self._shown: Part = "answer"

    def resume(self, token_ids: Iterable[int]) -> None:
        """Goes on behind an answer's tokens, which were shown already; inside reasoning the tag comes again."""
        for token_id in token_ids:
            self.push(token_id)
        self._shown = "answer"

    def push(self, token_id: int) -> str:
        """Text that can be shown now; what could still become a mark is held back."""
        if token_id in self._tokenizer.eog_ids:
            return ""
        text = self._stream.push(token_id)
        if not self._marks and self._part == self._shown:  # nothing is ever held back
            return text
        self._held += text
        return "".join(self._released())

    def flush(self) -> str:
        """The rest, with open reasoning closed."""
        self._held += self._stream.flush()
        text = "".join(self._released())
        rest, self._held = self._held, ""
        text += self._as_shown(rest)
        return text + (CLOSE if self._shown == "reasoning" else "")

    def _released(self) -> Iterator[str]:
        while found := self._next_mark():
            place, mark = found
            yield self._as_shown(self._held[:place])
            self._held = self._held[place + len(mark.text) :]
            self._part = mark.part or self._part
        ready = len(self._held) - self._possible_start()
        yield self._as_shown(self._held[:ready])
        self._held = self._held[ready:]

    def _as_shown(self, text: str) -> str:
        """The text behind a tag where its part begins."""
        if not text or self._part == self._shown:
            return text
        self._shown = self._part
        return (OPEN if self._part == "reasoning" else CLOSE) + text

    def _next_mark(self) -> tuple[int, Mark] | None:
        places = [(self._held.find(mark.text), mark) for mark in self._marks]
        return min((found for found in places if found[0] >= 0), key=lambda found: found[0], default=None)

    def _possible_start(self) -> int:
        """Length of the longest end of the held text that begins a mark."""
        longest = max((len(mark.text) for mark in self._marks), default=1) - 1
        for length in range(min(longest, len(self._held)), 0, -1):
            if any(mark.text.startswith(self._held[-length:]) for mark in self._marks):
                return length
        return 0
