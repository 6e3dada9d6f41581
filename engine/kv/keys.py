"""Keys of pages: a 128-bit hash chain over token ids and roles, rooted in the model's fingerprint.

    key_-1 = H("pagekeep page chain 1\\0" || fingerprint)
    key_i  = H(key_{i-1} || ids int32 LE || roles uint8)          H = xxh3-128, big-endian digest

A tail of n tokens has the same form with n ids. The hash is not proof against made-up collisions, so whoever
finds a page by its key also compares the ids.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NewType, cast

import numpy as np
import numpy.typing as npt
import xxhash

from engine.messages import Tokens

Key = NewType("Key", bytes)
Ids = npt.NDArray[np.int32]
Roles = npt.NDArray[np.uint8]

KEY_BYTES = 16
_digest = cast("Callable[[bytes], Key]", xxhash.xxh3_128_digest)  # calling a NewType takes as long as the hash
_ROOT = b"pagekeep page chain 1\0"
_STATE = b"pagekeep state 1\0"
_SHIFTED = b"pagekeep shifted 1\0"


def root_key(fingerprint: bytes) -> Key:
    """The parent of every first page of a model."""
    return _digest(_ROOT + fingerprint)


def page_key(parent: Key, ids: Ids, roles: Roles) -> Key:
    """Key of the page (or tail) that holds `ids` after the tokens that `parent` stands for."""
    return key_of(parent, token_bytes(ids, roles))


def key_of(parent: Key, data: bytes) -> Key:
    """The same from the bytes of the tokens."""
    return _digest(parent + data)


def token_bytes(ids: Ids, roles: Roles) -> bytes:
    """The tokens of a page as they are hashed and compared."""
    return ids.astype("<i4", copy=False).tobytes() + roles.tobytes()


def cut_bytes(ids: Ids, roles: Roles, size: int) -> list[bytes]:
    """`token_bytes` of every full page of a token list."""
    whole, kinds = ids.astype("<i4", copy=False).tobytes(), roles.tobytes()
    return [
        whole[4 * start : 4 * (start + size)] + kinds[start : start + size]
        for start in range(0, len(ids) - size + 1, size)
    ]


def shifted_key(parent: Key, removed: Ids, ids: Ids, roles: Roles) -> Key:
    """Key of a page whose K was rotated after the tokens `removed` were taken out before it.

    What such a page holds has seen the removed tokens, so it must never match a pure one.
    """
    return page_key(salted(parent, removed), ids, roles)


def salted(parent: Key, removed: Ids) -> Key:
    """What stands for the parent in the key of such a page."""
    return _digest(_SHIFTED + parent + removed.astype("<i4", copy=False).tobytes())


def state_key(prefix: Key) -> Key:
    """Under which the state of recurrent layers after a prefix is stored: a leaf beside what continues the prefix."""
    return _digest(_STATE + prefix)


def arrays(tokens: Tokens) -> tuple[Ids, Roles]:
    """(ids int32 [n], roles uint8 [n]) of a token list."""
    ids, roles = tokens.packed
    return np.frombuffer(ids, np.int32), np.frombuffer(roles, np.uint8)


def chain(root: Key, ids: Ids, roles: Roles, page_tokens: int) -> list[Key]:
    """Keys of all full pages of a token list."""
    keys, parent = [], root
    for stop in range(page_tokens, len(ids) + 1, page_tokens):
        parent = page_key(parent, ids[stop - page_tokens : stop], roles[stop - page_tokens : stop])
        keys.append(parent)
    return keys


def common_prefix(first: Ids, first_roles: Roles, second: Ids, second_roles: Roles) -> int:
    """How many leading tokens agree in id and role."""
    ids = _agreeing_bytes(first.tobytes(), second.tobytes()) // first.itemsize
    return min(ids, _agreeing_bytes(first_roles.tobytes(), second_roles.tobytes()))


def _agreeing_bytes(first: bytes, second: bytes) -> int:
    """Leading bytes in common, of the two as large numbers: arrays take longer where the caches are cold."""
    count = min(len(first), len(second))
    differing = int.from_bytes(first[:count], "little") ^ int.from_bytes(second[:count], "little")
    return ((differing & -differing).bit_length() - 1) // 8 if differing else count
