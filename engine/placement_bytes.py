"""What a plan costs: weights, KV and compute bytes per device and tensor class, before anything is loaded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from engine.gguf import TensorInfo
from engine.kv.layout import PageLayout
from engine.models.spec import LayerSpec, ModelSpec
from engine.placement import Block, DeviceName, Plan, make_plan
from engine.placement_options import PlacementOptions
from engine.tensor_classes import TENSOR_CLASSES, TensorClass, class_of

_FLOAT = 4


@dataclass(frozen=True)
class DeviceUse:
    """Bytes on one device."""

    device: DeviceName
    weights: int
    kv: int
    compute: int

    @property
    def total(self) -> int:
        return self.weights + self.kv + self.compute


@dataclass(frozen=True)
class ClassUse:
    """The tensors of one class on one device. `types`: (type name, bytes), largest first."""

    tensor_class: TensorClass
    device: DeviceName
    tensors: int
    bytes: int
    types: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class PlanReport:
    """`batch`: rows that pass through the layers at once; `context`: tokens of KV. `crossings`: times a step's rows
    change device."""

    plan: Plan
    context: int
    batch: int
    devices: tuple[DeviceUse, ...]
    classes: tuple[ClassUse, ...]
    crossings: int

    def use_of(self, device: DeviceName) -> DeviceUse:
        return next((use for use in self.devices if use.device == device), DeviceUse(device, 0, 0, 0))


def report_plan(
    spec: ModelSpec, tensors: Iterable[TensorInfo], layout: PageLayout, plan: Plan, context: int, batch: int
) -> PlanReport:
    """Pure arithmetic over the header: no weight is read."""
    placed = [(info, plan.device_of_tensor(info)) for info in tensors]
    devices = tuple(
        DeviceUse(
            device,
            weights=sum(info.nbytes for info, place in placed if place == device),
            kv=kv_bytes(spec, layout, plan, device, context),
            compute=compute_bytes(spec, plan, device, batch),
        )
        for device in plan.devices
    )
    return PlanReport(plan, context, batch, devices, tuple(_classes(placed, plan.devices)), _crossings(plan))


def kv_bytes(spec: ModelSpec, layout: PageLayout, plan: Plan, device: DeviceName, context: int) -> int:
    """Whole pages of the layers whose attention runs there."""
    pages = -(-context // layout.page_tokens)
    here = (layer.index for layer in spec.layers if plan.device_of(Block("attention", layer.index)) == device)
    return pages * sum(layout.layer_bytes(index) for index in here)


def compute_bytes(spec: ModelSpec, plan: Plan, device: DeviceName, batch: int) -> int:
    """Row buffers of a step of `batch` rows, float32: the stream and its norm, the widest attention and the widest
    feed-forward part, and the logits of one row per sequence (at most as many as rows; one is counted)."""
    mine = [block for block, place in plan.bindings if place == device]
    widths = [0]
    widths += [_attention_width(spec.layers[b.layer]) for b in mine if b.kind == "attention"]
    ffn = [_ffn_width(spec.layers[b.layer]) for b in mine if b.kind in ("dense_ffn", "moe_ffn")]
    ffn += [_ffn_width(spec.layers[layer]) for layer, place in plan.experts.items() if place == device]
    logits = spec.vocabulary if any(b.kind == "head" for b in mine) else 0
    return _FLOAT * (batch * (2 * spec.channels + max(widths) + max(ffn, default=0)) + logits)


def fit_plan(
    spec: ModelSpec,
    tensors: Iterable[TensorInfo],
    layout: PageLayout,
    budget: int,
    context: int,
    batch: int,
    options: PlacementOptions | None = None,
) -> PlanReport:
    """The plan that uses a GPU of `budget` bytes best: KV, attention, norms, shared and dense parts of all layers,
    then the experts of whole layers, the first ones. Where the former do not fit, fewer (the last) layers."""
    infos, base = tuple(tensors), options or PlacementOptions()

    def tried(gpu_layers: int, gpu_experts: int) -> PlanReport:
        wanted = replace(base, gpu_layers=gpu_layers, gpu_experts=gpu_experts)
        return report_plan(spec, infos, layout, make_plan(spec, infos, wanted), context, batch)

    def fits(report: PlanReport) -> bool:
        return report.use_of(base.gpu).total <= budget

    count = len(spec.layers)
    layers = next((n for n in range(count + 1, 0, -1) if fits(tried(n, 0))), 0)
    experts = range(count, 0, -1) if layers > count else ()
    better = next((report for n in experts if fits(report := tried(layers, n))), None)
    return better or tried(layers, 0)


def _attention_width(layer: LayerSpec) -> int:
    a = layer.attention
    kv = a.kv_heads * (a.head_dim_k + a.head_dim_v)
    q = a.heads * a.head_dim_k if a.mla is None else a.heads * (a.mla.nope + a.mla.rope) + a.mla.q_lora
    return q + kv + a.heads * a.mixed_dim


def _ffn_width(layer: LayerSpec) -> int:
    experts = layer.ffn.experts
    if experts is None:
        return 2 * layer.ffn.width
    return 2 * (layer.ffn.width * experts.used + experts.shared_width) + experts.count + 2 * experts.used


def _classes(placed: list[tuple[TensorInfo, DeviceName]], devices: tuple[DeviceName, ...]) -> Iterable[ClassUse]:
    found: dict[tuple[TensorClass, DeviceName], list[TensorInfo]] = {}
    for info, device in placed:
        found.setdefault((class_of(info.name), device), []).append(info)
    for kind in TENSOR_CLASSES:
        for device in devices:
            infos = found.get((kind, device))
            if infos:
                yield ClassUse(kind, device, len(infos), sum(info.nbytes for info in infos), _types(infos))


def _types(infos: list[TensorInfo]) -> tuple[tuple[str, int], ...]:
    sizes: dict[str, int] = {}
    for info in infos:
        sizes[info.type_name] = sizes.get(info.type_name, 0) + info.nbytes
    return tuple(sorted(sizes.items(), key=lambda entry: -entry[1]))


def _crossings(plan: Plan) -> int:
    borders = len(plan.stretches) - 1
    apart = sum(plan.device_of(Block("moe_ffn", layer)) != device for layer, device in plan.experts.items())
    return borders + 2 * apart
