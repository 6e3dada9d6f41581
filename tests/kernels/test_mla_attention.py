from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from kernels.kv_write.reference import read_plane
from kernels.mla_attention.cpu import mla_attention
from kernels.mla_attention.reference import mla_attention as reference
from kernels.native_program import NativeProgram
from kernels.program import Attention, KvLayerLayout, KvWrite, MlaAttention, Program
from kernels.single import How, Weight
from tests.kernels.kv_cases import Pages, layout
from tests.kernels.weights import make

PAGE, HEADS, LORA, ROPE, NOPE, VALUE = 64, 3, 64, 20, 32, 37


def normal(*shape: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@dataclass
class Case:
    pages: Pages
    k_b: list[Weight]
    v_b: list[Weight]
    k_values: torch.Tensor  # [heads, nope, kv_lora]
    v_values: torch.Tensor
    transposed: bool

    def stored(self, tokens: int) -> torch.Tensor:
        layer = self.pages.layer
        raw = [torch.from_numpy(self.pages.page(0, i).copy()) for i in range(-(-tokens // PAGE))]
        rows = [read_plane(p, layer.k_offset, 1, PAGE, layer.head_dim_k, layer.type_k)[0] for p in raw]
        return torch.cat(rows)[:tokens]

    def run(self, q: np.ndarray, start: int, roles: np.ndarray, how: How) -> np.ndarray:
        batch = replace(self.pages.batch([len(q)], [start]), roles=roles.astype(np.uint8))
        rows = np.ascontiguousarray(q)
        return mla_attention(rows, self.pages.layer, PAGE, batch, self.k_b, self.v_b, 0.2, self.transposed, how)


def latent_layer(kv_type: str, channels: int) -> KvLayerLayout:
    return layout(1, channels, 0, kv_type, kv_type, PAGE)


def build(
    tokens: int,
    name: str,
    kv_type: str,
    transposed: bool,
    isa: str,
    rope: int = ROPE,
    lora: int = LORA,
    v_name: str | None = None,
) -> Case:
    layer = latent_layer(kv_type, lora + rope)
    pages = Pages.make(layer, PAGE, 1, tokens)
    program = Program((lora + rope,), (), (layer,), PAGE, (), (KvWrite(0, -1, 0),), 1, lora + rope)
    rows = normal(tokens, lora + rope, seed=1)
    NativeProgram(program, 1, isa).run_on(pages.batch([tokens], [0]), {0: rows}, [])
    shape = (lora, NOPE) if transposed else (NOPE, lora)
    keys = [make(name, *shape, seed=20 + h) for h in range(HEADS)]
    values = [make(v_name or name, VALUE, lora, seed=40 + h) for h in range(HEADS)]
    k_values = torch.stack([torch.from_numpy(v.T.copy() if transposed else v) for _, v in keys])
    v_values = torch.stack([torch.from_numpy(v) for _, v in values])
    return Case(pages, [w for w, _ in keys], [w for w, _ in values], k_values, v_values, transposed)


def narrow(isa: str, kv_type: str) -> bool:
    """Whether latent rows are multiplied as bfloat16 or int8: as coarse as the activations of quantised weights."""
    return (isa == "avx512bf16" and kv_type != "f32") or (isa.startswith("avx512") and kv_type == "q8")


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("name", "kv_type"), [("F32", "f32"), ("F16", "f16"), ("Q8_0", "f16"), ("Q5_0", "bf16")])
@pytest.mark.parametrize(("start", "rows"), [(0, 1), (0, 70), (500, 40), (1090, 5)])
def test_both_forms_match_the_reference(
    isa: str, name: str, kv_type: str, transposed: bool, start: int, rows: int
) -> None:
    case = build(start + rows, name, kv_type, transposed, isa)
    q = normal(rows, HEADS * (NOPE + ROPE), seed=5)
    shaped = torch.from_numpy(q).reshape(rows, HEADS, -1)
    stored = case.stored(start + rows)
    wanted = reference(shaped, stored, case.k_values, case.v_values, start, 0.2).reshape(rows, -1).numpy()
    bound = (3e-5 if name.startswith("F") and not narrow(isa, kv_type) else 4e-2) * np.abs(wanted).max()
    for roles in (np.zeros(rows), np.ones(rows), np.arange(rows) % 3 == 1):
        got = case.run(q, start, roles, How(2, isa))
        assert np.abs(got - wanted).max() <= bound


@pytest.mark.parametrize("transposed", [False, True])
def test_a_row_depends_on_its_role_and_not_on_its_batch(isa: str, transposed: bool) -> None:
    tokens = 1090
    case = build(tokens, "Q8_0", "f16", transposed, isa)
    q = normal(tokens, HEADS * (NOPE + ROPE), seed=5)
    roles = np.arange(tokens) % 97 > 60
    together = case.run(q, 0, roles, How(1, isa))
    assert np.isfinite(together).all()
    assert np.array_equal(together, case.run(q, 0, roles, How(3, isa)))
    for first, count in [(0, 1), (511, 1), (512, 1), (63, 1), (1030, 7), (700, 333), (1089, 1), (60, 200)]:
        part = slice(first, first + count)
        assert np.array_equal(together[part], case.run(q[part], first, roles[part], How(2, isa))), (first, count)


@pytest.mark.parametrize("transposed", [False, True])
def test_keys_and_values_that_round_the_latent_rows_differently(isa: str, transposed: bool) -> None:
    case = build(90, "Q5_0", "f16", transposed, isa, lora=256, v_name="Q4_K")
    q = normal(90, HEADS * (NOPE + ROPE), seed=5)
    shaped = torch.from_numpy(q).reshape(90, HEADS, -1)
    wanted = reference(shaped, case.stored(90), case.k_values, case.v_values, 0, 0.2).reshape(90, -1).numpy()
    roles = np.arange(90) % 7 == 3
    together = case.run(q, 0, roles, How(2, isa))
    assert np.abs(together - wanted).max() <= 4e-2 * np.abs(wanted).max()
    for part in (slice(0, 1), slice(33, 70), slice(87, 90)):
        assert np.array_equal(together[part], case.run(q[part], part.start, roles[part], How(1, isa)))


def test_latent_rows_as_q8(isa: str) -> None:
    case = build(90, "F32", "q8", False, isa, rope=32)
    q = normal(30, HEADS * (NOPE + 32), seed=5)
    stored = case.stored(90)
    shaped = torch.from_numpy(q).reshape(30, HEADS, -1)
    wanted = reference(shaped, stored, case.k_values, case.v_values, 60, 0.2).reshape(30, -1).numpy()
    for roles in (np.zeros(30), np.ones(30)):
        bound = (4e-2 if narrow(isa, "q8") else 3e-5) * np.abs(wanted).max()
        assert np.abs(case.run(q, 60, roles, How(1, isa)) - wanted).max() <= bound


def test_wrong_latent_layers_are_refused_by_name() -> None:
    layer = latent_layer("f16", LORA + ROPE)
    weights = [make("F32", NOPE, LORA)[0], make("F32", VALUE, LORA)[0]]
    op = MlaAttention(1, 0, 0, 1, 1.0, LORA, NOPE, VALUE, 0, 1)
    program = Program((NOPE + ROPE, VALUE), tuple(w.ref() for w in weights), (layer,), PAGE, (), (op,), 1, VALUE)
    NativeProgram(program, 1)
    for text, wrong in {
        "does not hold latent rows of 100": replace(op, kv_lora=100),
        "buffer 0 is 52 wide, not 104": replace(op, heads=2),
        "tensor 1 has 37 rows, not 32": replace(op, k_b=1),
        "stores no V": Attention(1, 0, 0, 1, 1.0),
    }.items():
        with pytest.raises(ValueError, match=text):
            NativeProgram(replace(program, instructions=(wrong,)), 1)
