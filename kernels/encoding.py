"""A Program as the plain tables that the native module reads, after all checks that need no batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels import program as p

# Elements per block and bytes per block of the GGML types that the native kernels read.
GGML_BLOCKS: dict[int, tuple[int, int]] = {
    0: (1, 4),  # F32
    1: (1, 2),  # F16
    2: (32, 18),  # Q4_0
    3: (32, 20),  # Q4_1
    6: (32, 22),  # Q5_0
    7: (32, 24),  # Q5_1
    8: (32, 34),  # Q8_0
    10: (256, 84),  # Q2_K
    11: (256, 110),  # Q3_K
    12: (256, 144),  # Q4_K
    13: (256, 176),  # Q5_K
    14: (256, 210),  # Q6_K
    16: (256, 66),  # IQ2_XXS
    17: (256, 74),  # IQ2_XS
    18: (256, 98),  # IQ3_XXS
    19: (256, 50),  # IQ1_S
    20: (32, 18),  # IQ4_NL
    21: (256, 110),  # IQ3_S
    22: (256, 82),  # IQ2_S
    23: (256, 136),  # IQ4_XS
    29: (256, 56),  # IQ1_M
    30: (1, 2),  # BF16
    34: (256, 54),  # TQ1_0
    35: (256, 66),  # TQ2_0
    39: (32, 17),  # MXFP4
    40: (64, 36),  # NVFP4
    41: (128, 18),  # Q1_0
    42: (64, 18),  # Q2_0
}
KV_TYPES: dict[str, tuple[int, int]] = {"f32": (0, 4), "f16": (1, 2), "bf16": (2, 2), "q8": (3, 1)}
ACTIVATIONS = {"silu": 0, "gelu_tanh": 1, "swiglu_clamped": 2}

_KINDS: dict[type, int] = {
    p.Embed: 0,
    p.RmsNorm: 1,
    p.HeadNorm: 2,
    p.Linear: 3,
    p.Rope: 4,
    p.KvWrite: 5,
    p.Attention: 6,
    p.Gated: 7,
    p.Head: 8,
    p.Add: 13,
    p.SigmoidGate: 14,
}


@dataclass(frozen=True)
class EncodedProgram:
    """tensors uint64 [n, 5]; layers int64 [n, 9]; ops int64 [n, 9]; reals float64 [n, 3]."""

    tensors: NDArray[np.uint64]
    layers: NDArray[np.int64]
    ropes: list[tuple[int, int, float, list[float]]]
    ops: NDArray[np.int64]
    reals: NDArray[np.float64]


def row_bytes(ggml_type: int, cols: int) -> int:
    """Bytes of a row of `cols` elements. ValueError for a type the kernels lack or a broken row."""
    if ggml_type not in GGML_BLOCKS:
        raise ValueError(f"GGML type {ggml_type} has no native kernel (have {sorted(GGML_BLOCKS)})")
    elements, size = GGML_BLOCKS[ggml_type]
    if cols <= 0 or cols % elements:
        raise ValueError(f"rows of {cols} elements do not divide into blocks of {elements} (GGML type {ggml_type})")
    return cols // elements * size


def _align64(n: int) -> int:
    return -(-n // 64) * 64


def plane_bytes(kv_heads: int, page_tokens: int, head_dim: int, kv_type: str) -> int:
    """Bytes of K or V of one layer in a page, scales included."""
    data = kv_heads * page_tokens * head_dim * KV_TYPES[kv_type][1]
    if kv_type != "q8":
        return data
    return _align64(data) + kv_heads * page_tokens * (head_dim // 32) * 2


def encode(program: p.Program) -> EncodedProgram:
    """Tables for the native module. ValueError says which part of the program is wrong."""
    _check_program(program)
    tensors = np.array([_tensor_row(t) for t in program.tensors], np.uint64).reshape(-1, 5)
    rows = [_encode_op(program, i, op) for i, op in enumerate(program.instructions)]
    return EncodedProgram(
        tensors=tensors,
        layers=np.array([_layer_row(x, program.page_tokens) for x in program.kv_layers], np.int64).reshape(-1, 9),
        ropes=[_rope_row(r) for r in program.ropes],
        ops=np.array([ints for ints, _ in rows], np.int64).reshape(-1, 9),
        reals=np.array([reals for _, reals in rows], np.float64).reshape(-1, 3),
    )


def _check_program(program: p.Program) -> None:
    if program.page_tokens <= 0 or program.page_tokens % 64:
        raise ValueError(f"page_tokens is {program.page_tokens}; the kernels need a multiple of 64")
    if any(width <= 0 for width in program.widths):
        raise ValueError(f"buffer widths must be positive: {program.widths}")


def _tensor_row(tensor: p.TensorRef) -> list[int]:
    if tensor.address == 0 or tensor.rows <= 0:
        raise ValueError(f"tensor without memory or rows: {tensor}")
    return [
        tensor.address,
        tensor.ggml_type,
        tensor.rows,
        tensor.cols,
        row_bytes(tensor.ggml_type, tensor.cols),
    ]


def _plane(offset: int, heads: int, page_tokens: int, dim: int, kv_type: str) -> tuple[int, int, int]:
    if kv_type not in KV_TYPES:
        raise ValueError(f"KV type {kv_type!r} is unknown (have {sorted(KV_TYPES)})")
    if offset % 64:
        raise ValueError(f"KV offset {offset} is not a multiple of 64")
    if heads <= 0 or dim <= 0 or (kv_type == "q8" and dim % 32):
        raise ValueError(f"{heads} KV heads of {dim} channels cannot be stored as {kv_type}")
    code, size = KV_TYPES[kv_type]
    return offset, offset + _align64(heads * page_tokens * dim * size), code


def _layer_row(layer: p.KvLayerLayout, page_tokens: int) -> list[int]:
    k, k_scales, type_k = _plane(layer.k_offset, layer.kv_heads, page_tokens, layer.head_dim_k, layer.type_k)
    v, v_scales, type_v = _plane(layer.v_offset, layer.kv_heads, page_tokens, layer.head_dim_v, layer.type_v)
    return [k, k_scales, v, v_scales, layer.kv_heads, layer.head_dim_k, layer.head_dim_v, type_k, type_v]


def _rope_row(rope: p.RopeTable) -> tuple[int, int, float, list[float]]:
    if rope.dims <= 0 or rope.dims % 2 or len(rope.inv_freq) != rope.dims // 2:
        raise ValueError(f"rope over {rope.dims} channels with {len(rope.inv_freq)} frequencies")
    if rope.kind not in (p.ROPE_NORM, p.ROPE_NEOX):
        raise ValueError(f"rope kind {rope.kind} is neither NORM (1) nor NEOX (2)")
    return rope.dims, rope.kind, rope.magnitude, list(rope.inv_freq)


class _Checker:
    """Bounds and widths of one instruction."""

    def __init__(self, program: p.Program, index: int, op: object) -> None:
        self.program = program
        self.name = f"instruction {index} ({type(op).__name__})"

    def fail(self, text: str) -> None:
        raise ValueError(f"{self.name}: {text}")

    def buffer(self, index: int, width: int | None = None) -> int:
        if not 0 <= index < len(self.program.widths):
            self.fail(f"buffer {index} does not exist")
        if width is not None and self.program.widths[index] != width:
            self.fail(f"buffer {index} is {self.program.widths[index]} wide, not {width}")
        return index

    def width(self, index: int) -> int:
        return self.program.widths[self.buffer(index)]

    def tensor(self, index: int, cols: int | None = None) -> p.TensorRef:
        if not 0 <= index < len(self.program.tensors):
            self.fail(f"tensor {index} does not exist")
        tensor = self.program.tensors[index]
        if cols is not None and tensor.cols != cols:
            self.fail(f"tensor {index} has {tensor.cols} columns, not {cols}")
        return tensor

    def vector(self, index: int, count: int) -> int:
        tensor = self.tensor(index)
        if tensor.ggml_type != 0 or tensor.rows * tensor.cols != count:
            self.fail(f"tensor {index} must hold {count} F32 values")
        return index

    def layer(self, index: int) -> p.KvLayerLayout:
        if not 0 <= index < len(self.program.kv_layers):
            self.fail(f"KV layer {index} does not exist")
        return self.program.kv_layers[index]


def _row(kind: type, reals: tuple[float, float, float] = (0.0, 1.0, 0.0), **columns: int) -> Any:
    names = ("out", "src", "weight", "extra", "index")
    ints = [_KINDS[kind], *(columns.get(n, -1) for n in names)]
    ints += [columns.get(n, 0) for n in ("heads", "head_dim", "flag")]
    return ints, list(reals)


def _encode_op(program: p.Program, index: int, op: p.Instruction) -> tuple[list[int], list[float]]:
    if type(op) not in _ENCODERS:
        raise ValueError(f"instruction {index} ({type(op).__name__}) has no native kernel")
    row: tuple[list[int], list[float]] = _ENCODERS[type(op)](_Checker(program, index, op), op)
    return row


def _embed(c: _Checker, op: p.Embed) -> Any:
    tensor = c.tensor(op.weight)
    c.buffer(op.out, tensor.cols)
    return _row(p.Embed, (0.0, op.scale, 0.0), out=op.out, weight=op.weight)


def _rms_norm(c: _Checker, op: p.RmsNorm) -> Any:
    c.vector(op.weight, c.width(op.src))
    c.buffer(op.out, c.width(op.src))
    return _row(p.RmsNorm, (op.eps, 1.0, 0.0), out=op.out, src=op.src, weight=op.weight)


def _head_norm(c: _Checker, op: p.HeadNorm) -> Any:
    c.buffer(op.buf, op.heads * op.head_dim)
    normed = op.dims or op.head_dim
    if not 0 < normed <= op.head_dim:
        c.fail(f"{normed} of {op.head_dim} channels")
    c.vector(op.weight, normed)
    sizes = {"heads": op.heads, "head_dim": op.head_dim, "flag": normed}
    return _row(p.HeadNorm, (op.eps, 1.0, 0.0), out=op.buf, weight=op.weight, **sizes)


def _linear(c: _Checker, op: p.Linear) -> Any:
    weight = c.tensor(op.weight, c.width(op.src))
    c.buffer(op.out, weight.rows)
    if op.out == op.src:
        c.fail("output and source are the same buffer")
    bias = -1 if op.bias is None else c.vector(op.bias, weight.rows)
    columns = {"out": op.out, "src": op.src, "weight": op.weight, "extra": bias, "flag": int(op.accumulate)}
    return _row(p.Linear, (0.0, op.scale, 0.0), **columns)


def _rope(c: _Checker, op: p.Rope) -> Any:
    c.buffer(op.buf, op.heads * op.head_dim)
    if not 0 <= op.rope < len(c.program.ropes):
        c.fail(f"rope table {op.rope} does not exist")
    if op.first < 0 or op.first + c.program.ropes[op.rope].dims > op.head_dim:
        c.fail(f"rope table {op.rope} from channel {op.first} on is wider than {op.head_dim}")
    return _row(p.Rope, out=op.buf, index=op.rope, heads=op.heads, head_dim=op.head_dim, flag=op.first)


def _add(c: _Checker, op: p.Add) -> Any:
    c.buffer(op.src, c.width(op.out))
    return _row(p.Add, (0.0, op.scale, 0.0), out=op.out, src=op.src)


def _sigmoid_gate(c: _Checker, op: p.SigmoidGate) -> Any:
    c.vector(op.weight, c.width(op.src))
    c.buffer(op.buf)
    return _row(p.SigmoidGate, out=op.buf, src=op.src, weight=op.weight)


def _kv_write(c: _Checker, op: p.KvWrite) -> Any:
    layer = c.layer(op.layer)
    c.buffer(op.k, layer.kv_heads * layer.head_dim_k)
    c.buffer(op.v, layer.kv_heads * layer.head_dim_v)
    return _row(p.KvWrite, src=op.k, extra=op.v, index=op.layer)


def _attention(c: _Checker, op: p.Attention) -> Any:
    layer = c.layer(op.layer)
    if op.heads % layer.kv_heads:
        c.fail(f"{op.heads} heads do not divide into {layer.kv_heads} KV heads")
    c.buffer(op.q, op.heads * layer.head_dim_k)
    c.buffer(op.out, op.heads * layer.head_dim_v)
    if op.out == op.q:
        c.fail("output and query are the same buffer")
    sinks = -1 if op.sinks is None else c.vector(op.sinks, op.heads)
    columns = {"out": op.out, "src": op.q, "extra": sinks, "index": op.layer}
    return _row(p.Attention, (0.0, op.scale, op.softcap), **columns, heads=op.heads, flag=op.window)


def _gated(c: _Checker, op: p.Gated) -> Any:
    width = c.width(op.out)
    c.buffer(op.gate, width)
    c.buffer(op.up, width)
    return _row(p.Gated, out=op.out, src=op.gate, extra=op.up, flag=ACTIVATIONS[op.activation])


def _head(c: _Checker, op: p.Head) -> Any:
    channels = c.program.channels
    c.buffer(op.src, channels)
    c.vector(op.norm_weight, channels)
    if c.tensor(op.weight, channels).rows != c.program.vocabulary:
        c.fail(f"the output weight has {c.tensor(op.weight).rows} rows, the vocabulary {c.program.vocabulary}")
    reals = (op.eps, op.scale, op.softcap)
    return _row(p.Head, reals, src=op.src, weight=op.norm_weight, extra=op.weight)


_ENCODERS: dict[type, Any] = {
    p.Embed: _embed,
    p.RmsNorm: _rms_norm,
    p.HeadNorm: _head_norm,
    p.Linear: _linear,
    p.Rope: _rope,
    p.KvWrite: _kv_write,
    p.Attention: _attention,
    p.Gated: _gated,
    p.Head: _head,
    p.Add: _add,
    p.SigmoidGate: _sigmoid_gate,
}
