"""Typed access to the metadata keys of one architecture; a failure names the key and what was expected."""

from __future__ import annotations

import math
from typing import NoReturn

from engine.errors import ModelFileError
from engine.gguf import GgufFile, MetadataArray, Scalar


class Keys:
    """Reads `{architecture}.{suffix}`."""

    def __init__(self, gguf: GgufFile, architecture: str) -> None:
        self._gguf = gguf
        self._prefix = f"{architecture}."

    def fail(self, suffix: str, found: object, expected: str) -> NoReturn:
        key = self._prefix + suffix
        state = "is missing" if found is None else f"is {found!r}"
        raise ModelFileError(
            f"The model file {self._gguf.path.name} cannot be used.",
            f"Key '{key}' {state}, expected {expected}.",
            "Download or convert the file again.",
        )

    def get(self, suffix: str) -> Scalar | MetadataArray | None:
        return self._gguf.metadata.get(self._prefix + suffix)

    def integer(self, suffix: str, default: int | None = None, low: int = 1, high: int = 1 << 31) -> int:
        """An integer in [low, high], as a (derived) default must be; without a default the key is required."""
        value = self.get(suffix)
        return self._integer(suffix, default if value is None else value, low, high)

    def per_layer(self, suffix: str, layers: int, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """One positive integer per layer: a single value for all, or an array of at least `layers` items."""
        value = self.get(suffix)
        if value is None and default is not None:
            return default
        if not isinstance(value, MetadataArray):
            return (self._integer(suffix, value, 1, 1 << 31),) * layers
        if len(value) < layers:
            self.fail(suffix, value, f"an integer or one per layer ({layers})")
        return tuple(self._integer(suffix, item, 1, 1 << 31) for item in value[:layers])

    def number(self, suffix: str, default: float | None = None) -> float:
        """A finite number; without a default the key is required."""
        value = self.get(suffix)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self.fail(suffix, value, "a finite number")
        return float(value)

    def flag(self, suffix: str, default: bool) -> bool:
        value = self.get(suffix)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.fail(suffix, value, "true or false")
        return value

    def text(self, suffix: str, default: str) -> str:
        value = self.get(suffix)
        if value is None:
            return default
        if not isinstance(value, str):
            self.fail(suffix, value, "a string")
        return value

    def _integer(self, suffix: str, value: object, low: int, high: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.fail(suffix, value, f"an integer from {low} to {high}")
        return value
