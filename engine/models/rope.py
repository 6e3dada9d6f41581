"""Rotary position tables from GGUF keys: plain, linear, YaRN, and per-pair factors (`rope_freqs`, LongRoPE's two sets).

Formulas: RoPE (Su et al. 2021), YaRN (Peng et al. 2023, section 3), LongRoPE (Ding et al. 2024): one set of factors
within the original context, another in a longer one, whatever the text's length. The constants GGUF files assume:
beta_fast 32, beta_slow 1, extrapolation factor 1; a missing scaling type means linear.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from engine.errors import UnsupportedModel
from engine.gguf import GgufFile
from engine.models.keys import Keys
from engine.models.spec import RopeKind, RopeSpec

_BETA_FAST, _BETA_SLOW = 32.0, 1.0
FACTORS = "rope_freqs.weight"
LONG_FACTORS, SHORT_FACTORS = "rope_factors_long.weight", "rope_factors_short.weight"
_KINDS = ("none", "linear", "yarn", "longrope")
_Angles = npt.NDArray[np.float64]


def local_rope_spec(keys: Keys, kind: RopeKind, dims: int) -> RopeSpec:
    """The table of sliding-window layers: a base of their own, never scaled."""
    return RopeSpec(kind, dims, tuple(_plain_angles(keys, "rope.freq_base_swa", dims).tolist()))


def rope_spec(
    gguf: GgufFile, keys: Keys, kind: RopeKind, dims: int, context: int, reach: int, *, latent: bool = False
) -> RopeSpec:
    """The table for `dims` rotated channels; `context` is the fallback for the original context length, `reach` that
    of the run. `latent`: the family may apply YaRN's magnitude to scores instead."""
    original = keys.integer("rope.scaling.original_context_length", context)
    angles = _plain_angles(keys, "rope.freq_base", dims) / _factors(gguf, keys, dims, reach > original)
    base = keys.number("rope.freq_base", 10000.0)
    scaling, factor = _scaling(keys, gguf)
    magnitude = keys.number("rope.scaling.attn_factor", 1.0)
    if scaling == "yarn":
        angles = angles * _yarn_blend(dims, base, factor, original)
        on_scores = latent and keys.number("rope.scaling.yarn_log_multiplier", 0.0)
        magnitude *= 1.0 if on_scores or factor <= 1 else 1.0 + 0.1 * math.log(factor)
    elif scaling in ("linear", "longrope"):
        angles = angles / factor
    return RopeSpec(kind, dims, tuple(angles.tolist()), magnitude)


def yarn_factor(gguf: GgufFile, keys: Keys) -> float:
    """The factor by which YaRN stretches the context; 1 without YaRN."""
    scaling, factor = _scaling(keys, gguf)
    return factor if scaling == "yarn" else 1.0


def _plain_angles(keys: Keys, base_key: str, dims: int) -> _Angles:
    if dims % 2:
        keys.fail("rope.dimension_count", dims, "an even number")
    base = keys.number(base_key, 10000.0)
    if base <= 1:
        keys.fail(base_key, base, "a number above 1")
    return np.asarray(base ** (-np.arange(0, dims, 2, dtype=np.float64) / dims))


def _scaling(keys: Keys, gguf: GgufFile) -> tuple[str, float]:
    kind = keys.text("rope.scaling.type", "linear")
    if kind not in _KINDS:
        raise UnsupportedModel(
            f"The model file {gguf.path.name} cannot be used.",
            f"Rope scaling {kind!r} is not supported; supported: {', '.join(_KINDS)}.",
            "Choose another model.",
        )
    factor = keys.number("rope.scaling.factor", keys.number("rope.scale_linear", 1.0))
    if factor < 0:
        keys.fail("rope.scaling.factor", factor, "a positive number")
    return kind, factor or 1.0


def _factors(gguf: GgufFile, keys: Keys, dims: int, long: bool) -> _Angles:
    """Divisors per pair (Llama 3 files store them as a tensor, LongRoPE's as two), ones without the tensor."""
    name = FACTORS if FACTORS in gguf.tensors else LONG_FACTORS if long else SHORT_FACTORS
    info = gguf.tensors.get(name)
    if info is None:
        return np.ones(dims // 2)
    factors = gguf.raw(name).view("<f4").astype(np.float64) if info.type_name == "F32" else np.empty(0)
    if factors.shape != (dims // 2,) or not (factors > 0).all():
        keys.fail("rope.dimension_count", dims, f"{2 * info.cols} to fit tensor '{name}' (F32, positive)")
    return factors


def _yarn_blend(dims: int, base: float, factor: float, original: int) -> _Angles:
    """Per pair: 1 where the angle is kept (short wavelengths), 1 / factor where it is interpolated."""
    low, high = (_corrected_pair(dims, base, original, beta) for beta in (_BETA_FAST, _BETA_SLOW))
    low, high = max(0.0, math.floor(low)), min(dims - 1.0, math.ceil(high))
    kept = 1 - np.clip((np.arange(dims // 2) - low) / max(0.001, high - low), 0, 1)
    return np.asarray((1 - kept) / factor + kept)


def _corrected_pair(dims: int, base: float, original: int, beta: float) -> float:
    """The pair that turns `beta` times over the original context."""
    return dims * math.log(original / (beta * 2 * math.pi)) / (2 * math.log(base))
