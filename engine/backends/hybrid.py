"""A step over several devices: stretch after stretch, the stream's rows moved where the device changes.

The CPU part of each stretch is one native program. Routed experts may lie on the CPU while their block runs elsewhere:
then the block sends normed rows and a routing to an `ExpertService` and gets the weighted sums back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from engine.backends.cpu import compile_experts, compile_program
from engine.errors import EngineError
from engine.gguf import GgufFile
from engine.kv.layout import PageLayout
from engine.models.spec import ModelSpec
from engine.models.tensors import ModelTensors, bind
from engine.placement import Block, DeviceName, Plan, Stretch
from engine.placement_options import CPU
from kernels.encoding import GGML_BLOCKS
from kernels.native_program import NativeProgram
from kernels.program import Program, StepBatch, StepResult

Floats = npt.NDArray[np.float32]
STREAM, ROUTE, SUMS = 0, 1, 2


class RunsStretch(Protocol):
    device: DeviceName

    def run(self, rows: Any, batch: StepBatch) -> Any:
        """From the stream's rows on the device (None before the embedding) to those behind the stretch, or to a
        StepResult where the head is part of it."""


class Device(Protocol):
    """Where blocks run that are not the CPU's. Rows on it are its own kind of object."""

    def stretch(self, stretch: Stretch) -> RunsStretch: ...
    def upload(self, rows: Floats) -> Any: ...
    def download(self, rows: Any) -> Floats: ...
    def head(self, hidden: Floats) -> Floats: ...


class ExpertService:
    """The routed experts of a layer on the CPU: rows [T, channels] and routing [T, 2 * used] to sums [T, channels]."""

    def __init__(self, program: Program, threads: int) -> None:
        self._native = NativeProgram(program, threads)

    def run(self, rows: Floats, route: Floats) -> Floats:
        return self._native.run_on(_rows_only(len(rows)), {STREAM: rows, ROUTE: route}, [SUMS])[SUMS]


class NativeStretch:
    """Blocks that follow each other on the CPU: one native call."""

    device: DeviceName = CPU

    def __init__(self, program: Program, stretch: Stretch, threads: int) -> None:
        self.native = NativeProgram(program, threads)
        self._first = Block("embedding") in stretch.blocks
        self._last = Block("head") in stretch.blocks

    def run(self, rows: Floats | None, batch: StepBatch) -> Floats | StepResult:
        given = {} if rows is None else {STREAM: rows}
        if self._last:
            for index, values in given.items():
                self.native.load(index, values, len(batch.tokens))
            return self.native.step(batch)
        return self.native.run_on(batch, given, [STREAM])[STREAM]


MakeDevice = Callable[[Mapping[int, ExpertService]], Device]


class HybridBackend:
    """Runs a plan's stretches. One thread at a time; `gguf` stays open as long as it is used."""

    def __init__(
        self, gguf: GgufFile, spec: ModelSpec, layout: PageLayout, plan: Plan, threads: int, make_device: MakeDevice
    ) -> None:
        """`make_device` gets the experts that stay on the CPU, by layer. EngineError: experts that are to lie on a
        device while their block is on the CPU, or more than one device beside it."""
        _check(plan)
        tensors = bind(gguf, spec, GGML_BLOCKS.keys())
        services = {
            layer: ExpertService(compile_experts(gguf, spec, tensors, layout, layer), threads) for layer in _apart(plan)
        }
        self._device = make_device(services)
        self._stretches = tuple(
            _native_stretch(gguf, spec, tensors, layout, stretch, threads)
            if stretch.device == CPU
            else self._device.stretch(stretch)
            for stretch in plan.stretches
        )

    def step(self, batch: StepBatch) -> StepResult:
        """As NativeProgram.step; the cancel flag is also polled between stretches."""
        rows: Any = None
        where = self._stretches[0].device
        for stretch in self._stretches:
            if batch.cancel[0]:
                return _incomplete(batch)
            if rows is not None and stretch.device != where:
                rows = self._device.download(rows) if stretch.device == CPU else self._device.upload(rows)
            rows, where = stretch.run(rows, batch), stretch.device
        assert isinstance(rows, StepResult)
        return rows

    def head(self, hidden: Floats) -> Floats:
        """Logits [R, vocabulary] of hidden vectors behind the output norm."""
        last = self._stretches[-1]
        return last.native.head(hidden) if isinstance(last, NativeStretch) else self._device.head(hidden)


def _native_stretch(
    gguf: GgufFile, spec: ModelSpec, tensors: ModelTensors, layout: PageLayout, stretch: Stretch, threads: int
) -> NativeStretch:
    return NativeStretch(compile_program(gguf, spec, tensors, layout, stretch), stretch, threads)


def _apart(plan: Plan) -> list[int]:
    """Layers whose block runs on a device and whose experts lie on the CPU."""
    cpu = [layer for layer, place in plan.experts.items() if place == CPU]
    return [layer for layer in cpu if plan.device_of(Block("moe_ffn", layer)) != CPU]


def _check(plan: Plan) -> None:
    if len(plan.devices) > 2:
        _refuse(f"It names {', '.join(plan.devices)}; one device beside the CPU is supported.")
    for layer, place in plan.experts.items():
        block = plan.device_of(Block("moe_ffn", layer))
        if place not in (CPU, block):
            _refuse(f"The experts of layer {layer} are to lie on {place}, but their block runs on {block}.")


def _refuse(why: str) -> None:
    raise EngineError("The placement cannot be used.", why, "Change the rules of the placement.")


def _rows_only(rows: int) -> StepBatch:
    """A batch for instructions that know neither tokens nor positions."""
    return StepBatch(
        tokens=np.zeros(rows, np.int32),
        roles=np.zeros(rows, np.uint8),
        seq_rows=np.asarray([0, rows], np.int32),
        seq_start=np.zeros(1, np.int32),
        pages=np.zeros((1, 0), np.uint64),
        seq_write=np.ones(1, np.uint8),
        out_rows=np.zeros(0, np.int32),
        cancel=np.zeros(1, np.uint8),
    )


def _incomplete(batch: StepBatch) -> StepResult:
    empty = np.zeros((0, 0), np.float32)
    return StepResult(False, empty, empty)
