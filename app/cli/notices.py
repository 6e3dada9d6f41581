"""What the engine says to a reader whose process stays, as it is true of a command, which ends."""

from __future__ import annotations

_STAYS = "They go on from memory; saving is tried again."  # engine.store.refusals
_ENDS = "What is not saved is read again in the next command."


def of_command(step: str) -> str:
    """What to do next, without the memory that ends with the command."""
    return step.replace(_STAYS, _ENDS)
