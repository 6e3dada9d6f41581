"""The ways out of a full context, as they are typed, with their prices."""

from __future__ import annotations

from app.cli.numbers import about
from app.core.errors import DoesNotFit
from engine.overflow import OverflowOption
from rag.sizes import plural


def way_out(error: DoesNotFit) -> str:
    """What can be typed to go on, with prices."""
    offered = [(f"--overflow {option.way}", way_words(option)) for option in error.ways if not option.refused]
    if error.whole:
        offered.insert(0, ("--mode retrieve", "looks passages up instead of reading the document whole"))
    if not offered:
        return error.next
    memory = "Raise the memory budget in the preferences, take a smaller KV type (--kv q8), or choose how to go on:"
    head = memory if error.by_memory else "Choose how to go on:"
    return "\n".join([head, *(f"  {option:<22} {words}" for option, words in offered)])


def way_words(option: OverflowOption) -> str:
    """`leaves 3 turns out, reads 812 tokens, about 2.1 s`."""
    wait = about(option.seconds)
    left, read = plural(option.turns_dropped, "turn"), plural(option.computed, "token")
    if option.way == "larger":
        return f"loads the model with {option.context:,} tokens of context, {wait}"
    if option.way == "fork":
        return f"goes on in a new conversation with a summary of {left}, {wait}"
    if option.way == "shift":
        return f"leaves {left} out and moves the rest up (approximate), reads {read}, {wait}"
    return f"leaves {left} out, reads {read}, {wait}"
