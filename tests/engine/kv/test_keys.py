"""The key chain: stable across versions of the program, and different for anything that differs."""

from __future__ import annotations

import numpy as np

from engine.kv.keys import arrays, chain, common_prefix, page_key, root_key, shifted_key
from engine.messages import Tokens

IDS = np.arange(1000, dtype=np.int32) * 7919 % 49152
ROLES = (np.arange(1000) % 3 == 0).astype(np.uint8)


def test_keys_are_those_of_the_format() -> None:
    """Fixed: if this fails, every store in the world has become useless."""
    root = root_key(bytes(range(32)))
    assert root.hex() == "5bac0d628c7eb87ee2588bc9f964719d"
    assert page_key(root, IDS[:64], ROLES[:64]).hex() == "32125add13cccae5b527207b61ebb5c8"
    assert shifted_key(root, IDS[:8], IDS[64:128], ROLES[64:128]).hex() == "a562fd7af9fbe99f3eb5fb838860b7d0"


def test_each_key_depends_on_all_tokens_before() -> None:
    keys = chain(root_key(b"m"), IDS, ROLES, 64)
    assert len(keys) == len(set(keys)) == 15
    for position in (0, 63, 64, 500, 959):
        ids, roles = IDS.copy(), ROLES.copy()
        ids[position] += 1
        roles[(position + 1) % 960] ^= 1
        for changed in (chain(root_key(b"m"), ids, ROLES, 64), chain(root_key(b"m"), IDS, roles, 64)):
            same = [a == b for a, b in zip(keys, changed, strict=True)]
            assert same == sorted(same, reverse=True)
            assert not same[-1]
    assert not set(keys) & set(chain(root_key(b"n"), IDS, ROLES, 64))


def test_a_shifted_page_never_has_a_pure_key() -> None:
    root = root_key(b"m")
    assert shifted_key(root, IDS[:0], IDS[:64], ROLES[:64]) != page_key(root, IDS[:64], ROLES[:64])


def test_common_prefix_counts_ids_and_roles() -> None:
    ids, roles = IDS.copy(), ROLES.copy()
    assert common_prefix(IDS, ROLES, ids, roles) == 1000
    ids[700] += 1
    roles[300] ^= 1
    assert common_prefix(IDS, ROLES, ids, ROLES) == 700
    assert common_prefix(IDS, ROLES, ids, roles) == 300
    assert common_prefix(IDS[:0], ROLES[:0], ids, roles) == 0


def test_token_lists_become_arrays() -> None:
    ids, roles = arrays(Tokens((1, 2, 70000), (0, 1, 0)))
    assert (ids.tolist(), roles.tolist(), ids.dtype, roles.dtype) == ([1, 2, 70000], [0, 1, 0], np.int32, np.uint8)


def test_joined_token_lists_pack_like_whole_ones() -> None:
    first, second = Tokens((1, 70_000, 3), (0, 1, 0)), Tokens.generated([9, 2**31 - 1])
    whole = Tokens(first.ids + second.ids, first.roles + second.roles)
    for joined in (first + second, first + Tokens() + second, Tokens() + first + second):
        assert joined == whole
        assert joined.packed == whole.packed
        ids, roles = arrays(joined)
        assert (ids.tolist(), roles.tolist()) == (list(whole.ids), list(whole.roles))
