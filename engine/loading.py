"""Loading a model: from a file and settings to everything a turn needs, checked before anything is mapped in."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from engine.backends.choice import open_backend
from engine.chat_format import ChatFormat
from engine.chat_sources import chat_templates
from engine.collector import collector_at_rest
from engine.errors import EngineError
from engine.gguf import GgufFile
from engine.kv.fingerprint import fingerprint
from engine.kv.layout import PageLayout
from engine.kv.pool import page_stride
from engine.messages import EngineSettings, ModelLoaded
from engine.models.families import spec_from_gguf
from engine.models.spec import ModelSpec
from engine.models.tensors import check_tensors
from engine.runner import Backend
from engine.timings import now_ms
from engine.tokenizer import Tokenizer

# A default context may take this share of the memory that is free; the reader can ask for more.
_KV_SHARE = 0.5
_LEAST_STATE = 100_000_000  # bytes; less is no budget to advise


@dataclass(frozen=True)
class ModelHandle:
    """The read-only side of a loaded model; safe to use from any thread."""

    info: ModelLoaded
    spec: ModelSpec
    tokenizer: Tokenizer
    chat: ChatFormat
    context: int
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class LoadedModel:
    """What the engine thread works with. `gguf` is mapped as long as the backend lives."""

    handle: ModelHandle
    gguf: GgufFile
    layout: PageLayout
    fingerprint: bytes
    numerics: str
    backend: Backend


def load(path: Path, settings: EngineSettings, on_stage: Callable[[str], None]) -> LoadedModel:
    """Opens and checks the file, reads the tokenizer, compiles the backend. Raises EngineError."""
    started = now_ms()
    on_stage("reading the header")
    gguf = GgufFile.open(path)
    try:
        spec = spec_from_gguf(gguf, settings.context)
        check_tensors(gguf, spec)
        layout = PageLayout.for_spec(spec, settings.kv_type_k, settings.kv_type_v)
        on_stage("reading the tokenizer")
        with collector_at_rest():
            tokenizer = Tokenizer.from_gguf(gguf)
        chat = ChatFormat.from_gguf(gguf, tokenizer, reasoning=settings.reasoning, variant=settings.chat_template)
        on_stage("mapping the weights")
        gguf.will_compute()
        opened = open_backend(gguf, spec, layout, settings, settings.threads or physical_cores())
        print_ = fingerprint(gguf, spec, layout)
        context, warnings = _context(spec, layout, settings)
        held = within_budget(context, layout, settings)
        if held < context:
            warnings = (*warnings, _bounded(held, context, settings))
        info = _info(settings, path, spec, layout, gguf, print_, held, opened.devices, now_ms() - started)
        bound = settings.ram_budget_bytes if held < context else 0
        info = replace(info, reasoning_choices=chat.reasoning_choices, bounding_bytes=bound)
    except BaseException:
        gguf.close()
        raise
    tight = _tight(info.weights_bytes, settings.ram_budget_bytes)
    said = (*spec.warnings, *tokenizer.warnings, *warnings, *tight, *opened.warnings, *chat.warnings)
    handle = ModelHandle(info, spec, tokenizer, chat, held, said)
    return LoadedModel(handle, gguf, layout, print_, opened.numerics, opened.backend)


def physical_cores() -> int:
    import psutil

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(psutil.cpu_count(logical=False) or 1, usable or 1))


def _context(spec: ModelSpec, layout: PageLayout, settings: EngineSettings) -> tuple[int, tuple[str, ...]]:
    """The context to run with: what was asked for, at most the model's own, by default also what memory allows."""
    if settings.context:
        return spec.within(settings.context)
    import psutil

    affordable = int(psutil.virtual_memory().available * _KV_SHARE) // layout.bytes_per_token
    fitting = max(layout.page_tokens, affordable // layout.page_tokens * layout.page_tokens)
    if fitting >= spec.context:
        return spec.context, ()
    text = f"The context is {fitting:,} of the model's {spec.context:,} tokens: more does not fit the free memory."
    return fitting, (text,)


def held_tokens(layout: PageLayout, settings: EngineSettings) -> int:
    """How many tokens of state the memory budget holds: whole pages."""
    return settings.ram_budget_bytes // page_stride(layout.payload_bytes) * layout.page_tokens


def within_budget(context: int, layout: PageLayout, settings: EngineSettings) -> int:
    """The context as far as the memory budget for state holds it: nothing could be computed or come back beyond.

    EngineError: not even one page.
    """
    size, budget = layout.payload_bytes, settings.ram_budget_bytes
    held = held_tokens(layout, settings)
    if not held:
        raise EngineError(
            "The memory budget for conversations is too small for this model.",
            f"{layout.page_tokens} tokens of state need {size / 1e6:,.1f} MB; the budget is {budget / 1e6:,.1f} MB.",
            "Raise the memory budget in the preferences, or choose a smaller KV type or model.",
        )
    return min(context, held)


def _bounded(held: int, context: int, settings: EngineSettings) -> str:
    return (
        f"The context is {held:,} of {context:,} tokens: the memory budget for conversations "
        f"({settings.ram_budget_bytes / 1e6:,.0f} MB) holds no more. Raise it in the preferences, or choose a smaller "
        "KV type."
    )


def _tight(weights: int, state: int) -> tuple[str, ...]:
    import psutil

    return memory_warning(weights, state, psutil.virtual_memory().available)


def memory_warning(weights: int, state: int, available: int) -> tuple[str, ...]:
    """Where the weights, or these and all that conversations may take (bytes), do not fit what is free."""
    if weights + state <= available:
        return ()
    model, kept, free = (f"{size / 1e9:,.1f} GB" for size in (weights, state, available))
    if weights + _LEAST_STATE > available:
        return (
            f"The model alone ({model}) leaves nothing of the {free} of memory that are free: parts of it come from "
            f"the disk again for every token, and conversations ({kept} at most) push out more of it. Only a smaller "
            "model, or ending other programs, avoids that.",
        )
    left = f"{(available - weights) / 1e9:,.1f} GB"
    return (
        f"The model ({model}) and the memory for conversations ({kept}) may together need more than the {free} "
        f"that are free; parts of them then come from the disk again and again. A memory budget of {left} in the "
        "preferences, or a smaller model, avoids that.",
    )


def _info(
    settings: EngineSettings,
    path: Path,
    spec: ModelSpec,
    layout: PageLayout,
    gguf: GgufFile,
    print_: bytes,
    context: int,
    devices: tuple[str, ...],
    load_ms: float,
) -> ModelLoaded:
    return ModelLoaded(
        path=path,
        name=spec.name,
        architecture=spec.architecture,
        context=context,
        devices=devices,
        weights_bytes=sum(info.nbytes for info in gguf.tensors.values()),
        kv_bytes_per_token=layout.bytes_per_token,
        page_tokens=layout.page_tokens,
        fingerprint=print_.hex(),
        load_ms=load_ms,
        model_context=spec.context,
        templates=tuple(sorted(chat_templates(gguf))),
        reasoning=settings.reasoning,
    )
