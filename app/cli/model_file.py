"""`pagekeep model info`, `plan` and `check`: what a model file is, what it would take, and whether it is sound."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

from app.cli.cache_text import table
from app.cli.console import Console
from app.cli.session import engine_options, stored_settings, with_engine_options
from app.core.errors import UserError
from engine.errors import UnsupportedModel
from engine.messages import EngineSettings
from engine.model_report import ModelReport
from engine.placement_bytes import PlanReport
from rag.sizes import plural, size_text


def plan(options: Namespace, console: Console) -> None:
    from app.core.model_plan import PlanWish, plan_file, plan_json
    from engine.placement_options import placement_options

    path, settings = Path(options.file), _settings(options)
    report = plan_file(path, PlanWish(settings, placement_options(settings), int(options.vram * 1e9)))
    console.result({"path": str(path), **plan_json(report)})
    for line in plan_lines(report):
        console.text(line)


def describe(path: Path, console: Console) -> None:
    """A file that can be read but not used is described all the same, with the reasons. EngineError: it is no GGUF."""
    from engine.model_report import describe_model

    settings = stored_settings(lambda stored: stored).engine
    report = describe_model(path, settings.kv_type_k, settings.kv_type_v)
    classes = [{**asdict(part), "types": dict(part.types)} for part in report.classes]
    console.result({**asdict(report), "path": str(path), "classes": classes, "tensor_types": dict(report.tensor_types)})
    for line in info_lines(report):
        console.text(line)


def info_lines(report: ModelReport) -> list[str]:
    """For readers; what does not apply is left out."""
    of_parts = f" in {report.parts} parts" if report.parts > 1 else ""
    active = f", {report.active_parameters / 1e6:,.1f} M per token" if report.experts else ""
    values = {
        "name": report.name,
        "calls itself": report.title if report.title != report.name else "",
        "family": f"{report.family} ({report.architecture})" if report.family else report.architecture,
        "file": f"{report.path}, {size_text(report.bytes)} of weights{of_parts}",
        "parameters": f"{report.parameters / 1e6:,.1f} M{active}",
        "context": f"{report.context:,} tokens" if report.context else "",
        "KV state": f"{report.kv_bytes_per_token:,} bytes per token" if report.kv_bytes_per_token else "",
        "layers": str(report.layers or ""),
        "attention": report.attention,
        "experts": report.experts,
        "tokenizer": f"{report.tokenizer}, {report.vocabulary:,} tokens" if report.vocabulary else report.tokenizer,
        "chat templates": ", ".join(report.templates) or "none",
    }
    lines = [f"{key}: {value}" for key, value in values.items() if value]
    for part in report.classes:
        types = ", ".join(f"{name} {size_text(size)}" for name, size in part.types)
        lines.append(f"  {part.tensor_class:<12}{part.parameters / 1e6:>10,.1f} M  {types}")
    lines += [f"note: {warning}" for warning in report.warnings]
    return lines + [f"not supported: {reason}" for reason in report.unsupported]


def check(options: Namespace, console: Console) -> None:
    """Raises UserError with everything that is wrong."""
    from engine.model_check import check_model

    report = check_model(Path(options.file), _settings(options))
    if report.problems:
        refusal, what = report.refusal, f"The model file {report.path.name} is not sound."
        if isinstance(refusal, UnsupportedModel):
            what = refusal.what
        raise UserError(what, " ".join(report.problems), refusal.next if refusal else "Get the file again.")
    plain = {key: value for key, value in asdict(report).items() if key != "refusal"}
    console.result({"sound": True, **plain, "path": str(report.path)})
    console.text(f"{report.path.name} is sound")
    console.text(f"weights: {report.sampled_values:,} sampled values of {report.tensors:,} tensors are finite")
    console.text(f"run: {report.smoke_tokens} tokens: {report.smoke_text.strip()}")


def plan_lines(report: PlanReport) -> list[str]:
    """A table of devices, then one of tensor classes; in MB."""
    lines = [f"context {report.context:,} tokens, batch {report.batch:,}; in MB"]
    sizes = [(u.device, (u.weights, u.kv, u.compute, u.total)) for u in report.devices]
    rows = [(device, *(f"{size / 1e6:,.1f}" for size in row)) for device, row in sizes]
    lines += table([("device", "weights", "KV", "compute", "total"), *rows], right=frozenset({1, 2, 3, 4}))
    lines.append("")
    for part in report.classes:
        types = ", ".join(f"{name} {size / 1e6:,.1f}" for name, size in part.types)
        lines.append(
            f"{part.tensor_class:<12}{part.device:<8}{part.tensors:>6} tensors {part.bytes / 1e6:>10,.1f}  {types}"
        )
    if report.crossings:
        lines.append(f"rows change device {plural(report.crossings, 'time')} in a step")
    return lines + [f"note: {warning}" for warning in report.plan.warnings]


def _settings(options: Namespace) -> EngineSettings:
    return stored_settings(lambda settings: with_engine_options(settings, **engine_options(options))).engine
