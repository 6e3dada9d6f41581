"""Small layouts, and rows whose content says which token at which place they belong to."""

from __future__ import annotations

import numpy as np
import xxhash

from engine.kv.cache import KvCache
from engine.kv.layout import PageLayout
from engine.kv.sequence import Sequence
from engine.messages import KvType, Tokens
from engine.models.spec import AttentionSpec, FfnSpec, LayerSpec, ModelSpec, RopeKind, RopeSpec

PAGE = 8


def small_spec(layers: int = 2, windows: tuple[int, ...] = (), head_dim: int = 32) -> ModelSpec:
    rope = RopeSpec(RopeKind.NORM, head_dim, tuple(0.5**i for i in range(head_dim // 2)))
    table = tuple(
        LayerSpec(
            i,
            AttentionSpec(
                "window" if i in windows else "full",
                4,
                2,
                head_dim,
                head_dim,
                0.125,
                rope,
                window=16 * (i in windows),
            ),
            FfnSpec("dense", 64),
        )
        for i in range(layers)
    )
    return ModelSpec("llama", "small", 100, 64, 512, 1e-5, table, True)


def small_layout(
    kv_k: KvType = "f16", kv_v: KvType = "f16", windows: tuple[int, ...] = (), page: int = PAGE
) -> PageLayout:
    return PageLayout.for_spec(small_spec(windows=windows), kv_k, kv_v).sized(page)


def append(sequence: Sequence, tokens: Tokens) -> None:
    """What a step does: reserve, write the rows through the block table, commit."""
    start = sequence.num_tokens
    sequence.reserve(len(tokens))
    whole = (sequence.tokens + tokens).ids
    for position in range(start, start + len(tokens)):
        _write_row(sequence, position, whole)
    sequence.commit(list(tokens.ids), list(tokens.roles))


def check_rows(sequence: Sequence) -> None:
    """Every row that is attended to from the sequence's end holds exactly what `append` wrote for this prefix."""
    ids, layout = sequence.tokens.ids, sequence._cache.layout
    owners = [layer for layer in range(len(layout.layers)) for _ in layout.planes_of(layer)]
    oldest = sequence.num_tokens - layout.lookback
    for position in range(sequence.num_tokens):
        for plane, view, expected in _row(sequence, position, ids):
            if position >= oldest or owners[plane] not in layout.window_layers:
                assert (view == expected).all(), f"row {position} plane {plane} is not what was computed"


def cache_with(tokens: Tokens, layout: PageLayout | None = None) -> tuple[KvCache, Sequence]:
    cache = KvCache(layout or small_layout(), b"model", "test", None, 4 << 20)
    sequence = Sequence(cache)
    append(sequence, tokens)
    return cache, sequence


def _write_row(sequence: Sequence, position: int, ids: tuple[int, ...]) -> None:
    for _, view, value in _row(sequence, position, ids):
        view[:] = value


def _row(sequence: Sequence, position: int, ids: tuple[int, ...]):  # type: ignore[no-untyped-def]
    """(plane, uint8 view [heads, row bytes], expected byte) of one token; the value depends on all tokens up to it."""
    layout = sequence._cache.layout
    page, row = divmod(position, layout.page_tokens)
    memory = _bytes_at(int(sequence.block_table()[page]), layout.payload_bytes)
    seed = xxhash.xxh3_64_intdigest(np.array(ids[: position + 1], np.int32).tobytes())
    for index, plane in enumerate(layout.planes()):
        size = plane.heads * layout.page_tokens * plane.row_bytes
        rows = memory[plane.offset : plane.offset + size].reshape(plane.heads, layout.page_tokens, -1)
        yield index, rows[:, row], (seed >> index) & 0xFF


def _bytes_at(address: int, size: int) -> np.ndarray:  # type: ignore[type-arg]
    import ctypes

    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
