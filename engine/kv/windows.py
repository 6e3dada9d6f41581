"""Sliding-window layers are kept on disk only around anchors: which prefixes can be continued, which pages that takes.

While a sequence grows all layers of every page are written, so that a process that is killed loses no more than what
was not written yet; behind the next anchor the rows of those layers go again.

An anchor is a position at which conversations are likely to go on: the end of the header, of a document, of a turn; and
one now and then in a long prefill, so that a killed one does not begin anew. A prefix can be continued where its last
`lookback` tokens are held in all layers; before that, the full-attention layers are enough.
"""

from __future__ import annotations

from collections.abc import Iterable

CHECKPOINTS = 4  # windows, or pages where they are larger: so far apart may others go on in what one sequence computed


def usable_tokens(spans: Iterable[tuple[int, bool]], lookback: int) -> int:
    """Length of the longest prefix that can be continued.

    `spans`: (tokens, whether all layers hold them), one after another from the beginning.
    """
    best = position = since = 0
    for tokens, whole in spans:
        position += tokens
        if not whole:
            since = position
        elif not since or position - since >= lookback:
            best = position
    return best


def looked_back_on(anchor: int, lookback: int, page_tokens: int) -> range:
    """Indices of the pages that hold the `lookback` tokens before an anchor."""
    return range(max(0, anchor - lookback) // page_tokens, -(-anchor // page_tokens))


def anchors_in(start: int, stop: int, wanted: Iterable[int], lookback: int) -> list[int]:
    """The anchors in a page [start, stop): those that are wanted, and the checkpoints."""
    step = CHECKPOINTS * max(lookback, stop - start)
    checkpoint = stop // step * step
    found = [anchor for anchor in wanted if start < anchor <= stop]
    return [*found, stop] if start < checkpoint <= stop else found
