"""What a turn adds to the next step: its rows, with room for them reserved."""

from __future__ import annotations

from engine.kv.pool import KvMemoryFull
from engine.messages import Role
from engine.runner import RowRun
from engine.turn import Turn

_GENERATED = (int(Role.GENERATED),)


def decode_run(turn: Turn, draft: tuple[int, ...] = ()) -> RowRun:
    """Feeds the last sampled token and what is drafted behind it; without the draft where memory is short."""
    ids = (turn.generated[-1], *draft)
    try:
        turn.kv.reserve(len(ids))
    except KvMemoryFull:
        if not draft:
            raise
        return decode_run(turn)
    return RowRun(turn.kv, ids, _GENERATED * len(ids), turn.position - 1, outputs=len(ids))


def prefill_run(turn: Turn, room: int) -> RowRun:
    """The next slice of the prompt; where all of it is cached, its last token alone, without a K/V write.

    An answer whose KV was lost is computed again with it, and nothing is sampled at its end.
    """
    wanted = turn.wanted
    start, total = turn.kv.num_tokens, len(wanted)
    if start >= total:
        last = total - 1
        return RowRun(turn.kv, wanted.ids[last:], wanted.roles[last:], last, write=False, outputs=1)
    end = min(total, start + room, turn.meets if turn.behind else total)
    turn.kv.reserve(end - start)
    ids, roles = wanted.ids[start:end], wanted.roles[start:end]
    return RowRun(turn.kv, ids, roles, start, outputs=1 if end == total and not turn.generated else 0)
