"""Mixture-of-experts files that compute the same function as a dense llama file: its feed-forward parts cut or copied.

split   `experts` slices (rows of gate and up, columns of down at block borders), all used; a zero router weighs each by
        1 / experts, which down is multiplied with beforehand: exact, for it is a power of two.
copies  whole copies of the feed-forward part, two used, a random router: the weights sum to one.
shared  granitemoe: half of it is the shared part, the rest is split.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import gguf
import numpy as np
import numpy.typing as npt
from gguf import GGMLQuantizationType as Type
from gguf import GGUFValueType

Form = Literal["dense", "split", "copies", "shared"]
Raw = npt.NDArray[Any]
_SCALES = {
    Type.Q4_1: (0, 2),
    Type.Q6_K: (208,),
    Type.Q4_0: (0,),
    Type.Q8_0: (0,),
}  # bytes of a block that hold f16 scales


@dataclass(frozen=True)
class Plan:
    """`layers`: how many of the first are kept. `floats`: all weights as F32."""

    form: Form
    experts: int = 1
    layers: int = 3
    floats: bool = True

    @property
    def architecture(self) -> str:
        return "granitemoe" if self.form == "shared" else "llama"


def write(source: Path, target: Path, plan: Plan) -> Path:
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, plan.architecture)
    _keys(reader, writer, plan)
    for tensor in reader.tensors:
        parts = tensor.name.split(".")
        if parts[0] == "blk" and int(parts[1]) >= plan.layers:
            continue
        kind = parts[2].removeprefix("ffn_") if len(parts) > 2 else ""
        data = _Matrix.of(tensor, plan.floats)
        if plan.form == "dense" or kind not in ("gate", "up", "down"):
            data.add(writer, tensor.name)
        else:
            _experts(writer, f"blk.{parts[1]}.ffn_", kind, data, plan)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


@dataclass(frozen=True)
class _Matrix:
    """Rows of blocks as stored, or of floats; leading dimensions are experts."""

    rows: Raw
    type: Type

    @staticmethod
    def of(tensor: Any, floats: bool) -> _Matrix:
        if floats and tensor.tensor_type != Type.F32:
            return _Matrix(gguf.dequantize(tensor.data, tensor.tensor_type), Type.F32)
        return _Matrix(np.ascontiguousarray(tensor.data), Type(tensor.tensor_type))

    def columns(self, start: int, stop: int) -> _Matrix:
        if self.type == Type.F32:
            return _Matrix(self.rows[:, start:stop], self.type)
        block, size = gguf.GGML_QUANT_SIZES[self.type]
        assert start % block == stop % block == 0
        return _Matrix(self.rows[:, start // block * size : stop // block * size], self.type)

    def times(self, factor: float) -> _Matrix:
        """Exact: `factor` is a power of two and no scale leaves the range of f16."""
        if self.type == Type.F32:
            return _Matrix(self.rows * np.float32(factor), self.type)
        blocks = self.rows.reshape(-1, gguf.GGML_QUANT_SIZES[self.type][1]).copy()
        for at in _SCALES[self.type]:
            scales = np.ascontiguousarray(blocks[:, at : at + 2]).view(np.float16)
            scaled = (scales.astype(np.float32) * factor).astype(np.float16)
            assert (scaled.astype(np.float32) == scales.astype(np.float32) * factor).all()
            blocks[:, at : at + 2] = scaled.view(np.uint8)
        return _Matrix(blocks.reshape(self.rows.shape), self.type)

    def add(self, writer: gguf.GGUFWriter, name: str) -> None:
        raw = None if self.type == Type.F32 else self.type
        writer.add_tensor(name, np.ascontiguousarray(self.rows), raw_dtype=raw)


def _stacked(parts: list[_Matrix]) -> _Matrix:
    return _Matrix(np.stack([part.rows for part in parts]), parts[0].type)


def _experts(writer: gguf.GGUFWriter, at: str, kind: str, whole: _Matrix, plan: Plan) -> None:
    count, inner = plan.experts, 1536
    if kind == "gate":
        generator = np.random.default_rng(5)
        shape = (count, 576)
        router = generator.standard_normal(shape) / 12 if plan.form == "copies" else np.zeros(shape)
        writer.add_tensor(f"{at}gate_inp.weight", router.astype(np.float32))
    if plan.form == "copies":
        _stacked([whole] * count).add(writer, f"{at}{kind}_exps.weight")
        return
    first = inner // 2 if plan.form == "shared" else 0
    step = (inner - first) // count
    borders = [(first + e * step, first + (e + 1) * step) for e in range(count)]
    cut = [_piece(whole, kind, start, stop) for start, stop in borders]
    _stacked([part.times(count) for part in cut] if kind == "down" else cut).add(writer, f"{at}{kind}_exps.weight")
    if first:
        _piece(whole, kind, 0, first).add(writer, f"{at}{kind}_shexp.weight")


def _piece(whole: _Matrix, kind: str, start: int, stop: int) -> _Matrix:
    """Inner channels [start, stop): columns of down, rows of gate and up."""
    return whole.columns(start, stop) if kind == "down" else _Matrix(whole.rows[start:stop], whole.type)


def _keys(reader: gguf.GGUFReader, writer: gguf.GGUFWriter, plan: Plan) -> None:
    name = plan.architecture
    width = {"dense": 1536, "copies": 1536, "split": 1536 // plan.experts, "shared": 768 // plan.experts}[plan.form]
    changed = {"feed_forward_length": width, "block_count": plan.layers}
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        prefix, _, rest = key.partition(".")
        value = changed.get(rest, field.contents()) if prefix == "llama" else field.contents()
        inner = field.types[-1] if field.types[0] == GGUFValueType.ARRAY else None
        writer.add_key_value(f"{name}.{rest}" if prefix == "llama" else key, value, field.types[0], sub_type=inner)
    if plan.form == "dense":
        return
    writer.add_uint32(f"{name}.expert_count", plan.experts)
    writer.add_uint32(f"{name}.expert_used_count", 2 if plan.form == "copies" else plan.experts)
    if plan.form == "shared":
        writer.add_uint32(f"{name}.expert_shared_feed_forward_length", 768)
        writer.add_float32(f"{name}.attention.scale", 64**-0.5)
        for key in ("logit_scale", "residual_scale", "embedding_scale"):
            writer.add_float32(f"{name}.{key}", 1.0)
