"""Rope tables: plain, linear, YaRN and factors against the formulas written out pair by pair."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from engine.errors import ModelFileError
from engine.gguf import GgufFile
from engine.models.families import spec_from_gguf
from engine.models.spec import RopeSpec
from tests.engine.gguf_bytes import F32, STRING, U32
from tests.engine.parity import DATA
from tests.engine.tiny_model import Changes, Shapes, saved

DIMS, BASE = 64, 10000.0
WIDE: Changes = {"llama.attention.key_length": (U32, DIMS), "llama.attention.value_length": (U32, DIMS)}
PLAIN = [BASE ** (-2 * i / DIMS) for i in range(DIMS // 2)]


def rope_of(folder: Path, keys: Changes | None = None, shapes: Shapes | None = None) -> RopeSpec:
    with GgufFile.open(saved(folder, {**WIDE, **(keys or {})}, shapes)) as file:
        return spec_from_gguf(file).layers[0].attention.rope


def test_plain_and_none(tmp_path: Path) -> None:
    assert rope_of(tmp_path).inv_freq == pytest.approx(PLAIN)
    ignored: Changes = {"llama.rope.scaling.type": (STRING, "none"), "llama.rope.scaling.factor": (F32, 4.0)}
    assert rope_of(tmp_path, ignored).inv_freq == pytest.approx(PLAIN)
    assert rope_of(tmp_path).magnitude == 1.0


@pytest.mark.parametrize("key", ["llama.rope.scaling.factor", "llama.rope.scale_linear"])
def test_linear_is_what_a_factor_alone_means(tmp_path: Path, key: str) -> None:
    assert rope_of(tmp_path, {key: (F32, 4.0)}).inv_freq == pytest.approx([a / 4 for a in PLAIN])


def test_factor_zero_means_none(tmp_path: Path) -> None:
    assert rope_of(tmp_path, {"llama.rope.scaling.factor": (F32, 0.0)}).inv_freq == pytest.approx(PLAIN)


def yarn_pair(i: int, factor: float, original: int) -> float:
    """One pair: interpolated above the slow border, kept below the fast one, blended between."""

    def border(turns: float) -> float:
        return DIMS * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(BASE))

    low, high = max(0, math.floor(border(32))), min(DIMS - 1, math.ceil(border(1)))
    interpolated = min(1.0, max(0.0, (i - low) / max(0.001, high - low)))
    return PLAIN[i] / factor * interpolated + PLAIN[i] * (1 - interpolated)


def test_yarn(tmp_path: Path) -> None:
    keys: Changes = {
        "llama.rope.scaling.type": (STRING, "yarn"),
        "llama.rope.scaling.factor": (F32, 8.0),
        "llama.rope.scaling.original_context_length": (U32, 2048),
    }
    rope = rope_of(tmp_path, keys)
    assert rope.inv_freq == pytest.approx([yarn_pair(i, 8.0, 2048) for i in range(DIMS // 2)])
    assert rope.inv_freq[0] == PLAIN[0]
    assert rope.inv_freq[-1] == pytest.approx(PLAIN[-1] / 8)
    assert rope.magnitude == pytest.approx(1 + 0.1 * math.log(8))
    scaled = rope_of(tmp_path, {**keys, "llama.rope.scaling.attn_factor": (F32, 0.5)})
    assert scaled.magnitude == pytest.approx(rope.magnitude / 2)


def test_factors_divide_the_angles() -> None:
    with GgufFile.open(DATA / "models" / "llama-tied-ropefreqs-f32.gguf") as file:
        factors = file.raw("rope_freqs.weight").view("<f4").astype(np.float64)
        rope = spec_from_gguf(file).layers[0].attention.rope
    plain = 500000.0 ** (-np.arange(0, 32, 2) / 32)
    assert factors.max() > 2
    np.testing.assert_allclose(rope.inv_freq, plain / factors, rtol=1e-12)


def test_factors_of_another_size_are_refused(tmp_path: Path) -> None:
    assert rope_of(tmp_path, shapes={"rope_freqs.weight": (32,)}).inv_freq == pytest.approx(PLAIN)
    with pytest.raises(ModelFileError, match=r"'rope_freqs\.weight'"):
        rope_of(tmp_path, shapes={"rope_freqs.weight": (16,)})


def test_the_magnitude_goes_to_the_scores_of_latent_attention_only(tmp_path: Path) -> None:
    keys: Changes = {
        "llama.rope.scaling.type": (STRING, "yarn"),
        "llama.rope.scaling.factor": (F32, 8.0),
        "llama.rope.scaling.yarn_log_multiplier": (F32, 0.1),
    }
    assert rope_of(tmp_path, keys).magnitude == pytest.approx(1 + 0.1 * math.log(8))


@pytest.mark.parametrize(("context", "name"), [(32, "short"), (33, "long")])
def test_the_context_of_the_run_decides_between_the_factors_of_longrope(
    tmp_path: Path, context: int, name: str
) -> None:
    keys: Changes = {
        **WIDE,
        "llama.context_length": (U32, 64),
        "llama.rope.scaling.type": (STRING, "longrope"),
        "llama.rope.scaling.original_context_length": (U32, 32),
        "llama.rope.scaling.attn_factor": (F32, 1.25),
    }
    both: Shapes = {"rope_factors_long.weight": (32,), "rope_factors_short.weight": (32,)}
    path = saved(tmp_path, keys, both)
    factors = {"short": np.linspace(1, 2, 32, dtype="<f4"), "long": np.linspace(3, 9, 32, dtype="<f4")}
    with GgufFile.open(path) as file:
        places = {kind: file.tensors[f"rope_factors_{kind}.weight"].offset for kind in factors}
    data = bytearray(path.read_bytes())
    for kind, at in places.items():
        data[at : at + 128] = factors[kind].tobytes()
    path.write_bytes(data)
    with GgufFile.open(path) as file:
        rope = spec_from_gguf(file, context).layers[0].attention.rope
        own = spec_from_gguf(file).layers[0].attention.rope
    assert rope.inv_freq == pytest.approx(np.array(PLAIN) / factors[name])
    assert own.inv_freq == pytest.approx(np.array(PLAIN) / factors["long"])
    assert rope.magnitude == 1.25
