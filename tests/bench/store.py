"""Measures the KV store: `python tests/bench/store.py [--tokens N] [--folder DIR]`; prints one JSON object.

The layout is SmolLM2-135M's (30 layers, 3 KV heads of 64 channels, f16): 8,000 tokens are 184 MB of random bytes.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from engine.kv.cache import KvCache
from engine.kv.keys import arrays, chain, root_key
from engine.kv.layout import PageLayout
from engine.kv.sequence import Sequence
from engine.kv.shift import KeyRotation
from engine.messages import Tokens
from engine.models.spec import AttentionSpec, FfnSpec, LayerSpec, ModelSpec, RopeKind, RopeSpec
from engine.store import KvStore

FINGERPRINT = b"bench".ljust(32, b"\0")
FIGURES: dict[str, float] = {}


def smollm2() -> ModelSpec:
    attention = AttentionSpec("full", 9, 3, 64, 64, 0.125, RopeSpec(RopeKind.NORM, 64, (1.0,) * 32))
    layers = tuple(LayerSpec(i, attention, FfnSpec("dense", 1536)) for i in range(30))
    return ModelSpec("llama", "SmolLM2-135M", 49152, 576, 8192, 1e-5, layers, True)


@contextmanager
def timed(name: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    FIGURES[name] = round((time.perf_counter() - start) * 1e3, 3)


def open_cache(folder: Path, layout: PageLayout) -> KvCache:
    with timed("open_ms"):
        store = KvStore(folder, layout, FINGERPRINT, name="bench")
    cache = KvCache(layout, FINGERPRINT, "bench", store, 1 << 30)
    with timed("memory_ready_ms"):  # in the product it gets ready while the model loads
        cache.pool.ready()
    return cache


def save(folder: Path, layout: PageLayout, tokens: Tokens) -> None:
    cache = open_cache(folder, layout)
    sequence = Sequence(cache)
    sequence.reserve(len(tokens))
    random = np.random.default_rng(0)
    for buffer in sequence._open:
        buffer.view[:] = random.integers(0, 256, len(buffer.view), np.uint8)
    with timed("save_visible_ms"):
        sequence.commit(tokens.ids, tokens.roles)
        cache.save("bench", sequence)
    with timed("save_durable_ms"):
        cache.flush()
    with timed("save_nothing_new_ms"):
        cache.save("bench", sequence)
    cache.flush()
    cache.disk.close()  # type: ignore[union-attr]


def restore(folder: Path, layout: PageLayout, tokens: Tokens, name: str) -> None:
    cache = open_cache(folder, layout)
    with timed(f"{name}_match_disk_ms"):
        found = cache.match(tokens)
    assert found.tokens == len(tokens)
    cpu = time.process_time()
    with timed(f"{name}_ms"):
        pending = cache.begin_restore(found)
        pending.wait()
        sequence = pending.take()
    FIGURES[f"{name}_cpu_ms"] = round((time.process_time() - cpu) * 1e3, 3)
    assert sequence.num_tokens == len(tokens)
    with timed("match_memory_ms"):
        cache.match(tokens)
    cache.disk.close()  # type: ignore[union-attr]


def keys() -> None:
    ids = np.random.default_rng(1).integers(0, 49152, 100_000).tolist()
    tokens = Tokens.prompt(ids)
    with timed("keys_100k_tokens_ms"):
        chain(root_key(FINGERPRINT), *arrays(tokens), 128)


def long_match() -> None:
    """100,000 tokens resident, of a model with one layer, so that they fit anywhere."""
    spec = smollm2()
    tiny = PageLayout.for_spec(replace(spec, layers=spec.layers[:1]))
    cache = KvCache(tiny, FINGERPRINT, "bench", None, 1 << 30)
    tokens = Tokens.prompt(np.random.default_rng(2).integers(0, 49152, 100_000).tolist())
    sequence = Sequence(cache)
    sequence.reserve(len(tokens))
    sequence.commit(tokens.ids, tokens.roles)
    cache.save("long", sequence)
    with timed("match_100k_tokens_ms"):
        assert cache.match(tokens).tokens == 100_000
    with timed("fork_100k_tokens_ms"):
        sequence.fork()


def operations(layout: PageLayout, tokens: Tokens) -> None:
    """Each apart, without what has to be computed after it; rows are zeros, which costs the same."""
    cache = KvCache(layout, FINGERPRINT, "bench", None, 3 * layout.bytes_per_token * len(tokens))
    sequence, half = Sequence(cache), len(tokens) // 2
    sequence.reserve(len(tokens))
    sequence.commit(tokens.ids, tokens.roles)
    with timed("fork_ms"):
        first, second = sequence.fork(), sequence.fork()
    with timed("keep_first_half_ms"):
        first.keep_first(half)
    with timed("trim_100_ms"):
        second.trim(100)
    with timed("copy_of_the_tail_ms"):
        second.reserve(1)
    with timed("remove_middle_600_ms"):
        cache.remove_range(sequence, half, 600, KeyRotation.of(smollm2(), layout))


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--tokens", type=int, default=8000)
    options.add_argument("--folder", type=Path, default=None)
    chosen = options.parse_args()
    layout = PageLayout.for_spec(smollm2())
    tokens = Tokens.prompt(np.random.default_rng(3).integers(0, 49152, chosen.tokens).tolist())
    FIGURES["bytes"] = layout.bytes_per_token * chosen.tokens
    FIGURES["page_tokens"] = layout.page_tokens
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        save(Path(folder), layout, tokens)
        restore(Path(folder), layout, tokens, "restore")
        restore(Path(folder), layout, tokens, "restore_again")
    operations(layout, tokens)
    keys()
    long_match()
    print(json.dumps(FIGURES, indent=1))


if __name__ == "__main__":
    main()
