"""The binding of a spec to tensors: names, fused parts, and each refusal by name before anything is loaded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.errors import ModelFileError, UnsupportedModel
from engine.gguf import GgufFile
from engine.models.families import spec_from_gguf
from engine.models.ffn_tensors import DenseTensors, MoeTensors
from engine.models.tensors import AttentionTensors, MlaTensors, ModelTensors, bind, check_tensors
from tests.engine.gguf_bytes import U32
from tests.engine.parity import DATA
from tests.engine.tiny_model import WORDS, Changes, Shapes, saved


def bound(folder: Path, shapes: Shapes | None = None) -> ModelTensors:
    with GgufFile.open(saved(folder, shapes=shapes)) as file:
        spec = spec_from_gguf(file)
        check_tensors(file, spec)
        return bind(file, spec)


def parts(tensors: ModelTensors, index: int) -> tuple[AttentionTensors, DenseTensors]:
    layer = tensors.layers[index]
    assert isinstance(layer.attention, AttentionTensors)
    assert isinstance(layer.ffn, DenseTensors)
    return layer.attention, layer.ffn


def test_names_and_tied_output(tmp_path: Path) -> None:
    tensors = bound(tmp_path)
    assert tensors.output is tensors.token_embd
    assert tensors.output_norm.name == "output_norm.weight"
    attention, ffn = parts(tensors, 1)
    assert attention.q.name == "blk.1.attn_q.weight"
    assert (attention.k.rows, attention.k.cols) == (8, 8)
    assert (ffn.down.rows, ffn.down.cols) == (8, 16)
    assert attention.q_bias is None
    assert attention.q_norm is None


def test_untied_output_and_biases(tmp_path: Path) -> None:
    biases: Shapes = {
        "output.weight": (8, len(WORDS)),
        "blk.0.attn_q.bias": (8,),
        "blk.0.attn_k.bias": (4,),
        "blk.0.attn_v.bias": (4,),
        "blk.0.attn_output.bias": (8,),
        "blk.0.ffn_down.bias": (8,),
    }
    tensors = bound(tmp_path, biases)
    layer, ffn = parts(tensors, 0)
    found = [tensors.output, layer.q_bias, layer.k_bias, layer.v_bias, layer.o_bias, ffn.down_bias]
    assert [info.name for info in found if info is not None] == list(biases)


def test_fused_qkv_are_rows_of_one_tensor() -> None:
    with GgufFile.open(DATA / "models" / "llama-fusedqkv-f32.gguf") as file:
        layer, _ = parts(bind(file, spec_from_gguf(file)), 2)
        whole = file.raw("blk.2.attn_qkv.weight").view("<f4").reshape(128, 64)
        rows = [file.raw(info).view("<f4").reshape(-1, 64) for info in (layer.q, layer.k, layer.v)]
    assert [len(part) for part in rows] == [64, 32, 32]
    np.testing.assert_array_equal(np.concatenate(rows), whole)


def test_fused_bias_is_cut_alike(tmp_path: Path) -> None:
    fused: Shapes = {f"blk.0.attn_{part}.weight": None for part in "qkv"}
    tensors = bound(tmp_path, {**fused, "blk.0.attn_qkv.weight": (8, 16), "blk.0.attn_qkv.bias": (16,)})
    q, k, v = (getattr(parts(tensors, 0)[0], f"{part}_bias") for part in "qkv")
    assert [info.cols for info in (q, k, v)] == [8, 4, 4]
    assert [info.offset - q.offset for info in (q, k, v)] == [0, 32, 48]


@pytest.mark.parametrize("name", ["token_embd.weight", "output_norm.weight", "blk.1.ffn_up.weight"])
def test_missing_tensors_are_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelFileError, match=f"Tensor '{name}' is missing, expected shape"):
        bound(tmp_path, {name: None})


def test_wrong_shapes_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"'blk.0.attn_q.weight' has shape \[8, 7\], expected \[8, 8\]"):
        bound(tmp_path, {"blk.0.attn_q.weight": (8, 7)})
    with pytest.raises(ModelFileError, match=r"'token_embd.weight' has shape \[8, 12\], expected \[8, 96\]"):
        bound(tmp_path, {"token_embd.weight": (8, 12)})
    with pytest.raises(ModelFileError, match=r"'blk.0.attn_k.bias' has shape \[8\], expected \[4\]"):
        bound(tmp_path, {"blk.0.attn_k.bias": (8,)})


def test_tensors_of_no_known_use_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModel, match=r"'blk\.1\.attn_sinks.weight' is not part of a llama model"):
        bound(tmp_path, {"blk.1.attn_sinks.weight": (2,)})
    with pytest.raises(UnsupportedModel, match=r"'token_embd\.scale' is not part of a llama model"):
        bound(tmp_path, {"token_embd.scale": (1,)})
    bound(tmp_path, {"rope_freqs.weight": (2,), "blk.0.attn_rot_embd.weight": (2,)})


def test_scales_belong_to_the_matrix_beside_them(tmp_path: Path) -> None:
    layer, ffn = parts(bound(tmp_path, {"blk.1.attn_q.scale": (1,), "blk.1.attn_q.input_scale": (1,)}), 1)
    assert (layer.k.scale, ffn.up.scale) == (1.0, 1.0)
    assert 0 < layer.q.scale < 1e-20  # the file says 0
    with pytest.raises(ModelFileError, match=r"'blk\.1\.attn_q\.scale' has shape \[2\], expected \[1\]"):
        bound(tmp_path, {"blk.1.attn_q.scale": (2,)})


def test_types_the_backend_lacks_are_refused() -> None:
    with GgufFile.open(DATA / "models" / "type-dense-q4_1.gguf") as file:
        spec = spec_from_gguf(file)
        bind(file, spec, {0, 3})
        with pytest.raises(UnsupportedModel, match=r"'token_embd\.weight' has type Q4_1; supported: F32, Q8_0"):
            bind(file, spec, {0, 8})


MOE: Changes = {"llama.expert_count": (U32, 3), "llama.expert_used_count": (U32, 2)}
DENSE_FFN: Shapes = {f"blk.{i}.ffn_{part}.weight": None for i in range(2) for part in ("gate", "up", "down")}
ROUTERS: Shapes = {f"blk.{i}.ffn_gate_inp.weight": (8, 3) for i in range(2)}
DOWNS: Shapes = {f"blk.{i}.ffn_down_exps.weight": (16, 8, 3) for i in range(2)}


def experts_of(folder: Path, shapes: Shapes) -> MoeTensors:
    with GgufFile.open(saved(folder, MOE, {**DENSE_FFN, **ROUTERS, **shapes})) as file:
        spec = spec_from_gguf(file)
        check_tensors(file, spec)
        ffn = bind(file, spec).layers[1].ffn
    assert isinstance(ffn, MoeTensors)
    return ffn


def test_experts_are_views_of_one_tensor(tmp_path: Path) -> None:
    stacked: Shapes = {f"blk.{i}.ffn_{part}_exps.weight": (8, 16, 3) for i in range(2) for part in ("gate", "up")}
    ffn = experts_of(tmp_path, {**DOWNS, **stacked})
    assert [view.offset - ffn.gate[0].offset for view in ffn.gate] == [0, 512, 1024]
    assert {(view.cols, view.rows) for view in ffn.gate + ffn.up} == {(8, 16)}
    assert {(view.cols, view.rows) for view in ffn.down} == {(16, 8)}


def test_fused_gate_and_up_are_cut_per_expert(tmp_path: Path) -> None:
    ffn = experts_of(tmp_path, {**DOWNS, **{f"blk.{i}.ffn_gate_up_exps.weight": (8, 32, 3) for i in range(2)}})
    first = ffn.gate[0].offset
    assert [view.offset - first for view in ffn.gate] == [0, 1024, 2048]
    assert [view.offset - first for view in ffn.up] == [512, 1536, 2560]


def test_experts_may_be_tensors_of_their_own(tmp_path: Path) -> None:
    single: Shapes = {
        f"blk.{i}.ffn_{part}.{e}.weight": (16, 8) if part == "down" else (8, 16)
        for i in range(2)
        for part in ("gate", "up", "down")
        for e in range(3)
    }
    ffn = experts_of(tmp_path, single)
    assert [view.name for view in ffn.up] == [f"blk.1.ffn_up.{e}.weight" for e in range(3)]


def test_both_forms_of_latent_attention_hold_the_same_matrices() -> None:
    with GgufFile.open(DATA / "models" / "ds2-lite-mini.gguf") as file:
        one = latent(file)
        keys = [file.raw(head).view("<f4").reshape(16, 32) for head in one.k_b]
    with GgufFile.open(DATA / "models" / "ds2-v3-mini.gguf") as file:
        two = latent(file)
    assert (one.k_transposed, two.k_transposed) == (False, True)
    assert [(head.rows, head.cols) for head in one.v_b] == [(24, 32)] * 4
    assert [(head.rows, head.cols) for head in two.k_b] == [(32, 16)] * 4
    assert len({key.tobytes() for key in keys}) == 4


def latent(file: GgufFile) -> MlaTensors:
    attention = bind(file, spec_from_gguf(file)).layers[1].attention
    assert isinstance(attention, MlaTensors)
    return attention
