"""A Program as the plain tables that the native module reads, after all checks that need no batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernels import program as p
from kernels.encode_ops import OP_COLUMNS, encode_op

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
KV_TYPES: dict[str, tuple[int, float]] = {"f32": (0, 4), "f16": (1, 2), "bf16": (2, 2), "q8": (3, 1), "q4": (4, 0.5)}
BLOCK_TYPES = ("q8", "q4")  # with a scale per 32 channels
MOST_ROTATED = 1024  # channels of a q4 head


@dataclass(frozen=True)
class EncodedProgram:
    """tensors uint64 [n, 5]; layers int64 [n, 9]; ops int64 [n, 18]; reals float64 [n, 3]."""

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
    data = int(kv_heads * page_tokens * head_dim * KV_TYPES[kv_type][1])
    if kv_type not in BLOCK_TYPES:
        return data
    return _align64(data) + kv_heads * page_tokens * (head_dim // 32) * 2


def encode(program: p.Program) -> EncodedProgram:
    """Tables for the native module. ValueError says which part of the program is wrong."""
    _check_program(program)
    tensors = np.array([_tensor_row(t) for t in program.tensors], np.uint64).reshape(-1, 5)
    rows = [encode_op(program, i, op) for i, op in enumerate(program.instructions)]
    return EncodedProgram(
        tensors=tensors,
        layers=np.array([_layer_row(x, program.page_tokens) for x in program.kv_layers], np.int64).reshape(-1, 9),
        ropes=[_rope_row(r) for r in program.ropes],
        ops=np.array([ints for ints, _ in rows], np.int64).reshape(-1, OP_COLUMNS),
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
    if heads <= 0 or dim <= 0 or (kv_type in BLOCK_TYPES and dim % 32) or (kv_type == "q4" and dim > MOST_ROTATED):
        raise ValueError(f"{heads} KV heads of {dim} channels cannot be stored as {kv_type}")
    code, size = KV_TYPES[kv_type]
    return offset, offset + _align64(int(heads * page_tokens * dim * size)), code


def _layer_row(layer: p.KvLayerLayout, page_tokens: int) -> list[int]:
    if layer.head_dim_v == 0:
        plane = _plane(layer.k_offset, layer.kv_heads, page_tokens, layer.head_dim_k, layer.type_k)
        return [*plane[:2], 0, 0, layer.kv_heads, layer.head_dim_k, 0, plane[2], 0]
    k, k_scales, type_k = _plane(layer.k_offset, layer.kv_heads, page_tokens, layer.head_dim_k, layer.type_k)
    v, v_scales, type_v = _plane(layer.v_offset, layer.kv_heads, page_tokens, layer.head_dim_v, layer.type_v)
    return [k, k_scales, v, v_scales, layer.kv_heads, layer.head_dim_k, layer.head_dim_v, type_k, type_v]


def _rope_row(rope: p.RopeTable) -> tuple[int, int, float, list[float]]:
    if rope.dims <= 0 or rope.dims % 2 or len(rope.inv_freq) != rope.dims // 2:
        raise ValueError(f"rope over {rope.dims} channels with {len(rope.inv_freq)} frequencies")
    if rope.kind not in (p.ROPE_NORM, p.ROPE_NEOX):
        raise ValueError(f"rope kind {rope.kind} is neither NORM (1) nor NEOX (2)")
    return rope.dims, rope.kind, rope.magnitude, list(rope.inv_freq)
