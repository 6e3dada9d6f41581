"""What of a turn's prompt came back, and what did not: the line of the operation log."""

from __future__ import annotations

from engine.kv.log import KvLog
from engine.turn import Turn


def log_reuse(log: KvLog, turn: Turn) -> None:
    """Once, unless something has changed since."""
    if turn.logged:
        return
    turn.logged = True
    difference = turn.difference()
    log.add(
        "info",
        "reuse",
        conversation=turn.request.conversation,
        tokens=len(turn.prompt),
        cut=max(0, turn.request.history_tokens - turn.reused.total) or None,
        memory=turn.reused.memory,
        disk=turn.reused.disk,
        bytes_read=turn.bytes_read or None,
        milliseconds=turn.clock.restore,
        reason=turn.reuse_ended(),
        position=difference.position if difference else None,
        expected=difference.expected if difference else None,
        found=difference.found if difference else None,
    )
