"""Taking a range out of a sequence: what lies behind it moves up, its K rotated to the new positions.

What moved has seen what was removed, so it is approximate: its pages get a salted chain and never match pure ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.kv.keys import Ids, Key, salted
from engine.kv.layout import PageLayout, Plane
from engine.messages import Shift, Tokens
from engine.models.spec import ModelSpec, RopeKind, RopeSpec

_LARGEST_F16 = 65504.0
Salts = Mapping[int, tuple[Ids, ...]]
Bytes = npt.NDArray[np.uint8]


def salts_of(shifts: tuple[Shift, ...], page_tokens: int) -> dict[int, tuple[Ids, ...]]:
    """Page index -> the removed ids that are hashed into that page's key, in order."""
    salts: dict[int, tuple[Ids, ...]] = {}
    for shift in shifts:
        page = shift.position // page_tokens
        salts[page] = (*salts.get(page, ()), np.array(shift.removed.ids, np.int32))
    return salts


def salt_key(parent: Key, salts: tuple[Ids, ...]) -> Key:
    """What stands for `parent` in the key of a page that has these salts."""
    for removed in salts:
        parent = salted(parent, removed)
    return parent


def next_shifts(shifts: tuple[Shift, ...], position: int, removed: Tokens, page_tokens: int) -> tuple[Shift, ...]:
    """The shifts of a conversation after one more removal: those behind it now count from its position."""
    before = shifts_within(shifts, position, page_tokens)
    behind = [Shift(position, shift.removed) for shift in shifts[len(before) :]]
    return (*before, Shift(position, removed), *behind)


def shifts_within(shifts: tuple[Shift, ...], tokens: int, page_tokens: int) -> tuple[Shift, ...]:
    """Those that still hold when only the first `tokens` tokens are kept: a page is moved as a whole."""
    return tuple(shift for shift in shifts if shift.position // page_tokens < -(-tokens // page_tokens))


@dataclass(frozen=True)
class KeyRotation:
    """Rotates K in a page's payload by a number of positions: a pure rotation, without a magnitude factor."""

    layout: PageLayout
    ropes: tuple[RopeSpec, ...]

    @staticmethod
    def of(spec: ModelSpec, layout: PageLayout) -> KeyRotation:
        return KeyRotation(layout, tuple(layer.attention.rope for layer in spec.layers))

    def rotate(self, payload: Bytes, rows: slice, positions: int) -> None:
        """K of the given rows moves by `positions` (negative: towards the beginning); all layers."""
        for layer, rope in enumerate(self.ropes):
            plane = self.layout.planes_of(layer)[0]
            kind = self.layout.layers[layer].type_k
            stored = _plane(payload, plane, self.layout.page_tokens)[:, rows]
            with np.errstate(invalid="ignore"):  # what a model has made infinite stays so
                stored[:] = _packed(_turned(_floats(stored, kind), rope, positions), kind)


def move_rows(layout: PageLayout, source: Bytes, source_row: int, target: Bytes, target_row: int, count: int) -> None:
    """Copies K and V of `count` tokens, all layers."""
    for plane in layout.planes():
        rows = _plane(source, plane, layout.page_tokens)[:, source_row : source_row + count]
        _plane(target, plane, layout.page_tokens)[:, target_row : target_row + count] = rows


def _plane(payload: Bytes, plane: Plane, tokens: int) -> Bytes:
    size = plane.heads * tokens * plane.row_bytes
    return payload[plane.offset : plane.offset + size].reshape(plane.heads, tokens, plane.row_bytes)


def _floats(stored: Bytes, kind: str) -> npt.NDArray[np.float32]:
    """float32 [heads, rows, channels]"""
    packed = np.ascontiguousarray(stored)
    if kind == "bf16":
        return (packed.view("<u2").astype(np.uint32) << 16).view(np.float32)
    return packed.view("<f4" if kind == "f32" else "<f2").astype(np.float32)


def _packed(values: npt.NDArray[np.float32], kind: str) -> Bytes:
    if kind == "bf16":  # to the nearest, ties to even
        bits = values.view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2").view(np.uint8)
    if kind == "f32":
        return values.view(np.uint8)
    return np.clip(values, -_LARGEST_F16, _LARGEST_F16).astype("<f2").view(np.uint8)


def _turned(x: npt.NDArray[np.float32], rope: RopeSpec, positions: int) -> npt.NDArray[np.float32]:
    angles = positions * np.array(rope.inv_freq, np.float64)
    cosine, sine = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    half = rope.dims // 2
    if rope.kind == RopeKind.NORM:
        first, second = slice(0, rope.dims, 2), slice(1, rope.dims, 2)
    else:
        first, second = slice(0, half), slice(half, rope.dims)
    out = x.copy()
    out[..., first] = x[..., first] * cosine - x[..., second] * sine
    out[..., second] = x[..., first] * sine + x[..., second] * cosine
    return out
