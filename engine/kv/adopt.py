"""Taking over pages that another sequence has computed meanwhile."""

from __future__ import annotations

from engine.kv.keys import Ids, Key, Roles, arrays, page_key
from engine.kv.sequence import Sequence
from engine.kv.tree import PageTree
from engine.messages import Tokens


def next_page(sequence: Sequence, tokens: Tokens) -> tuple[Ids, Roles] | None:
    """Ids and roles of the page that follows the sequence's sealed pages in `tokens`; None if they do not fill it."""
    start = len(sequence.pages) * sequence.page_tokens
    stop = start + sequence.page_tokens
    if len(tokens) < stop:
        return None
    return arrays(Tokens(tokens.ids[start:stop], tokens.roles[start:stop]))


def following_keys(sequence: Sequence, tokens: Tokens, most: int) -> list[Key]:
    """Keys of the pages that the sequence computes next on its way through `tokens`, as far as those fill them."""
    (ids, roles), size, keys, parent = arrays(tokens), sequence.page_tokens, list[Key](), sequence.chain_key
    start = len(sequence.pages) * size
    for stop in range(start + size, min(len(tokens), start + most * size) + 1, size):
        parent = page_key(parent, ids[stop - size : stop], roles[stop - size : stop])
        keys.append(parent)
    return keys


def adopt(tree: PageTree, sequence: Sequence, tokens: Tokens) -> int:
    """Extends the sequence, which is a prefix of `tokens`, by resident pages; returns the tokens gained."""
    before = sequence.num_tokens
    while (following := next_page(sequence, tokens)) is not None:
        page = tree.find(page_key(sequence.chain_key, *following), *following)
        if page is None or not page.whole or sequence.path_to(page) is None:
            break
        sequence.extend(page)
        tree.touch(page)
    return sequence.num_tokens - before
