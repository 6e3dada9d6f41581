"""What the reader asks of placement, in llama.cpp's words: -ot, --cpu-moe, --n-cpu-moe, --gpu-layers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from engine.errors import EngineError
from engine.messages import EngineSettings

CPU = "cpu"
GPU = "gpu0"
ALL_LAYERS = 1 << 16
_DEVICE = re.compile(r"(?:cuda|gpu)(\d*)", re.IGNORECASE)


@dataclass(frozen=True)
class Override:
    """Tensors whose name `pattern` is found in go to `device`."""

    pattern: str
    device: str

    def fits(self, name: str) -> bool:
        return re.search(self.pattern, name) is not None


@dataclass(frozen=True)
class PlacementOptions:
    """`gpu_layers`: so many of the last layers, one more for the head, go to the GPU. `cpu_moe`: all experts stay on
    the CPU; `n_cpu_moe`: those of the first layers; `gpu_experts`: only those of so many first layers leave it.
    Overrides go before all of these, the first that fits decides.
    """

    gpu_layers: int = 0
    cpu_moe: bool = False
    n_cpu_moe: int = 0
    gpu_experts: int | None = None
    overrides: tuple[Override, ...] = ()
    gpu: str = GPU

    def override_for(self, name: str) -> str | None:
        return next((rule.device for rule in self.overrides if rule.fits(name)), None)


def parse_options(
    overrides: Sequence[str] = (),
    *,
    cpu_moe: bool = False,
    n_cpu_moe: int = 0,
    gpu_layers: int | str = 0,
) -> PlacementOptions:
    """From command-line values; `overrides` are lists REGEX=DEVICE[,REGEX=DEVICE...], `gpu_layers` a number, "all" or
    -1 (all). EngineError: a rule or number that cannot be read, by its text."""
    rules = tuple(_override(rule) for text in overrides for rule in _rules(text))
    if n_cpu_moe < 0:
        _refuse("--n-cpu-moe", n_cpu_moe, "a number of layers from 0 on")
    return PlacementOptions(parse_layers(gpu_layers), cpu_moe, n_cpu_moe, overrides=rules)


def placement_options(settings: EngineSettings) -> PlacementOptions:
    """What engine settings ask for; errors as parse_options."""
    return parse_options(
        settings.tensor_overrides,
        cpu_moe=settings.cpu_moe,
        n_cpu_moe=settings.n_cpu_moe,
        gpu_layers=settings.gpu_layers,
    )


def parse_device(text: str) -> str:
    """ "cpu" or "gpu0" and so on, of CPU, CUDA0, GPU, gpu1 ...  EngineError: none of these."""
    if text.strip().lower() == CPU:
        return CPU
    match = _DEVICE.fullmatch(text.strip())
    if match is None:
        _refuse("-ot", text, "a device: CPU, GPU0, CUDA0")
    return f"gpu{int(match[1] or 0)}"


def _rules(text: str) -> list[str]:
    """The rules of a list; a comma inside a pattern's braces or brackets does not end it."""
    return [rule for rule in re.split(r",(?![^{\[]*[}\]])", text) if rule.strip()]


def _override(rule: str) -> Override:
    pattern, equals, device = rule.rpartition("=")
    if not equals or not pattern.strip():
        _refuse("-ot", rule, "REGEX=DEVICE")
    try:
        re.compile(pattern.strip())
    except re.error as error:
        _refuse("-ot", rule, f"a regular expression ({error})")
    return Override(pattern.strip(), parse_device(device))


def parse_layers(value: int | str) -> int:
    """A number of layers, or "all" or -1. EngineError: neither."""
    if value in ("all", -1, "-1"):
        return ALL_LAYERS
    try:
        layers = int(value)
    except ValueError:
        layers = -1
    if layers < 0:
        _refuse("--gpu-layers", value, "a number of layers, or all")
    return layers


def _refuse(option: str, value: object, expected: str) -> NoReturn:
    raise EngineError(f"{option} {value!s} cannot be used.", f"Expected {expected}.", "Correct the option.")
