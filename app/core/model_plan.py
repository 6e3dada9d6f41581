"""What loading a model file would take, per device and kind of tensor: from its header, nothing is loaded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.gguf import GgufFile
from engine.kv.layout import PageLayout
from engine.messages import EngineSettings
from engine.models.families import spec_from_gguf
from engine.models.tensors import check_tensors
from engine.placement import make_plan
from engine.placement_bytes import PlanReport, fit_plan, report_plan
from engine.placement_options import PlacementOptions


@dataclass(frozen=True)
class PlanWish:
    """`settings`: context (0: the model's own), batch (the prefill chunk or micro-batch) and KV types. `gpu_bytes`: the
    best plan for a GPU with so much free memory, 0: the plan of the options.
    """

    settings: EngineSettings
    options: PlacementOptions
    gpu_bytes: int = 0


def plan_file(path: Path, wish: PlanWish) -> PlanReport:
    """Raises EngineError for a file that cannot be used."""
    with GgufFile.open(path) as file:
        spec = spec_from_gguf(file, wish.settings.context)
        check_tensors(file, spec)
        tensors = tuple(file.tensors.values())
    settings = wish.settings
    layout = PageLayout.for_spec(spec, settings.kv_type_k, settings.kv_type_v)
    context, warnings = spec.within(settings.context)
    batch = min(settings.prefill_chunk, settings.micro_batch or settings.prefill_chunk)
    if wish.gpu_bytes:
        report = fit_plan(spec, tensors, layout, wish.gpu_bytes, context, batch, wish.options)
    else:
        report = report_plan(spec, tensors, layout, make_plan(spec, tensors, wish.options), context, batch)
    return replace(report, plan=replace(report.plan, warnings=(*report.plan.warnings, *warnings)))


def plan_json(report: PlanReport) -> dict[str, Any]:
    """Plain data; sizes in bytes."""
    devices = [
        {"device": u.device, "weights": u.weights, "kv": u.kv, "compute": u.compute, "total": u.total}
        for u in report.devices
    ]
    classes = [
        {"class": u.tensor_class, "device": u.device, "tensors": u.tensors, "bytes": u.bytes, "types": dict(u.types)}
        for u in report.classes
    ]
    return {
        "context": report.context,
        "batch": report.batch,
        "devices": devices,
        "classes": classes,
        "crossings": report.crossings,
        "warnings": list(report.plan.warnings),
    }
