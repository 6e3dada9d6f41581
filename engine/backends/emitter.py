"""What a native program under construction holds: instructions, weights and rope tables by index, row buffers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.gguf import GgufFile, TensorInfo
from engine.gguf.dequantise import dequantise
from engine.kv.layout import PageLayout
from engine.models.spec import ModelSpec, RopeSpec
from kernels.program import Add, Instruction, Linear, Program, RmsNorm, RopeTable, TensorRef

STREAM = 0  # the buffer of the residual stream
_F32 = 0
Floats = NDArray[np.float32]


@dataclass
class Emitter:
    """Equal weights and tables are listed once; a buffer is reused wherever its role and width are the same."""

    gguf: GgufFile
    spec: ModelSpec
    layout: PageLayout
    code: list[Instruction] = field(default_factory=list)
    _refs: list[TensorRef] = field(default_factory=list)
    _places: dict[TensorRef, int] = field(default_factory=dict)
    _ropes: dict[RopeTable, int] = field(default_factory=dict)
    _buffers: dict[tuple[str, int], int] = field(default_factory=dict)
    _owned: list[Floats] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.buffer("stream", self.spec.channels)

    def program(self) -> Program:
        return Program(
            widths=tuple(width for _, width in self._buffers),
            tensors=tuple(self._refs),
            kv_layers=self.layout.layers,
            page_tokens=self.layout.page_tokens,
            ropes=tuple(self._ropes),
            instructions=tuple(self.code),
            vocabulary=self.spec.vocabulary,
            channels=self.spec.channels,
            owned=tuple(self._owned),
        )

    def buffer(self, role: str, width: int) -> int:
        return self._buffers.setdefault((role, width), len(self._buffers))

    def weight(self, info: TensorInfo) -> int:
        """As stored: the instruction that uses it applies `info.scale`."""
        ref = self._ref(info)
        if ref not in self._places:
            self._places[ref] = len(self._refs)
            self._refs.append(ref)
        return self._places[ref]

    def vector(self, info: TensorInfo) -> int:
        """As F32, widened where the file has 16-bit floats."""
        return self.weight(info) if info.ggml_type == _F32 else self.own(self._values(info))

    def optional(self, info: TensorInfo | None) -> int | None:
        return None if info is None else self.vector(info)

    def bias(self, info: TensorInfo | None, scale: Floats) -> int | None:
        """A bias [rows] or [experts, rows] of products that are multiplied by `scale`, [1] or [experts], with it."""
        if info is None or (scale == 1).all():
            return self.optional(info)
        return self.own(self._values(info) / scale[:, None])

    def own(self, values: Floats) -> int:
        """Values [rows, cols] that are no part of the file."""
        self._owned.append(np.ascontiguousarray(values, np.float32))
        rows, cols = values.shape
        self._refs.append(TensorRef(self._owned[-1].ctypes.data, _F32, rows, cols))
        return len(self._refs) - 1

    def _values(self, info: TensorInfo) -> Floats:
        return dequantise(self.gguf.raw(info), info.ggml_type, info.cols)

    def weights(self, infos: tuple[TensorInfo, ...]) -> int:
        """The first of consecutive entries, one per tensor in order."""
        first = len(self._refs)
        self._refs.extend(self._ref(info) for info in infos)
        return first

    def rope(self, rope: RopeSpec) -> int:
        table = RopeTable(rope.dims, rope.inv_freq, rope.magnitude, int(rope.kind))
        return self._ropes.setdefault(table, len(self._ropes))

    def normed_stream(self, weight: TensorInfo) -> int:
        """The buffer that holds the normed stream from here on."""
        out = self.buffer("normed", self.spec.channels)
        self.code.append(RmsNorm(out, STREAM, self.vector(weight), self.spec.norm_eps))
        return out

    def linear(self, role: str, src: int, weight: TensorInfo, bias: TensorInfo | None = None) -> int:
        """The buffer of `role` with the product."""
        out = self.buffer(role, weight.rows)
        self.product(out, src, weight, bias)
        return out

    def product(
        self,
        out: int,
        src: int,
        weight: TensorInfo,
        bias: TensorInfo | None = None,
        *,
        accumulate: bool = False,
        scale: float = 1.0,
    ) -> None:
        """scale * (weight @ src + bias) into `out`."""
        place = self.bias(bias, np.array([weight.scale], np.float32))
        self.code.append(Linear(out, src, self.weight(weight), place, accumulate, scale * weight.scale))

    def into_stream(self, src: int, weight: TensorInfo, bias: TensorInfo | None, norm: TensorInfo | None) -> None:
        """Adds the product, scaled, to the stream; behind a post-norm where there is one."""
        scale = self.spec.residual_scale
        if norm is None:
            self.product(STREAM, src, weight, bias, accumulate=True, scale=scale)
        else:
            self.add_normed(self.linear("delta", src, weight, bias), norm)

    def add_normed(self, delta: int, norm: TensorInfo) -> None:
        out = self.buffer("normed", self.spec.channels)
        self.code.append(RmsNorm(out, delta, self.vector(norm), self.spec.norm_eps))
        self.code.append(Add(STREAM, out, self.spec.residual_scale))

    def _ref(self, info: TensorInfo) -> TensorRef:
        return TensorRef(self.gguf.address(info), info.ggml_type, info.rows, info.cols)
