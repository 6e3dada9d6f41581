"""The binding of a spec to tensors: names, fused parts, and each refusal by name before anything is loaded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.errors import ModelFileError, UnsupportedModel
from engine.gguf import GgufFile
from engine.models.families import spec_from_gguf
from engine.models.tensors import ModelTensors, bind, check_tensors
from tests.engine.parity import DATA
from tests.engine.tiny_model import WORDS, Shapes, saved


def bound(folder: Path, shapes: Shapes | None = None) -> ModelTensors:
    with GgufFile.open(saved(folder, shapes=shapes)) as file:
        spec = spec_from_gguf(file)
        check_tensors(file, spec)
        return bind(file, spec)


def test_names_and_tied_output(tmp_path: Path) -> None:
    tensors = bound(tmp_path)
    assert tensors.output is tensors.token_embd
    assert tensors.output_norm.name == "output_norm.weight"
    layer = tensors.layers[1]
    assert layer.q.name == "blk.1.attn_q.weight"
    assert (layer.k.rows, layer.k.cols) == (8, 8)
    assert (layer.down.rows, layer.down.cols) == (8, 16)
    assert layer.q_bias is None
    assert layer.q_norm is None


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
    layer = tensors.layers[0]
    found = [tensors.output, layer.q_bias, layer.k_bias, layer.v_bias, layer.o_bias, layer.down_bias]
    assert [info.name for info in found if info is not None] == list(biases)


def test_fused_qkv_are_rows_of_one_tensor() -> None:
    with GgufFile.open(DATA / "models" / "llama-fusedqkv-f32.gguf") as file:
        layer = bind(file, spec_from_gguf(file)).layers[2]
        whole = file.raw("blk.2.attn_qkv.weight").view("<f4").reshape(128, 64)
        parts = [file.raw(info).view("<f4").reshape(-1, 64) for info in (layer.q, layer.k, layer.v)]
    assert [len(part) for part in parts] == [64, 32, 32]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_fused_bias_is_cut_alike(tmp_path: Path) -> None:
    fused: Shapes = {f"blk.0.attn_{part}.weight": None for part in "qkv"}
    tensors = bound(tmp_path, {**fused, "blk.0.attn_qkv.weight": (8, 16), "blk.0.attn_qkv.bias": (16,)})
    q, k, v = (getattr(tensors.layers[0], f"{part}_bias") for part in "qkv")
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
    bound(tmp_path, {"rope_freqs.weight": (2,), "blk.0.attn_rot_embd.weight": (2,)})


def test_types_the_backend_lacks_are_refused() -> None:
    with GgufFile.open(DATA / "models" / "type-dense-q4_1.gguf") as file:
        spec = spec_from_gguf(file)
        bind(file, spec, {0, 3})
        with pytest.raises(UnsupportedModel, match=r"'token_embd\.weight' has type Q4_1; supported: F32, Q8_0"):
            bind(file, spec, {0, 8})
