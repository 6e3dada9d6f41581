"""Placement: which device runs which block of the model.

A model is a row of blocks; the plan binds each to a device before anything is loaded. The CPU is the only device so
far, the seam is the same for more: contiguous blocks on one device form a stretch, and hidden states cross devices
between stretches.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from engine.models.spec import ModelSpec

BlockKind = Literal["embedding", "attention", "dense_ffn", "moe_ffn", "head"]
DeviceName = Literal["cpu"]


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
    bindings: tuple[tuple[Block, DeviceName], ...]

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        runs = groupby(self.bindings, key=lambda binding: binding[1])
        return tuple(Stretch(device, tuple(block for block, _ in run)) for device, run in runs)


def blocks(spec: ModelSpec) -> tuple[Block, ...]:
    """The model's blocks in order of computation."""
    row = [Block("embedding")]
    for layer in spec.layers:
        row.append(Block("attention", layer.index))
        row.append(Block("moe_ffn" if layer.ffn.kind == "moe" else "dense_ffn", layer.index))
    return (*row, Block("head"))


def plan_cpu(spec: ModelSpec) -> Plan:
    return Plan(tuple((block, "cpu") for block in blocks(spec)))
