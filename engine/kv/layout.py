"""PageLayout: where the K and V of each layer lie inside a page's payload.

Layout id 1: layers ordered by group (full attention, then sliding window), each layer K then V, all KV heads
together as [kv_heads, tokens, head_dim]; "q8" is a plane of int8 and "q4" one of nibbles, followed by a plane of
float16 scales [kv_heads, tokens, head_dim / 32]. Every plane and layer starts at a multiple of 64 bytes from the
payload's start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from engine.errors import EngineError
from engine.messages import KvType
from engine.models.spec import AttentionSpec, ModelSpec
from kernels.encoding import MOST_ROTATED
from kernels.program import KvLayerLayout

LAYOUT_ID = 1
PAGE_SIZES = (64, 128, 256)
SMALLEST_LAYER_BYTES = 64 << 10  # reads of smaller chunks reach a third of the disk's bandwidth
ALIGNMENT = 64
KV_BLOCK = 32

GroupKind = Literal["full", "window", "recurrent"]
GROUP_KINDS: tuple[GroupKind, ...] = ("full", "window", "recurrent")
_ELEMENT_BYTES: dict[str, float] = {"f32": 4, "f16": 2, "bf16": 2, "q8": 1, "q4": 0.5}
_BLOCK_TYPES = ("q8", "q4")


@dataclass(frozen=True)
class Plane:
    """[heads, tokens, row_bytes] bytes at `offset` of the payload."""

    offset: int
    heads: int
    row_bytes: int


@dataclass(frozen=True)
class LayerGroup:
    """Layers that are stored in one record; they fill the payload bytes [start, stop).

    `window`: tokens a sliding-window layer looks back, 0 for full attention.
    """

    kind: GroupKind
    layers: tuple[int, ...]
    start: int
    stop: int
    window: int = 0


@dataclass(frozen=True)
class PageLayout:
    """Byte layout of a page of `page_tokens` tokens. `layers` are in model order, offsets from the payload's start."""

    layout_id: int
    page_tokens: int
    layers: tuple[KvLayerLayout, ...]
    groups: tuple[LayerGroup, ...]
    stops: tuple[int, ...]
    payload_bytes: int

    @staticmethod
    def for_spec(spec: ModelSpec, kv_type_k: KvType = "f16", kv_type_v: KvType = "f16") -> PageLayout:
        """The layout of a model's pages. EngineError: recurrent layers, or head sizes the type cannot hold."""
        layers = [_unplaced(layer.attention, kv_type_k, kv_type_v) for layer in spec.layers]
        kinds = [_group_of(layer.attention) for layer in spec.layers]
        smallest = min(_layer_size(layer, 1) for layer in layers)
        fitting = [size for size in PAGE_SIZES if size * smallest >= SMALLEST_LAYER_BYTES]
        return _place(layers, kinds, (fitting or PAGE_SIZES[-1:])[0])

    @property
    def lookback(self) -> int:
        """Tokens that the sliding-window layers look back, 0 where they are stored with every page.

        They are where no group of full attention holds the chain of pages together.
        """
        return max(group.window for group in self.groups) if self.groups[0].kind == "full" else 0

    @property
    def window_groups(self) -> tuple[int, ...]:
        """The groups that are stored around anchors only."""
        return tuple(i for i, group in enumerate(self.groups) if group.window) if self.lookback else ()

    @property
    def window_layers(self) -> tuple[int, ...]:
        """Their layers."""
        return tuple(layer for i in self.window_groups for layer in self.groups[i].layers)

    @property
    def bytes_per_token(self) -> int:
        return self.payload_bytes // self.page_tokens

    def layer_range(self, layer: int) -> tuple[int, int]:
        """[start, stop) of the layer's K and V in the payload: what one checksum covers."""
        return self.layers[layer].k_offset, self.stops[layer]

    def layer_bytes(self, layer: int) -> int:
        start, stop = self.layer_range(layer)
        return stop - start

    def planes(self) -> tuple[Plane, ...]:
        """All planes, layer by layer in model order, K before V, data before scales."""
        return tuple(plane for layer in range(len(self.layers)) for plane in self.planes_of(layer))

    def planes_of(self, layer: int) -> tuple[Plane, ...]:
        return tuple(_planes(self.layers[layer], self.page_tokens))

    def sized(self, tokens: int) -> PageLayout:
        """The same layers for a record of `tokens` tokens: the packed form of a tail."""
        kinds: dict[int, tuple[GroupKind, int]] = {
            layer: (group.kind, group.window) for group in self.groups for layer in group.layers
        }
        layout = _place(list(self.layers), [kinds[i] for i in range(len(self.layers))], tokens)
        return replace(layout, layout_id=self.layout_id)

    def describe(self) -> str:
        """A text that is equal exactly when the bytes of pages mean the same; part of the fingerprint."""
        layers = ";".join(
            f"{x.k_offset},{x.v_offset},{x.kv_heads},{x.head_dim_k},{x.head_dim_v},{x.type_k},{x.type_v}"
            for x in self.layers
        )
        groups = ";".join(f"{g.kind},{g.window},{g.start},{g.stop}" for g in self.groups)
        return f"{self.layout_id}|{self.page_tokens}|{layers}|{groups}"


