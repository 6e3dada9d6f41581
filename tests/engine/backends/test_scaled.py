"""Factors beside matrices (`.scale`, NVFP4 files made from checkpoints) and vectors of 16-bit floats: the same model
with the factors multiplied into its weights and all vectors as F32 is the truth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Type

from engine.backends.reference import ReferenceBackend
from engine.gguf import GgufFile
from engine.kv.layout import PageLayout
from engine.models.families import spec_from_gguf
from tests.engine.backends.test_native import native
from tests.engine.parity import DATA, Floats, all_logits, relative_errors

TOKENS = np.random.default_rng(5).integers(20, 200, 21).astype(np.int32)
Change = Callable[[str, Floats], list[tuple[str, Floats, Type]]]


def rewritten(source: Path, target: Path, change: Change) -> Path:
    """`source`, an F32 file, with each tensor replaced by those that `change` makes of it."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.fields["general.architecture"].contents())
    for key, found in reader.fields.items():
        if not key.startswith("GGUF.") and key != "general.architecture":
            inner = found.types[-1] if len(found.types) > 1 else None
            writer.add_key_value(key, found.contents(), found.types[0], sub_type=inner)
    for tensor in reader.tensors:
        for name, values, kind in change(tensor.name, np.array(tensor.data, np.float32)):
            writer.add_tensor(name, gguf.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


def factors_of(name: str, values: Floats) -> Floats | None:
    if values.ndim < 2 or not name.endswith(".weight") or "token_embd" in name or "_inp" in name:
        return None
    if "attn_k_b" in name or "attn_v_b" in name or "attn_kv_b" in name:
        return None
    count = len(values) if values.ndim == 3 else 1
    factors = np.random.default_rng(len(name) + count).uniform(0.5, 1.8, count).astype(np.float32)
    if count > 1:
        factors[0] = 0
    return factors


def apart(name: str, values: Floats) -> list[tuple[str, Floats, Type]]:
    factors = factors_of(name, values)
    beside = [] if factors is None else [(name.removesuffix("weight") + "scale", factors, Type.F32)]
    return [(name, values, Type.F32), *beside]


def together(name: str, values: Floats) -> list[tuple[str, Floats, Type]]:
    factors = factors_of(name, values)
    scaled = values if factors is None else values * factors.reshape(-1, *[1] * (values.ndim - 1))
    return [(name, scaled, Type.F32)]


def narrow(name: str, values: Floats) -> list[tuple[str, Floats, Type]]:
    kind = Type.F16 if len(name) % 2 else Type.BF16
    return [(name, values, Type.F32 if "token_embd" in name else kind)]


def widened(name: str, values: Floats) -> list[tuple[str, Floats, Type]]:
    return [(name, gguf.dequantize(gguf.quantize(v, kind), kind), Type.F32) for _, v, kind in narrow(name, values)]


def both_backends(path: Path) -> tuple[Floats, Floats]:
    with native(path) as (backend, layout):
        fast = all_logits(backend, layout, TOKENS)
    with GgufFile.open(path) as file:
        spec = spec_from_gguf(file)
        layout = PageLayout.for_spec(spec, "f32", "f32")
        return fast, all_logits(ReferenceBackend(file, spec, layout), layout, TOKENS)


@pytest.mark.parametrize("change", [(apart, together), (narrow, widened)], ids=["factors", "16-bit"])
@pytest.mark.parametrize("name", ["gptoss-mini", "ds2-v3-mini", "qwen2moe-mini", "llama-fusedqkv-f32"])
def test_equals_the_plain_file(tmp_path: Path, name: str, change: tuple[Change, Change]) -> None:
    """gpt-oss has every kind of bias."""
    source = DATA / "models" / f"{name}.gguf"
    fast, slow = both_backends(rewritten(source, tmp_path / "one.gguf", change[0]))
    _, truth = both_backends(rewritten(source, tmp_path / "two.gguf", change[1]))
    assert relative_errors(slow, truth).max() < 1e-5
    assert relative_errors(fast, truth).max() < (1e-4 if change[0] is apart else 2e-2)
    plain, _ = both_backends(source)
    assert relative_errors(plain, truth).max() > 1e-4
