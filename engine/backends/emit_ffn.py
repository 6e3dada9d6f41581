"""Feed-forward blocks as native instructions: dense, and a router with experts and a shared part."""

from __future__ import annotations

import numpy as np

from engine.backends.emitter import STREAM, Emitter
from engine.gguf import TensorInfo
from engine.models.ffn_tensors import DenseTensors, MoeTensors
from engine.models.spec import ExpertSpec, FfnSpec, LayerSpec
from engine.models.tensors import LayerTensors
from kernels.program import Experts, Gated, Route, SigmoidGate


def emit_ffn(emitter: Emitter, layer: LayerSpec, weights: LayerTensors) -> None:
    """From the stream back into it."""
    x, ffn = emitter.normed_stream(weights.ffn_norm), weights.ffn
    if isinstance(ffn, DenseTensors):
        opened = _opened(emitter, layer.ffn, ffn, x)
        emitter.into_stream(opened, ffn.down, ffn.down_bias, weights.post_ffn_norm)
    else:
        assert layer.ffn.experts is not None
        _mixture(emitter, layer.ffn, layer.ffn.experts, ffn, x, weights.post_ffn_norm)


def emit_routed(emitter: Emitter, layer: LayerSpec, weights: LayerTensors) -> None:
    """The chosen experts of normed rows, without router and shared part."""
    experts = layer.ffn.experts
    assert experts is not None
    assert isinstance(weights.ffn, MoeTensors)
    route, out = emitter.buffer("route", 2 * experts.used), emitter.buffer("sums", emitter.spec.channels)
    _experts(emitter, layer.ffn, experts, weights.ffn, STREAM, route, out, accumulate=False, scale=1.0)


def _opened(emitter: Emitter, ffn: FfnSpec, weights: DenseTensors, x: int) -> int:
    gate = emitter.linear("gate", x, weights.gate, weights.gate_bias)
    up = emitter.linear("up", x, weights.up, weights.up_bias)
    emitter.code.append(Gated(gate, gate, up, ffn.activation))
    return gate


def _mixture(
    emitter: Emitter, ffn: FfnSpec, experts: ExpertSpec, weights: MoeTensors, x: int, norm: TensorInfo | None
) -> None:
    """Experts and shared part go straight into the stream, or behind a post-norm by way of a buffer."""
    direct = norm is None
    out = STREAM if direct else emitter.buffer("delta", emitter.spec.channels)
    scale = emitter.spec.residual_scale if direct else 1.0
    route = _route(emitter, experts, weights, x)
    _experts(emitter, ffn, experts, weights, x, route, out, accumulate=direct, scale=scale)
    if weights.shared is not None:
        opened = _opened(emitter, ffn, weights.shared, x)
        if weights.shared_gate is not None:
            emitter.code.append(SigmoidGate(opened, x, emitter.vector(weights.shared_gate)))
        emitter.product(out, opened, weights.shared.down, accumulate=True, scale=scale)
    if norm is not None:
        emitter.add_normed(out, norm)


def _experts(
    emitter: Emitter,
    ffn: FfnSpec,
    experts: ExpertSpec,
    weights: MoeTensors,
    x: int,
    route: int,
    out: int,
    *,
    accumulate: bool,
    scale: float,
) -> None:
    parts = (weights.gate, weights.up, weights.down)
    factors = np.array([[matrix.scale for matrix in part] for part in parts], np.float32)
    emitter.code.append(
        Experts(
            out,
            x,
            route,
            experts.count,
            experts.used,
            gate=emitter.weights(weights.gate),
            up=emitter.weights(weights.up),
            down=emitter.weights(weights.down),
            gate_bias=emitter.bias(weights.gate_bias, factors[0]),
            up_bias=emitter.bias(weights.up_bias, factors[1]),
            down_bias=emitter.bias(weights.down_bias, factors[2]),
            factors=None if (factors == 1).all() else emitter.own(factors),
            activation=ffn.activation,
            accumulate=accumulate,
            scale=scale,
        )
    )


def _route(emitter: Emitter, experts: ExpertSpec, weights: MoeTensors, x: int) -> int:
    """The buffer with the chosen experts and their weights."""
    out = emitter.buffer("route", 2 * experts.used)
    emitter.code.append(
        Route(
            out,
            emitter.linear("router", x, weights.router, weights.router_bias),
            experts.count,
            experts.used,
            experts.gating,
            emitter.optional(weights.choice_bias),
            experts.groups,
            experts.groups_used,
            experts.normalise,
            experts.scale,
        )
    )
    return out