def kv_types_in(described: str) -> str:
    """`f16`, or `q8/q4` for K and V, of the first layer in a text that `describe` made; "" where there is none."""
    layers = described.split("|")[2:3]
    types = layers[0].split(";")[0].split(",")[-2:] if layers else []
    return "/".join(dict.fromkeys(types))


def copy_rows(
    source: npt.NDArray[np.uint8],
    source_layout: PageLayout,
    target: npt.NDArray[np.uint8],
    target_layout: PageLayout,
    tokens: int,
    layers: Iterable[int] | None = None,
) -> None:
    """Copies K and V of the first `tokens` tokens between payloads of the same layers, whatever their page sizes.

    `layers`: only these.
    """
    for layer in range(len(source_layout.layers)) if layers is None else layers:
        for old, new in zip(source_layout.planes_of(layer), target_layout.planes_of(layer), strict=True):
            rows = _rows(source, old, source_layout.page_tokens)
            _rows(target, new, target_layout.page_tokens)[:, :tokens] = rows[:, :tokens]


def _rows(payload: npt.NDArray[np.uint8], plane: Plane, tokens: int) -> npt.NDArray[np.uint8]:
    size = plane.heads * tokens * plane.row_bytes
    return payload[plane.offset : plane.offset + size].reshape(plane.heads, tokens, plane.row_bytes)


def _align(value: int) -> int:
    return -(-value // ALIGNMENT) * ALIGNMENT


def _unplaced(attention: AttentionSpec, type_k: KvType, type_v: KvType) -> KvLayerLayout:
    for kind, channels in ((type_k, attention.head_dim_k), (type_v, attention.head_dim_v)):
        if kind not in _ELEMENT_BYTES:
            raise EngineError(f"Unknown KV type {kind!r}.", f"Known: {', '.join(_ELEMENT_BYTES)}.")
        if kind in _BLOCK_TYPES and channels % KV_BLOCK:
            raise EngineError(
                f"KV type {kind} does not fit this model.",
                f"Its heads have {channels} channels, {kind} needs a multiple of {KV_BLOCK}.",
                "Use f16.",
            )
        if kind == "q4" and (not attention.head_dim_v or channels > MOST_ROTATED):
            raise EngineError(
                "KV type q4 does not fit this model.",
                f"It rotates heads of at most {MOST_ROTATED} channels, and no latent rows.",
                "Use q8.",
            )
    return KvLayerLayout(0, 0, attention.kv_heads, attention.head_dim_k, attention.head_dim_v, type_k, type_v)


def _group_of(attention: AttentionSpec) -> tuple[GroupKind, int]:
    if attention.kind == "recurrent":
        raise EngineError(
            "Recurrent layers have no pages.", "Their state is kept in snapshots, which no backend takes yet."
        )
    return attention.kind, attention.window if attention.kind == "window" else 0


def _half_planes(kind: str, offset: int, heads: int, channels: int, tokens: int) -> Iterator[Plane]:
    data = Plane(offset, heads, int(channels * _ELEMENT_BYTES[kind]))
    yield data
    if kind in _BLOCK_TYPES:
        yield Plane(_align(offset + heads * tokens * data.row_bytes), heads, channels // KV_BLOCK * 2)


def _planes(layer: KvLayerLayout, tokens: int) -> Iterator[Plane]:
    yield from _half_planes(layer.type_k, layer.k_offset, layer.kv_heads, layer.head_dim_k, tokens)
    yield from _half_planes(layer.type_v, layer.v_offset, layer.kv_heads, layer.head_dim_v, tokens)


def _stop(planes: Iterable[Plane], tokens: int) -> int:
    return max(plane.offset + plane.heads * tokens * plane.row_bytes for plane in planes)


def _at(layer: KvLayerLayout, offset: int, tokens: int) -> KvLayerLayout:
    keys = _half_planes(layer.type_k, offset, layer.kv_heads, layer.head_dim_k, tokens)
    return replace(layer, k_offset=offset, v_offset=_align(_stop(keys, tokens)))


def _layer_size(layer: KvLayerLayout, tokens: int) -> int:
    return _stop(_planes(_at(layer, 0, tokens), tokens), tokens)


def _place(layers: list[KvLayerLayout], kinds: list[tuple[GroupKind, int]], tokens: int) -> PageLayout:
    placed, stops = list(layers), [0] * len(layers)
    groups, position = [], 0
    for kind, window in sorted(set(kinds), key=lambda entry: (GROUP_KINDS.index(entry[0]), entry[1])):
        members, start = tuple(i for i, entry in enumerate(kinds) if entry == (kind, window)), position
        for index in members:
            placed[index] = _at(layers[index], position, tokens)
            stops[index] = _stop(_planes(placed[index], tokens), tokens)
            position = _align(stops[index])
        groups.append(LayerGroup(kind, members, start, position, window))
    return PageLayout(LAYOUT_ID, tokens, tuple(placed), tuple(groups), tuple(stops), position)
