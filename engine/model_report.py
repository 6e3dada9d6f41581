"""What a model file is, from its header alone: family, sizes, types, tokenizer, and why it cannot be used, if so."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import prod
from pathlib import Path

from engine.chat_sources import chat_templates
from engine.errors import EngineError
from engine.gguf import GgufFile, TensorInfo
from engine.kv.layout import PageLayout
from engine.messages import KvType
from engine.models.families import FAMILIES, spec_from_gguf
from engine.models.naming import readable_name, title_of
from engine.models.spec import ModelSpec
from engine.models.tensors import check_tensors
from engine.tensor_classes import TENSOR_CLASSES, TensorClass, class_of, layer_of
from engine.tokenizer import Tokenizer


@dataclass(frozen=True)
class ClassReport:
    """The tensors of one class. `types`: (type name, bytes), largest first."""

    tensor_class: TensorClass
    parameters: int
    bytes: int
    types: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class ModelReport:
    """`active_parameters`: those that a token is multiplied with (embedding rows are looked up, not counted).

    `kv_bytes_per_token` and `page_tokens` are 0, and texts empty, where `unsupported` says why it cannot be used.
    `tensor_types`: how many tensors have each. `templates`: names of the file's chat templates. `tokenizer`: its kind
    and pre-tokenizer. `title`: what the file calls itself.
    """

    path: Path
    parts: int
    name: str
    title: str
    architecture: str
    family: str
    layers: int
    channels: int
    context: int
    parameters: int
    active_parameters: int
    bytes: int
    tensor_types: tuple[tuple[str, int], ...]
    classes: tuple[ClassReport, ...]
    attention: str
    experts: str
    kv_bytes_per_token: int
    page_tokens: int
    vocabulary: int
    tokenizer: str
    templates: tuple[str, ...]
    warnings: tuple[str, ...]
    unsupported: tuple[str, ...]


def describe_model(path: Path, kv_type_k: KvType = "f16", kv_type_v: KvType = "f16") -> ModelReport:
    """ModelFileError or UnsupportedModel only where the file cannot be read at all; a sound file whose family, tensors
    or tokenizer are not supported is described with the reasons."""
    with GgufFile.open(path) as gguf:
        return _described(gguf, kv_type_k, kv_type_v)


def _described(gguf: GgufFile, kv_type_k: KvType, kv_type_v: KvType) -> ModelReport:
    spec, problems, layout = None, [], None
    try:
        spec = spec_from_gguf(gguf)
        layout = PageLayout.for_spec(spec, kv_type_k, kv_type_v)
        check_tensors(gguf, spec)
    except EngineError as error:
        problems.append(error.why)
    tokenizer, complaint = _tokenizer(gguf)
    problems += complaint
    architecture = str(gguf.metadata.get("general.architecture", ""))
    title = title_of(gguf.metadata.get("general.name"))
    family = FAMILIES.get(architecture)
    infos = tuple(gguf.tensors.values())
    return ModelReport(
        path=gguf.path,
        parts=len(gguf.parts),
        name=readable_name(gguf.path, title),
        title=title,
        architecture=architecture,
        family=family.title if family else "",
        layers=len(spec.layers) if spec else 0,
        channels=spec.channels if spec else 0,
        context=spec.context if spec else 0,
        parameters=sum(prod(info.shape) for info in infos),
        active_parameters=_active(infos, spec),
        bytes=sum(info.nbytes for info in infos),
        tensor_types=tuple(sorted(Counter(info.type_name for info in infos).items())),
        classes=tuple(_classes(infos)),
        attention=_attention(spec) if spec else "",
        experts=_experts(spec) if spec else "",
        kv_bytes_per_token=layout.bytes_per_token if layout else 0,
        page_tokens=layout.page_tokens if layout else 0,
        vocabulary=spec.vocabulary if spec else 0,
        tokenizer=_tokenizer_name(gguf),
        templates=tuple(chat_templates(gguf)),
        warnings=(*(spec.warnings if spec else ()), *(tokenizer.warnings if tokenizer else ())),
        unsupported=tuple(problems),
    )


def _tokenizer(gguf: GgufFile) -> tuple[Tokenizer | None, list[str]]:
    try:
        return Tokenizer.from_gguf(gguf), []
    except EngineError as error:
        return None, [error.why]


def _tokenizer_name(gguf: GgufFile) -> str:
    names = (gguf.metadata.get(f"tokenizer.ggml.{key}") for key in ("model", "pre"))
    return " / ".join(str(name) for name in names if name is not None)


def _active(infos: tuple[TensorInfo, ...], spec: ModelSpec | None) -> int:
    if spec is None:
        return sum(prod(info.shape) for info in infos)
    return round(sum(prod(info.shape) * used_share(info, spec) for info in infos))


def used_share(info: TensorInfo, spec: ModelSpec) -> float:
    """How much of a tensor a token meets: chosen experts only, nothing of layers that predict further tokens."""
    kind, layer = class_of(info.name), layer_of(info.name)
    if kind == "embedding":
        return 1.0 if spec.tied_output else 0.0
    if layer >= len(spec.layers):
        return 0.0
    experts = spec.layers[layer].ffn.experts if kind == "experts" else None
    return experts.used / experts.count if experts else 1.0


def _classes(infos: tuple[TensorInfo, ...]) -> list[ClassReport]:
    reports = []
    for kind in TENSOR_CLASSES:
        found = [info for info in infos if class_of(info.name) == kind]
        sizes: dict[str, int] = {}
        for info in found:
            sizes[info.type_name] = sizes.get(info.type_name, 0) + info.nbytes
        if found:
            types = tuple(sorted(sizes.items(), key=lambda entry: -entry[1]))
            reports.append(ClassReport(kind, sum(prod(info.shape) for info in found), sum(sizes.values()), types))
    return reports


def _attention(spec: ModelSpec) -> str:
    first = spec.layers[0].attention
    if first.mla is not None:
        return f"latent (MLA), {first.heads} heads, {first.mla.kv_lora} + {first.mla.rope} channels per token"
    windowed = [layer.attention.window for layer in spec.layers if layer.attention.kind == "window"]
    text = f"{first.heads} query heads over {first.kv_heads}, {first.head_dim_k} channels"
    if windowed:
        text += f"; {len(windowed)} of {len(spec.layers)} layers see {windowed[0]} tokens"
    return text


def _experts(spec: ModelSpec) -> str:
    mixtures = [layer.ffn for layer in spec.layers if layer.ffn.experts]
    if not mixtures or mixtures[-1].experts is None:
        return ""
    experts = mixtures[-1].experts
    text = f"{experts.used} of {experts.count} experts in {len(mixtures)} of {len(spec.layers)} layers"
    return text + (f", a shared part of {experts.shared_width}" if experts.shared_width else "")
