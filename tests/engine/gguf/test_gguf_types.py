"""The type table against the gguf package."""

from __future__ import annotations

import gguf as package
import pytest

from engine.gguf import GGML_TYPES, type_name
from engine.gguf.types import IK_TYPES, is_ik_only

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
