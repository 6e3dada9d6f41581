"""Placement: which device runs which block of the model, and which holds the experts.

A model is a row of blocks; the plan binds each to a device before anything is loaded. Contiguous blocks on one device
form a stretch, and hidden states cross devices between stretches. The routed experts of a MoE block may lie on another
device than its norm, router and shared part: they get normed rows and a routing and give back rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Literal

from engine.gguf import TensorInfo
from engine.models.spec import ModelSpec
from engine.placement_options import CPU, PlacementOptions
from engine.tensor_classes import TensorClass, class_of, layer_of

BlockKind = Literal["embedding", "attention", "dense_ffn", "moe_ffn", "head"]
DeviceName = str

_BLOCK_OF: Mapping[TensorClass, BlockKind] = {
    "embedding": "embedding",
    "attention": "attention",
    "dense_ffn": "dense_ffn",
    "router": "moe_ffn",
    "shared": "moe_ffn",
    "head": "head",
}


@dataclass(frozen=True)
class Block:
    """`layer` is -1 for the embedding and the head."""

    kind: BlockKind
    layer: int = -1


@dataclass(frozen=True)
class Stretch:
    """Blocks that follow each other on one device; run without leaving it."""

    device: DeviceName
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Plan:
    """`experts`: the device of the routed experts, per layer that has some. `warnings`: for the reader."""

    bindings: tuple[tuple[Block, DeviceName], ...]
    experts: Mapping[int, DeviceName] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        runs = groupby(self.bindings, key=lambda binding: binding[1])
        return tuple(Stretch(device, tuple(block for block, _ in run)) for device, run in runs)

    @property
    def devices(self) -> tuple[DeviceName, ...]:
        used = {device for _, device in self.bindings} | set(self.experts.values())
        return tuple(sorted(used, key=lambda device: (device != CPU, device)))

    @cached_property
    def _places(self) -> dict[Block, DeviceName]:
        return dict(self.bindings)

    def device_of(self, block: Block) -> DeviceName:
        return self._places[block]

    def device_of_tensor(self, info: TensorInfo) -> DeviceName:
        """Where a tensor of the model lies. Norms go with their block; the output norm with the head."""
        kind, layer = class_of(info.name), layer_of(info.name)
        if kind == "experts":
            return self.experts.get(layer, CPU)
        if kind == "norms":
            owners = _norm_owners(info.name, layer)
        else:
            owners = (Block(_BLOCK_OF[kind], layer),) if kind in _BLOCK_OF else ()
        return next((self._places[block] for block in owners if block in self._places), CPU)


def blocks(spec: ModelSpec) -> tuple[Block, ...]:
    """The model's blocks in order of computation."""
    row = [Block("embedding")]
    for layer in spec.layers:
        row.append(Block("attention", layer.index))
        row.append(Block("moe_ffn" if layer.ffn.kind == "moe" else "dense_ffn", layer.index))
    return (*row, Block("head"))


def plan_cpu(spec: ModelSpec) -> Plan:
    """Everything on the CPU."""
    return make_plan(spec, (), PlacementOptions())


def make_plan(spec: ModelSpec, tensors: Iterable[TensorInfo], options: PlacementOptions) -> Plan:
    """The plan that the options ask for. Overrides name tensors: a block runs where most of its bytes are asked to be,
    with a warning where a rule asks for another device for some of them."""
    asked: dict[Block | int, dict[DeviceName, int]] = {}
    row = blocks(spec)
    known = frozenset(row)
    for info in tensors:
        place = _place_of(known, info)
        if place is not None:
            default = _default(spec, place, options)
            device = options.override_for(info.name) or default
            sizes = asked.setdefault(place, {})
            sizes[device] = sizes.get(device, 0) + info.nbytes
    bindings = tuple((block, _most(asked.get(block), _default(spec, block, options))) for block in row)
    experts = {
        block.layer: _most(asked.get(block.layer), _default(spec, block.layer, options))
        for block in row
        if block.kind == "moe_ffn"
    }
    return Plan(bindings, experts, tuple(_split(place, sizes) for place, sizes in asked.items() if len(sizes) > 1))


def _place_of(row: Collection[Block], info: TensorInfo) -> Block | int | None:
    """The block that a matrix belongs to, the layer number for experts; None for norms and other small tensors."""
    kind, layer = class_of(info.name), layer_of(info.name)
    if kind == "experts":
        return layer
    wanted = _BLOCK_OF.get(kind)
    block = None if wanted is None else Block(wanted, layer)
    return block if block in row else None


def _norm_owners(name: str, layer: int) -> tuple[Block, ...]:
    if layer < 0:
        return (Block("head"),)
    if "ffn_norm" in name or "post_ffw" in name:
        return Block("dense_ffn", layer), Block("moe_ffn", layer)
    return (Block("attention", layer),)


def _default(spec: ModelSpec, place: Block | int, options: PlacementOptions) -> DeviceName:
    """llama.cpp's rules: the last layers go to the GPU first; experts follow their layer unless they are kept back."""
    layer = place if isinstance(place, int) else place.layer
    if isinstance(place, int) and _kept_back(layer, options):
        return CPU
    if isinstance(place, Block) and place.kind == "embedding":
        return CPU
    first = len(spec.layers) - options.gpu_layers
    on_gpu = first < 0 if layer < 0 else layer >= first
    return options.gpu if on_gpu else CPU


def _kept_back(layer: int, options: PlacementOptions) -> bool:
    beyond = options.gpu_experts is not None and layer >= options.gpu_experts
    return options.cpu_moe or layer < options.n_cpu_moe or beyond


def _most(sizes: Mapping[DeviceName, int] | None, default: DeviceName) -> DeviceName:
    if not sizes:
        return default
    return max(sorted(sizes), key=lambda device: sizes[device])


def _split(place: Block | int, sizes: Mapping[DeviceName, int]) -> str:
    name = f"The experts of layer {place}" if isinstance(place, int) else f"Block {place.kind} {place.layer}"
    return f"{name}: rules ask for {' and '.join(sorted(sizes))}; all of it goes to {_most(sizes, CPU)}."
