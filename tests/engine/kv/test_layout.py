"""Page layouts: sizes, alignment, groups, and copies between them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from engine.errors import EngineError
from engine.kv.layout import PageLayout, copy_rows
from engine.messages import KvType
from tests.engine.kv.small import small_spec

TYPES: tuple[KvType, ...] = ("f32", "f16", "bf16", "q8", "q4")


@pytest.mark.parametrize(
    ("kv_heads", "head_dim", "kv_type", "expected"),
    [
        (3, 64, "f16", 128),  # SmolLM2-135M: 768 bytes a token
        (8, 128, "f16", 64),  # 4096
        (2, 64, "f16", 128),  # 512
        (1, 64, "f16", 256),  # 256
        (1, 32, "q8", 256),  # less than 64 KB whatever the size
        (4, 64, "f32", 64),  # 2048
    ],
)
def test_the_page_is_the_smallest_with_64_kb_a_layer(
    kv_heads: int, head_dim: int, kv_type: KvType, expected: int
) -> None:
    spec = small_spec(head_dim=head_dim)
    attention = replace(spec.layers[0].attention, kv_heads=kv_heads)
    spec = replace(spec, layers=tuple(replace(layer, attention=attention) for layer in spec.layers))
    assert PageLayout.for_spec(spec, kv_type, kv_type).page_tokens == expected


@pytest.mark.parametrize("key", TYPES)
@pytest.mark.parametrize("value", TYPES)
@pytest.mark.parametrize("tokens", [1, 7, 64])
def test_planes_are_aligned_and_do_not_overlap(key: KvType, value: KvType, tokens: int) -> None:
    layout = PageLayout.for_spec(small_spec(5, windows=(1, 3)), key, value).sized(tokens)
    ranges = sorted((plane.offset, plane.offset + plane.heads * tokens * plane.row_bytes) for plane in layout.planes())
    assert all(start % 64 == 0 for start, _ in ranges)
    assert all(stop <= start for (_, stop), (start, _) in pairwise(ranges))
    assert ranges[-1][1] <= layout.payload_bytes
    for layer in range(5):
        start, stop = layout.layer_range(layer)
        inside = layout.planes_of(layer)
        assert start == inside[0].offset
        assert stop == max(plane.offset + plane.heads * tokens * plane.row_bytes for plane in inside)


def test_groups_are_contiguous_and_ordered() -> None:
    layout = PageLayout.for_spec(small_spec(5, windows=(0, 3)))
    assert [(group.kind, group.layers) for group in layout.groups] == [("full", (1, 2, 4)), ("window", (0, 3))]
    assert layout.groups[0].start == 0
    assert layout.groups[0].stop == layout.groups[1].start
    assert layout.groups[1].stop == layout.payload_bytes
    for group in layout.groups:
        for layer in group.layers:
            start, stop = layout.layer_range(layer)
            assert group.start <= start < stop <= group.stop


@pytest.mark.parametrize("tokens", [1, 5, 63])
def test_rows_survive_packing(tokens: int) -> None:
    layout = PageLayout.for_spec(small_spec(3, windows=(1,)), "q8", "f16")
    packed = layout.sized(tokens)
    source = np.random.default_rng(tokens).integers(0, 256, layout.payload_bytes, np.uint8)
    small, back = np.zeros(packed.payload_bytes, np.uint8), np.zeros(layout.payload_bytes, np.uint8)
    copy_rows(source, layout, small, packed, tokens)
    copy_rows(small, packed, back, layout, tokens)
    for plane in layout.planes():
        size = plane.heads * layout.page_tokens * plane.row_bytes
        cut = slice(plane.offset, plane.offset + size)
        shape = (plane.heads, layout.page_tokens, plane.row_bytes)
        assert (back[cut].reshape(shape)[:, :tokens] == source[cut].reshape(shape)[:, :tokens]).all()
        assert not back[cut].reshape(shape)[:, tokens:].any()


def test_what_cannot_be_stored_is_refused() -> None:
    with pytest.raises(EngineError, match="multiple of 32"):
        PageLayout.for_spec(small_spec(head_dim=48), "q8")
    spec = small_spec()
    recurrent = replace(spec.layers[0], attention=replace(spec.layers[0].attention, kind="recurrent"))
    with pytest.raises(EngineError, match="Recurrent"):
        PageLayout.for_spec(replace(spec, layers=(recurrent,)))


def test_the_description_tells_layouts_apart() -> None:
    spec = small_spec(3)
    layouts = [PageLayout.for_spec(spec, k, v) for k in TYPES for v in TYPES]
    layouts += [layouts[0].sized(32), PageLayout.for_spec(small_spec(3, windows=(1,)))]
    assert len({layout.describe() for layout in layouts}) == len(layouts)
    assert layouts[0].describe() == PageLayout.for_spec(spec, "f32", "f32").describe()
