"""Attention tables from GGUF keys: grouped queries, sliding-window patterns, latent attention (MLA)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from engine.gguf import GgufFile, MetadataArray
from engine.models.family import Family
from engine.models.keys import Keys
from engine.models.rope import local_rope_spec, rope_spec, yarn_factor
from engine.models.spec import AttentionSpec, MlaSpec, QkNorm

_MAX_HEAD = 1 << 16
_MAX_WINDOW = 1 << 31
_LARGEST_GEMMA3_LAYERS = 62  # the 27B model scales scores by the stream's width per head


@dataclass(frozen=True)
class AttentionReader:
    """Reads the attention of all layers. `heads`, `kv_heads`: one number per layer; `reach`: the context of the run."""

    gguf: GgufFile
    family: Family
    keys: Keys
    context: int
    reach: int
    heads: tuple[int, ...]
    kv_heads: tuple[int, ...]

    def layers(self) -> tuple[AttentionSpec, ...]:
        shared = self._latent() if self.family.mla else self._grouped()
        windows = self._windows()
        return tuple(self._layer(shared, i, window) for i, window in enumerate(windows))

    def _layer(self, shared: AttentionSpec, index: int, window: int) -> AttentionSpec:
        heads, kv_heads = self.heads[index], shared.kv_heads if shared.mla else self.kv_heads[index]
        if heads % kv_heads:
            self.keys.fail("attention.head_count_kv", kv_heads, f"a divisor of the {heads} query heads")
        names = (f"blk.{index}.attn_{part}.bias" for part in ("q", "k", "v", "qkv"))
        bias = any(name in self.gguf.tensors for name in names)
        layer = replace(shared, heads=heads, kv_heads=kv_heads, bias=bias)
        if not window:
            return layer
        rope = layer.rope
        if self.family.local_rope:
            rope = local_rope_spec(self.keys, self.family.rope, rope.dims)
        return replace(layer, kind="window", window=window, rope=rope)

    def _windows(self) -> list[int]:
        """Each layer's sliding window in tokens, 0 for full attention."""
        count, size = len(self.heads), self.keys.integer("attention.sliding_window", 0, low=0, high=_MAX_WINDOW)
        if not self.family.window_pattern or not size:
            return [0] * count
        key = "attention.sliding_window_pattern"
        pattern = self.keys.get(key)
        if not isinstance(pattern, MetadataArray):
            period = self.keys.integer(key, self.family.window_pattern, low=0)
            return [size if period == 0 or i % period < period - 1 else 0 for i in range(count)]
        if len(pattern) < count:
            self.keys.fail(key, pattern, f"a number or one flag per layer ({count})")
        return [size if flag else 0 for flag in pattern[:count]]

    def _grouped(self) -> AttentionSpec:
        """What all layers have in common; counts are those of layer 0."""
        keys, heads = self.keys, self.heads[0]
        channels = keys.integer("embedding_length")
        even = channels // heads if channels % heads == 0 else None
        key_dim = keys.integer("attention.key_length", even, high=_MAX_HEAD)
        dims = keys.integer("rope.dimension_count", key_dim, high=key_dim)
        if self.family.whole_rope and dims != key_dim:
            keys.fail("rope.dimension_count", dims, f"the key length {key_dim}")
        return AttentionSpec(
            kind="full",
            heads=heads,
            kv_heads=heads,
            head_dim_k=key_dim,
            head_dim_v=keys.integer("attention.value_length", even, high=_MAX_HEAD),
            scale=self._scale(key_dim, channels, heads),
            rope=rope_spec(self.gguf, keys, self.family.rope, dims, self.context, self.reach),
            qk_norm=self._qk_norm(),
            sinks=self.family.sinks,
        )

    def _scale(self, key_dim: int, channels: int, heads: int) -> float:
        if self.family.scales:
            return self.keys.number("attention.scale", 0.0) or 1 / math.sqrt(key_dim)
        if self.family.embedding_sqrt and len(self.heads) == _LARGEST_GEMMA3_LAYERS:
            return 1 / math.sqrt(channels / heads)
        return 1 / math.sqrt(key_dim)

    def _qk_norm(self) -> QkNorm:
        if self.family.qk_norm == "optional":
            return "head" if "blk.0.attn_q_norm.weight" in self.gguf.tensors else "none"
        return self.family.qk_norm

    def _latent(self) -> AttentionSpec:
        """DeepSeek's form. Files state the sizes of the stored form and, as *_mla, those of a head, or only these."""
        keys = self.keys
        suffix = "_mla" if keys.get("attention.key_length_mla") is not None else ""
        rope = keys.integer("rope.dimension_count", high=_MAX_HEAD)
        key_dim = keys.integer(f"attention.key_length{suffix}", low=rope + 1, high=_MAX_HEAD)
        mla = MlaSpec(
            kv_lora=keys.integer("attention.kv_lora_rank", high=_MAX_HEAD),
            nope=key_dim - rope,
            rope=rope,
            value_dim=keys.integer(f"attention.value_length{suffix}", high=_MAX_HEAD),
            q_lora=self._q_lora(),
        )
        return AttentionSpec(
            kind="full",
            heads=self.heads[0],
            kv_heads=1,
            head_dim_k=mla.kv_lora + rope,
            head_dim_v=0,
            scale=self._latent_magnitude() ** 2 / math.sqrt(key_dim),
            rope=rope_spec(self.gguf, keys, self.family.rope, rope, self.context, self.reach, latent=True),
            mla=mla,
        )

    def _q_lora(self) -> int:
        """0 where q is one product; small models state a rank that is not used."""
        if "blk.0.attn_q.weight" in self.gguf.tensors:
            return 0
        return self.keys.integer("attention.q_lora_rank", high=_MAX_HEAD)

    def _latent_magnitude(self) -> float:
        """YaRN's factor on q and k, which latent attention applies to scores; the key holds 0.1 * mscale_all_dim."""
        factor = yarn_factor(self.gguf, self.keys)
        multiplier = self.keys.number("rope.scaling.yarn_log_multiplier", 0.0) or 0.1
        return 1.0 + multiplier * math.log(factor) if factor > 1 else 1.0
