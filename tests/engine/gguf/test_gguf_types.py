"""The type table against the gguf package."""

from __future__ import annotations

from pathlib import Path

import gguf as package
import pytest

from engine.errors import UnsupportedModel
from engine.gguf import GGML_TYPES, GgufFile, type_name
from engine.gguf.types import IK_TYPES, is_ik_only
from tests.engine.gguf_bytes import Tensor, gguf

# The package lists an older block of the activation type Q8_1, which no file contains.
COMPARED = [kind for kind in package.GGMLQuantizationType if kind.name != "Q8_1"]


@pytest.mark.parametrize("kind", COMPARED, ids=lambda kind: kind.name)
def test_block_sizes(kind: package.GGMLQuantizationType) -> None:
    ours = GGML_TYPES[int(kind)]
    assert (ours.name, ours.block, ours.size) == (kind.name, *package.GGML_QUANT_SIZES[kind])
    assert ours.row_bytes(ours.block * 3) == ours.size * 3


def test_ik_types_are_no_types_of_llama_cpp() -> None:
    assert all(is_ik_only(type_id) for type_id in IK_TYPES)
    assert not any(is_ik_only(type_id) for type_id in GGML_TYPES)
    assert type_name(144) == "IQ4_KS"
    assert type_name(12) == "Q4_K"
    assert type_name(31) == "Q4_0_4_4"
    assert type_name(1000) == "type 1000"


@pytest.mark.parametrize("type_id", [*IK_TYPES, 150, 231, 399])
def test_a_file_of_ik_llama_cpp_is_refused_by_name_and_told_what_to_do(tmp_path: Path, type_id: int) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf((), [Tensor("blk.0.ffn_up.weight", (256, 4), type_id, bytes(4096))]))
    with pytest.raises(UnsupportedModel) as caught:
        GgufFile.open(path)
    assert f"'blk.0.ffn_up.weight' has type {type_name(type_id)} (id {type_id})" in caught.value.why
    assert "ik_llama.cpp" in caught.value.why
    assert "Q4_K_M" in caught.value.next
