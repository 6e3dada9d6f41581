"""What can be done when a conversation outgrows its context, with the price of each way. Pure: nothing is changed here.

The reader chooses before anything is sent; nothing is cut in silence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from engine.kv.value import Costs
from engine.models.spec import ModelSpec

OverflowWay = Literal["recompute", "shift", "fork", "larger"]

# Of the context that is left after the document: a step that is not taken with every question, and keeps most turns.
_KEEP_SHARE = 0.75
_SUMMARY_TOKENS = 400
_SUMMARY_SHARE = 8  # of a small context
_ROUND = 1024  # a larger context is a multiple of it


@dataclass(frozen=True)
class Overflowing:
    """A prompt that is too long. Sizes in tokens.

    Attributes:
        total: of the prompt with the new question; shared: its head that always stays (header and documents);
        turns: where each earlier turn begins, ascending, all >= shared; question: where the new question begins.
        context, model_context: what the model runs with, and what it was made for; reserve: room for the answer.
        decode_rate: tokens per second, 0 while unknown; bytes_per_token: of KV; affordable: tokens that the
        memory budget holds (loading.held_tokens).
        load_seconds: what loading the model takes.
    """

    total: int
    shared: int
    turns: tuple[int, ...]
    question: int
    context: int
    model_context: int
    reserve: int
    decode_rate: float
    bytes_per_token: int
    affordable: int = 1 << 62
    load_seconds: float = 0.0


@dataclass(frozen=True)
class OverflowOption:
    """A way out and its price.

    Attributes:
        dropped: tokens [start, stop) of the prompt that go, equal where none do; turns_dropped: how many turns.
        tokens: of the prompt then, bytes: of its KV; computed: how many of the tokens go through the model.
        seconds: until the first token, by this machine's rates; exact: as if the model had read just this.
        refused: why it cannot be had here, "" if it can. context: the larger one, 0 for the other ways.
    """

    way: OverflowWay
    dropped: tuple[int, int]
    turns_dropped: int
    tokens: int
    computed: int
    seconds: float
    exact: bool
    refused: str = ""
    context: int = 0
    bytes: int = 0


def overflow_options(prompt: Overflowing, costs: Costs, spec: ModelSpec, kv_type_k: str) -> tuple[OverflowOption, ...]:
    """All ways, the exact one first; empty where the prompt fits."""
    if prompt.total + prompt.reserve <= prompt.context:
        return ()
    stop, turns = _dropped(prompt)
    ways = (
        _recompute(prompt, costs, stop, turns),
        _shift(prompt, costs, stop, turns, shift_refused(spec, kv_type_k)),
        _summary(prompt, costs),
        _larger(prompt, costs),
    )
    return tuple(replace(way, bytes=way.tokens * prompt.bytes_per_token) for way in ways)


def summary_tokens(context: int) -> int:
    """How long a summary may be."""
    return min(_SUMMARY_TOKENS, context // _SUMMARY_SHARE)


def shift_refused(spec: ModelSpec, kv_type_k: str) -> str:
    """Why K cannot be rotated to other positions, "" if it can."""
    kinds = {layer.attention.kind for layer in spec.layers}
    if kinds & {"window", "recurrent"}:
        return "The model has layers that only look back a little; they cannot be moved."
    if any(layer.attention.head_dim_v == 0 for layer in spec.layers):
        return "The model keeps its keys in a compressed form that cannot be rotated."
    if kv_type_k not in ("f32", "f16", "bf16"):
        return f"Keys of type {kv_type_k} are too coarse to be rotated."
    return ""


def _dropped(prompt: Overflowing) -> tuple[int, int]:
    """Where the kept turns begin, and how many turns go: the oldest, until a quarter of the room is free."""
    room = prompt.context - prompt.reserve
    target = min(room, prompt.shared + int((room - prompt.shared) * _KEEP_SHARE))
    starts = (*[turn for turn in prompt.turns if turn > prompt.shared], prompt.question)
    for number, start in enumerate(starts, 1):
        if prompt.total - (start - prompt.shared) <= target:
            return start, number
    return prompt.question, len(starts)


def _fits(prompt: Overflowing, tokens: int) -> str:
    if tokens + prompt.reserve <= prompt.context:
        return ""
    return f"The document and the question alone have {tokens:,} tokens, the context {prompt.context:,}."


def _recompute(prompt: Overflowing, costs: Costs, stop: int, turns: int) -> OverflowOption:
    tokens = prompt.total - (stop - prompt.shared)
    computed = tokens - prompt.shared
    seconds = costs.compute(prompt.shared, computed)
    refused = _fits(prompt, tokens) if prompt.turns else "There is no earlier turn to leave out."
    return OverflowOption("recompute", (prompt.shared, stop), turns, tokens, computed, seconds, True, refused)


def _shift(prompt: Overflowing, costs: Costs, stop: int, turns: int, refused: str) -> OverflowOption:
    tokens = prompt.total - (stop - prompt.shared)
    new = prompt.total - prompt.question
    moved = (prompt.question - stop) * prompt.bytes_per_token
    seconds = costs.read(moved) + costs.compute(tokens - new, new)
    refused = refused or _fits(prompt, tokens)
    if stop == prompt.question:
        refused = refused or "No turn would be kept, so there is nothing to move."
    return OverflowOption("shift", (prompt.shared, stop), turns, tokens, new, seconds, False, refused)


def _summary(prompt: Overflowing, costs: Costs) -> OverflowOption:
    """A fork on the same document that begins with a summary of the turns: written by the model, then read.

    Where the conversation has no room left to write it in, the turns are read once more without the document.
    """
    new, turns = prompt.total - prompt.question, prompt.question - prompt.shared
    length = summary_tokens(prompt.context)
    tokens = prompt.shared + length + new
    writing = length / prompt.decode_rate if prompt.decode_rate else length * costs.seconds_per_token
    apart = turns if prompt.question + length > prompt.context else 0
    seconds = costs.compute(0, apart) + writing + costs.compute(prompt.shared, length + new)
    refused = _fits(prompt, tokens) if prompt.turns else "There is no turn to be summarised."
    dropped = (prompt.shared, prompt.question)
    return OverflowOption("fork", dropped, len(prompt.turns), tokens, apart + length + new, seconds, False, refused)


def _larger(prompt: Overflowing, costs: Costs) -> OverflowOption:
    new = prompt.total - prompt.question
    need = prompt.total + prompt.reserve
    refused = ""
    if need > prompt.model_context:
        refused = f"The model was made for {prompt.model_context:,} tokens."
    elif need > prompt.affordable:
        refused = f"The memory budget for state holds {prompt.affordable:,} tokens; see Preferences."
    wanted = max(2 * prompt.context, -(-(need + _ROUND) // _ROUND) * _ROUND)
    context = min(prompt.model_context, prompt.affordable, wanted)
    back = costs.read(prompt.question * prompt.bytes_per_token)
    seconds = prompt.load_seconds + back + costs.compute(prompt.question, new)
    return OverflowOption("larger", (0, 0), 0, prompt.total, new, seconds, True, refused, context)
