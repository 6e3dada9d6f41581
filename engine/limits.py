"""What bounds a step: the context, the largest chunk, and the time a slice of prefill may take."""

from __future__ import annotations

from dataclasses import dataclass

# Beside running decodes a prefill slice, or a piece of a parked one, may take this long, so that tokens keep flowing.
SLICE_MS = 120.0
_SMALLEST_SLICE = 32
# A rest of a prompt up to this long goes before the next tokens of running answers, in a step of its own. Starter
# model, ten conversations: 25 ms, then 20 for the answers, instead of 42 together: its first token comes sooner.
SHORT_PROMPT = 32
# Alone it may take this long: a step is parked when the reader turns to another conversation.
_STEP_MS = 1500.0
_SMALLEST_STEP = 128


@dataclass(frozen=True)
class Limits:
    """`context`: tokens a conversation may hold; `prefill_chunk`: most prompt tokens in a step."""

    context: int
    prefill_chunk: int
    end_tokens: frozenset[int]


def prefill_slice(tokens_per_second: float, largest: int, *, decoding: bool) -> int:
    """Prompt tokens for one step: what the measured rate (0: unknown yet) does in the time that is fit, `largest` at
    most."""
    budget, smallest = (SLICE_MS, _SMALLEST_SLICE) if decoding else (_STEP_MS, _SMALLEST_STEP)
    affordable = int(tokens_per_second * budget / 1e3) if tokens_per_second else smallest
    return min(largest, max(smallest, affordable))
