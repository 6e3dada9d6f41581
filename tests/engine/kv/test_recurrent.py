"""Snapshots of recurrent layers, with a gated linear recurrence as the reference layer."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from engine.kv.cache import KvCache
from engine.kv.recurrent import Snapshots, StateLayout, rewind, steps, take_snapshot
from engine.kv.sequence import Sequence
from engine.messages import Tokens
from engine.models.spec import ModelSpec, RecurrentSpec
from tests.engine.kv.small import PAGE, append, small_layout, small_spec

LAYER = RecurrentSpec(heads=3, key_dim=5, value_dim=7, channels=11, convolved=4)
Floats = npt.NDArray[np.float32]


def _spec() -> ModelSpec:
    """Two recurrent layers around one of full attention."""
    layers = small_spec(3).layers
    attention = replace(layers[0].attention, kind="recurrent", recurrent=LAYER)
    return replace(small_spec(3), layers=tuple(replace(x, attention=attention) if x.index != 1 else x for x in layers))


LAYOUT = StateLayout.for_spec(_spec())


class GatedLayers:
    """S = gate S + k v^T per head and layer, over the last inputs of a convolution: a small engine.kv LayerState."""

    def __init__(self) -> None:
        self.buffer = np.zeros(LAYOUT.bytes, np.uint8)

    def save(self) -> npt.NDArray[np.uint8]:
        return self.buffer.copy()

    def load(self, state: npt.NDArray[np.uint8] | None) -> None:
        self.buffer[:] = 0 if state is None else state

    def step(self, ids: tuple[int, ...]) -> list[Floats]:
        """Token by token in ascending order, so that steps of any length give the same bits."""
        return [np.concatenate([self._token(layer, token) for layer in range(len(LAYOUT.ranges))]) for token in ids]

    def _token(self, layer: int, token: int) -> Floats:
        start, stop = LAYOUT.ranges[layer]
        state = self.buffer[start:stop].view(np.float32)
        matrices = state[: 3 * 5 * 7].reshape(3, 5, 7)
        inputs = state[3 * 5 * 7 :].reshape(3, 11)
        drawn = np.random.default_rng(1000 * layer + token).standard_normal(11 + 3 * (5 + 5 + 7 + 1)).astype(np.float32)
        mixed = inputs.sum(0) + drawn[:11]
        inputs[:-1], inputs[-1] = inputs[1:].copy(), drawn[:11]
        k, q, v, gate = np.split(drawn[11:].reshape(3, 18), [5, 10, 17], axis=1)
        matrices *= 1 / (1 + np.exp(-gate[..., None]))
        matrices += (k * mixed[:5])[..., None] * v[:, None]
        return np.einsum("hk,hkv->hv", q, matrices).ravel()


class Run:
    """A sequence with its recurrent state, as a runner would carry both."""

    def __init__(self, cache: KvCache, snapshots: Snapshots) -> None:
        self.sequence, self.layers, self.snapshots = Sequence(cache), GatedLayers(), snapshots
        self.replayed = 0

    def compute(self, tokens: Tokens, anchors: tuple[int, ...] = ()) -> Floats:
        """Goes on through `tokens` (the whole list) to their end; the output of the last token."""
        out: list[Floats] = []
        for start, stop in steps(self.sequence.num_tokens, len(tokens), PAGE, anchors):
            out = self.layers.step(tokens.ids[start:stop])
            append(self.sequence, Tokens(tokens.ids[start:stop], tokens.roles[start:stop]))
            self.replayed += stop - start
            if stop in anchors or stop == len(tokens):
                take_snapshot(self.snapshots, self.sequence, self.layers)
        return out[-1]

    def rewind(self, tokens: int) -> int:
        return rewind(self.snapshots, self.sequence, tokens, self.layers)


@pytest.fixture
def cache() -> KvCache:
    return KvCache(small_layout(), b"model", "test", None, 4 << 20)


def _text(count: int, seed: int) -> Tokens:
    return Tokens.prompt(random.Random(seed).choices(range(90), k=count))


def _straight(tokens: Tokens) -> Floats:
    return GatedLayers().step(tokens.ids)[-1]


def test_the_layout_holds_every_recurrent_layer_apart() -> None:
    assert LAYOUT.layers == (0, 2)
    size = 4 * (3 * 5 * 7 + 11 * 3)
    assert LAYOUT.ranges == ((0, size), (576, 576 + size))
    assert LAYOUT.bytes % 64 == 0
    assert StateLayout.for_spec(small_spec()).bytes == 0


def test_steps_end_at_borders_and_anchors() -> None:
    assert steps(3, 21, 8, (5, 16, 30)) == [(3, 5), (5, 8), (8, 16), (16, 21)]
    assert steps(8, 16, 8, ()) == [(8, 16)]
    assert steps(4, 4, 8, ()) == []


def test_going_back_takes_the_nearest_snapshot_and_replays(cache: KvCache) -> None:
    document, turns = _text(45, 1), _text(30, 2)
    run = Run(cache, Snapshots(1 << 20, LAYOUT))
    run.compute(document + turns, anchors=(11, 45))
    run.replayed = 0
    assert run.rewind(60) == 45, "the document's end, in the middle of a page"
    edited = Tokens((document + turns).ids[:60], (document + turns).roles[:60]) + _text(9, 3)
    assert (run.compute(edited) == _straight(edited)).all()
    assert run.replayed == len(edited) - 45
    assert run.rewind(44) == 11
    assert run.rewind(10) == 0
    assert (run.compute(document) == _straight(document)).all()


def test_an_anchor_at_a_page_border_is_found(cache: KvCache) -> None:
    tokens = _text(5 * PAGE, 4)
    run = Run(cache, Snapshots(1 << 20, LAYOUT))
    run.compute(tokens, anchors=(3 * PAGE,))
    assert run.rewind(5 * PAGE) == 5 * PAGE, "its own end"
    assert run.rewind(5 * PAGE - 1) == 3 * PAGE


def test_another_conversation_starts_from_the_documents_snapshot(cache: KvCache) -> None:
    document, snapshots = _text(45, 1), Snapshots(1 << 20, LAYOUT)
    Run(cache, snapshots).compute(document + _text(20, 5), anchors=(45,))
    other = Run(cache, snapshots)
    mine = document + _text(7, 6)
    other.sequence = cache.sequence(cache.match(mine))
    reached = other.sequence.num_tokens
    assert reached >= 40
    position = other.rewind(reached)
    assert position == (45 if reached >= 45 else 0)
    assert (other.compute(mine) == _straight(mine)).all()


@pytest.mark.parametrize("seed", range(6))
def test_any_way_back_and_forth_equals_a_straight_run(cache: KvCache, seed: int) -> None:
    """Also where the budget holds three snapshots only: then more is replayed."""
    chance, snapshots = random.Random(seed), Snapshots(3 * LAYOUT.bytes, LAYOUT)
    run, tokens = Run(cache, snapshots), _text(chance.randint(1, 60), seed)
    for turn in range(8):
        assert (run.compute(tokens, (chance.randint(1, 60),)) == _straight(tokens)).all()
        assert snapshots.bytes <= 3 * LAYOUT.bytes
        cut = chance.randint(0, len(tokens) - 1)
        assert run.rewind(cut) <= cut
        tokens = Tokens(tokens.ids[:cut], tokens.roles[:cut]) + _text(chance.randint(1, 30), 100 * seed + turn)
