"""Looking tensors of a GGUF file up by name, with their shape and type checked."""

from __future__ import annotations

from collections.abc import Collection
from typing import NoReturn

from engine.errors import ModelFileError, UnsupportedModel
from engine.gguf import GgufFile, TensorInfo, type_name

_F32 = 0


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
        """A tensor of products; `shape` in GGUF order, inputs first."""
        info = self._required(name, shape)
        if info.ggml_type not in self.types:
            self._refuse_type(info, ", ".join(type_name(t) for t in sorted(self.types)))
        return info

    def vector(self, name: str, *shape: int) -> TensorInfo:
        """A tensor that is read as F32: norms, biases."""
        info = self._required(name, shape)
        if info.ggml_type != _F32:
            self._refuse_type(info, "F32 for norms and biases")
        return info

    def optional(self, name: str, *shape: int) -> TensorInfo | None:
        return self.vector(name, *shape) if self.has(name) else None

    def stack(self, name: str, cols: int, rows: int, count: int) -> tuple[TensorInfo, ...]:
        """`count` matrices [rows, cols] that lie behind each other in one tensor."""
        whole = self.matrix(name, cols, rows, count)
        return tuple(whole.part(i * rows, rows) for i in range(count))

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
