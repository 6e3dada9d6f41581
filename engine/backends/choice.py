"""Which backend runs a model: native kernels, the float32 reference, or a plan over the CPU and another device."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from engine.errors import EngineError
from engine.gguf import GgufFile
from engine.kv.layout import PageLayout
from engine.messages import EngineSettings
from engine.models.spec import ModelSpec
from engine.placement import Plan, make_plan, plan_cpu
from engine.placement_options import CPU, placement_options
from engine.runner import Backend


@dataclass(frozen=True)
class OpenedBackend:
    """`numerics`: stored with each page that it computes. `devices`: a line each; `warnings`: for the reader."""

    backend: Backend
    numerics: str
    devices: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def open_backend(
    gguf: GgufFile, spec: ModelSpec, layout: PageLayout, settings: EngineSettings, threads: int
) -> OpenedBackend:
    """Compiles or prepares everything a step needs. EngineError: a backend that is not there, or rules of placement
    that cannot be read or used; UnsupportedModel: a type or operation that the backend lacks."""
    if settings.backend == "gpu":
        raise EngineError(
            "The GPU backend is not available.",
            "This version computes on the CPU only.",
            "Choose the backend 'cpu'.",
        )
    if settings.backend == "reference":
        from engine.backends.reference import ReferenceBackend

        return OpenedBackend(ReferenceBackend(gguf, spec, layout), "reference/cpu", (_cpu(threads),))
    plan = make_plan(spec, gguf.tensors.values(), placement_options(settings))
    if settings.backend == "fake":
        return _over_devices(gguf, spec, layout, plan, threads)
    return _native(gguf, spec, layout, plan, threads)


def _native(gguf: GgufFile, spec: ModelSpec, layout: PageLayout, plan: Plan, threads: int) -> OpenedBackend:
    from engine.backends.cpu import native_backend
    from kernels import numerics_label

    (stretch,) = plan_cpu(spec).stretches
    others = [device for device in plan.devices if device != CPU]
    warnings = (f"The placement names {', '.join(others)}; there is none, so all runs on the CPU.",) if others else ()
    backend = native_backend(gguf, spec, layout, stretch, threads)
    return OpenedBackend(backend, numerics_label(), (_cpu(threads),), warnings)


def _over_devices(gguf: GgufFile, spec: ModelSpec, layout: PageLayout, plan: Plan, threads: int) -> OpenedBackend:
    """A plan over the CPU and the stand-in for a GPU."""
    from engine.backends.fake.reference import FakeDevice
    from engine.backends.hybrid import HybridBackend
    from kernels import numerics_label

    backend = HybridBackend(gguf, spec, layout, plan, threads, lambda experts: FakeDevice(gguf, spec, layout, experts))
    placed = hashlib.sha256(repr((plan.bindings, sorted(plan.experts.items()))).encode()).hexdigest()[:12]
    devices = tuple(_cpu(threads) if device == CPU else f"{device}, a stand-in on the CPU" for device in plan.devices)
    return OpenedBackend(backend, f"fake {placed}+{numerics_label()}", devices, plan.warnings)


def _cpu(threads: int) -> str:
    return f"CPU, {threads} thread{'s' if threads > 1 else ''}"
