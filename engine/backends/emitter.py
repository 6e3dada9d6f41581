"""What a native program under construction holds: instructions, weights and rope tables by index, row buffers."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.gguf import GgufFile, TensorInfo
from engine.kv.layout import PageLayout
from engine.models.spec import ModelSpec, RopeSpec
from kernels.program import Add, Instruction, Linear, Program, RmsNorm, RopeTable, TensorRef

STREAM = 0  # the buffer of the residual stream


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
        )

    def buffer(self, role: str, width: int) -> int:
        return self._buffers.setdefault((role, width), len(self._buffers))

    def weight(self, info: TensorInfo) -> int:
        ref = self._ref(info)
        if ref not in self._places:
            self._places[ref] = len(self._refs)
            self._refs.append(ref)
        return self._places[ref]

    def optional(self, info: TensorInfo | None) -> int | None:
        return None if info is None else self.weight(info)

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
        self.code.append(RmsNorm(out, STREAM, self.weight(weight), self.spec.norm_eps))
        return out

    def linear(self, role: str, src: int, weight: TensorInfo, bias: TensorInfo | None = None) -> int:
        """The buffer of `role` with the product."""
        out = self.buffer(role, weight.rows)
        self.code.append(Linear(out, src, self.weight(weight), self.optional(bias)))
        return out

    def into_stream(self, src: int, weight: TensorInfo, bias: TensorInfo | None, norm: TensorInfo | None) -> None:
        """Adds the product, scaled, to the stream; behind a post-norm where there is one."""
        scale = self.spec.residual_scale
        if norm is None:
            weights = self.weight(weight), self.optional(bias)
            self.code.append(Linear(STREAM, src, *weights, accumulate=True, scale=scale))
        else:
            self.add_normed(self.linear("delta", src, weight, bias), norm)

    def add_normed(self, delta: int, norm: TensorInfo) -> None:
        out = self.buffer("normed", self.spec.channels)
        self.code.append(RmsNorm(out, delta, self.weight(norm), self.spec.norm_eps))
        self.code.append(Add(STREAM, out, self.spec.residual_scale))

    def _ref(self, info: TensorInfo) -> TensorRef:
        return TensorRef(self.gguf.address(info), info.ggml_type, info.rows, info.cols)
