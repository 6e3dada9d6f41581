"""The tensors of a feed-forward part: dense, or a router with experts and an optional shared part."""

from __future__ import annotations

from dataclasses import dataclass

from engine.gguf import TensorInfo
from engine.models.binder import Binder
from engine.models.spec import ExpertSpec, FfnSpec


@dataclass(frozen=True)
class DenseTensors:
    """Matrices have shape (inputs, outputs)."""

    gate: TensorInfo
    up: TensorInfo
    down: TensorInfo
    gate_bias: TensorInfo | None = None
    up_bias: TensorInfo | None = None
    down_bias: TensorInfo | None = None


@dataclass(frozen=True)
class MoeTensors:
    """`gate[e]`, `up[e]`, `down[e]`: matrices of expert e, views into one tensor or tensors of their own.

    Biases of experts are [experts, rows]; `choice_bias` [experts] is added for choosing only. `shared_gate`:
    [channels], its product with the input opens the shared part through a sigmoid.
    """

    router: TensorInfo
    router_bias: TensorInfo | None
    choice_bias: TensorInfo | None
    gate: tuple[TensorInfo, ...]
    up: tuple[TensorInfo, ...]
    down: tuple[TensorInfo, ...]
    gate_bias: TensorInfo | None = None
    up_bias: TensorInfo | None = None
    down_bias: TensorInfo | None = None
    shared: DenseTensors | None = None
    shared_gate: TensorInfo | None = None


def bind_ffn(binder: Binder, at: str, channels: int, ffn: FfnSpec) -> DenseTensors | MoeTensors:
    """The tensors of the block `at` ("blk.3."); errors as engine.models.tensors.bind."""
    if ffn.experts is not None:
        return _mixture(binder, at, channels, ffn.width, ffn.experts)
    dense = _dense(binder, at, "", channels, ffn.width)
    return DenseTensors(
        dense.gate,
        dense.up,
        dense.down,
        gate_bias=binder.optional(f"{at}ffn_gate.bias", ffn.width),
        up_bias=binder.optional(f"{at}ffn_up.bias", ffn.width),
        down_bias=binder.optional(f"{at}ffn_down.bias", channels),
    )


def _dense(binder: Binder, at: str, suffix: str, channels: int, width: int) -> DenseTensors:
    return DenseTensors(
        gate=binder.matrix(f"{at}ffn_gate{suffix}.weight", channels, width),
        up=binder.matrix(f"{at}ffn_up{suffix}.weight", channels, width),
        down=binder.matrix(f"{at}ffn_down{suffix}.weight", width, channels),
    )


def _mixture(binder: Binder, at: str, channels: int, width: int, experts: ExpertSpec) -> MoeTensors:
    count, shared = experts.count, experts.shared_width
    gate, up = _gates_and_ups(binder, at, channels, width, count)
    biases = {
        f"{part}_bias": binder.vector(f"{at}ffn_{part}_exps.bias", rows, count) if experts.biases else None
        for part, rows in (("gate", width), ("up", width), ("down", channels))
    }
    return MoeTensors(
        router=binder.matrix(f"{at}ffn_gate_inp.weight", channels, count),
        router_bias=binder.optional(f"{at}ffn_gate_inp.bias", count),
        choice_bias=binder.optional(f"{at}exp_probs_b.bias", count),
        gate=gate,
        up=up,
        down=_experts(binder, at, "down", width, channels, count),
        shared=_dense(binder, at, "_shexp", channels, shared) if shared else None,
        shared_gate=_shared_gate(binder, at, channels, experts),
        **biases,
    )


def _shared_gate(binder: Binder, at: str, channels: int, experts: ExpertSpec) -> TensorInfo | None:
    wanted = experts.shared_gate and experts.shared_width
    return binder.vector(f"{at}ffn_gate_inp_shexp.weight", channels) if wanted else None


_Views = tuple[TensorInfo, ...]


def _gates_and_ups(binder: Binder, at: str, channels: int, width: int, count: int) -> tuple[_Views, _Views]:
    """Gate and up of each expert, in tensors of their own or, fused, gate rows before up rows."""
    fused = f"{at}ffn_gate_up_exps.weight"
    if not binder.has(fused):
        return tuple(_experts(binder, at, part, channels, width, count) for part in ("gate", "up"))  # type: ignore[return-value]
    pairs = binder.stack(fused, channels, 2 * width, count)
    return tuple(pair.part(0, width) for pair in pairs), tuple(pair.part(width, width) for pair in pairs)


def _experts(binder: Binder, at: str, part: str, cols: int, rows: int, count: int) -> _Views:
    """Views of `ffn_{part}_exps`; files of early 2024 have one tensor per expert."""
    if binder.has(f"{at}ffn_{part}_exps.weight") or not binder.has(f"{at}ffn_{part}.0.weight"):
        return binder.stack(f"{at}ffn_{part}_exps.weight", cols, rows, count)
    return tuple(binder.matrix(f"{at}ffn_{part}.{e}.weight", cols, rows) for e in range(count))
