"""Looking tensors of a GGUF file up by name, with their shape and type checked."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import NoReturn

import numpy as np

from engine.errors import ModelFileError, UnsupportedModel
from engine.gguf import GgufFile, TensorInfo, type_name
from engine.gguf.dequantise import dequantise

_FLOATS = (0, 1, 30)  # F32, F16, BF16
_LEAST_SCALE = 1e-30  # stands for a scale of zero, so that biases can be divided by it


class Binder:
    """Remembers which tensors were used. `types`: ids of the types that matrices may have."""

    def __init__(self, gguf: GgufFile, types: Collection[int]) -> None:
        self.gguf = gguf
        self.types = types
        self.used: set[str] = set()

    def has(self, name: str) -> bool:
        return name in self.gguf.tensors

    def fail(self, why: str) -> NoReturn:
        raise ModelFileError(
            f"The model file {self.gguf.path.name} cannot be used.",
            why,
            "Download or convert the file again.",
        )

    def matrix(self, name: str, *shape: int) -> TensorInfo:
        """A tensor of products, scaled by the tensor `.scale` beside it (NVFP4 files made from checkpoints)."""
        return replace(self.unscaled(name, *shape), scale=self._scales(name, 1)[0])

    def unscaled(self, name: str, *shape: int) -> TensorInfo:
        """A tensor of weights that has no `.scale`; `shape` in GGUF order, inputs first."""
        info = self._required(name, shape)
        if info.ggml_type not in self.types:
            self._refuse_type(info, ", ".join(type_name(t) for t in sorted(self.types)))
        return info

    def vector(self, name: str, *shape: int) -> TensorInfo:
        """A tensor whose values are read one by one: norms, biases. Backends widen 16-bit floats."""
        info = self._required(name, shape)
        if info.ggml_type not in _FLOATS:
            self._refuse_type(info, "F32, F16 and BF16 for norms and biases")
        return info

    def optional(self, name: str, *shape: int) -> TensorInfo | None:
        return self.vector(name, *shape) if self.has(name) else None

    def stack(self, name: str, cols: int, rows: int, count: int) -> tuple[TensorInfo, ...]:
        """`count` matrices [rows, cols] that lie behind each other in one tensor."""
        parts = self.unscaled(name, cols, rows, count).stacked(count)
        return tuple(replace(part, scale=scale) for part, scale in zip(parts, self._scales(name, count), strict=True))

    def _scales(self, name: str, count: int) -> tuple[float, ...]:
        """The factors that belong to the matrices of tensor `name`: ones where the file has none."""
        beside = name.removesuffix("weight") + "scale"
        if not self.has(beside):
            return (1.0,) * count
        info = self.vector(beside, count)
        values = dequantise(self.gguf.raw(info), info.ggml_type, count)[0]
        if not np.isfinite(values).all():
            self.fail(f"Tensor {beside!r} holds values that are no numbers.")
        return tuple(float(value) or _LEAST_SCALE for value in values)

    def _required(self, name: str, shape: tuple[int, ...]) -> TensorInfo:
        info = self.gguf.tensors.get(name)
        if info is None:
            self.fail(f"Tensor {name!r} is missing, expected shape {list(shape)}.")
        if _significant(info.shape) != _significant(shape):
            self.fail(f"Tensor {name!r} has shape {list(info.shape)}, expected {list(shape)}.")
        self.used.add(name)
        return info

    def _refuse_type(self, info: TensorInfo, expected: str) -> NoReturn:
        raise UnsupportedModel(
            f"The model file {self.gguf.path.name} cannot be used.",
            f"Tensor {info.name!r} has type {info.type_name}; supported: {expected}.",
            "Choose a file of the model with another quantisation.",
        )


def _significant(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Trailing dimensions of one mean nothing."""
    while len(shape) > 1 and shape[-1] == 1:
        shape = shape[:-1]
    return shape
