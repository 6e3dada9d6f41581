"""What the engine says to a reader whose process stays, as it is true of a command, which ends."""

from __future__ import annotations

_WORDS = {
    # engine.store.refusals
    "They go on from memory; saving is tried again.": "What is not saved is read again in the next command.",
    "raise the disk budget": "raise the disk budget (pagekeep cache budget --disk SIZE)",
    "the memory budget in the preferences": "the memory budget (pagekeep cache budget --ram SIZE)",
}


def of_command(step: str) -> str:
    """What to do next, without the memory that ends with the command, and with commands for what the window has."""
    for said, meant in _WORDS.items():
        step = step.replace(said, meant)
    return step
