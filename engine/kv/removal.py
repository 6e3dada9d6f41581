"""Taking a range of tokens out of a sequence: what follows is moved up, and is approximate from then on."""

from __future__ import annotations

import numpy as np

from engine.kv.layout import PageLayout
from engine.kv.sequence import Sequence
from engine.kv.shift import KeyRotation, move_rows
from engine.messages import Tokens


def remove_range(sequence: Sequence, layout: PageLayout, start: int, count: int, rotation: KeyRotation) -> Sequence:
    """A sequence without the tokens [start, start + count).

    KvMemoryFull: no room for the moved pages. The given sequence is not changed.
    """
    tokens = sequence.tokens
    rest = Tokens(tokens.ids[start + count :], tokens.roles[start + count :])
    cut = -(-start // layout.page_tokens)  # the page that `start` lies in keeps its own salts
    behind = [page.salts for page in sequence.pages[cut:]]
    behind += [sequence.salts] if len(sequence.pages) >= cut else []
    result = sequence.fork()
    try:
        result.keep_first(start)
        if not len(rest):
            return result
        result.reserve(len(rest))
        _move(layout, sequence, start + count, result, start, len(rest), rotation)
        removed = np.array(tokens.ids[start : start + count], np.int32)
        result.salts = (*result.salts, removed, *(salt for salts in behind for salt in salts))
        result.commit(rest.ids, rest.roles)
    except BaseException:
        result.release()
        raise
    return result


def _move(
    layout: PageLayout, source: Sequence, source_start: int, target: Sequence, start: int, count: int,
    rotation: KeyRotation,
) -> None:  # fmt: skip
    size, pool = layout.page_tokens, target._cache.pool
    old = [page.buffer for page in source.pages] + source.open_buffers()
    first, new = start // size, target.open_buffers()
    done = 0
    while done < count:
        at, to = source_start + done, start + done
        n = min(count - done, size - at % size, size - to % size)
        page, moved = old[at // size], new[to // size - first]
        move_rows(layout, page.view, at % size, moved.view, to % size, n)
        rotation.rotate(moved.view, slice(to % size, to % size + n), start - source_start)
        pool.passes_on(page, moved)
        done += n
