"""Dequantisation is exact, bit for bit, to llama.cpp's conversion."""

from __future__ import annotations

import gguf as package
import numpy as np
import pytest

from engine.gguf import GGML_TYPES
from engine.gguf.dequantise import DEQUANTISED_TYPES, dequantise
from tests.engine.parity import DATA, parity_folder

NAMES = sorted(GGML_TYPES[type_id].name for type_id in DEQUANTISED_TYPES)
IDS = {kind.name: type_id for type_id, kind in GGML_TYPES.items()}


def assert_same_bits(ours: np.ndarray, theirs: np.ndarray) -> None:
    np.testing.assert_array_equal(ours.view(np.uint32), theirs.view(np.uint32))


@pytest.mark.parametrize("name", NAMES)
def test_stored_rows(name: str) -> None:
    with np.load(DATA / "goldens" / "dequantised-rows.npz") as stored:
        assert_same_bits(dequantise(stored[f"{name}_raw"], IDS[name], 1024), stored[f"{name}_f32"])


@pytest.mark.parametrize("name", NAMES)
def test_all_reference_rows(name: str) -> None:
    with np.load(parity_folder() / "goldens" / "dequant.npz") as stored:
        assert_same_bits(dequantise(stored[f"{name}_raw"], IDS[name], 1024), stored[f"{name}_f32"])


BY_THE_PACKAGE = sorted(set(NAMES) - {"F32", "F16", "BF16", "Q1_0", "Q2_0"})
# Where the f16 scales lie, whose exponents must not be all ones: random ones are no numbers.
SCALES = {"Q2_K": (81, 83), "Q3_K": (109,), "Q6_K": (209,), "TQ1_0": (53,), "TQ2_0": (65,), "IQ1_M": (55,), "MXFP4": ()}


@pytest.mark.parametrize("name", BY_THE_PACKAGE)
def test_random_blocks_agree_with_the_package(name: str) -> None:
    rng, kind = np.random.default_rng(5), GGML_TYPES[IDS[name]]
    blocks = rng.integers(0, 256, (3 * 5, kind.size), np.uint8)
    for column in SCALES.get(name, (1, 3)):
        blocks[:, column] &= 0x3B
    theirs = package.dequantize(blocks.reshape(3, -1), package.GGMLQuantizationType[name])
    ours = dequantise(blocks.reshape(-1), IDS[name], 5 * kind.block)
    assert ours.shape == (3, 5 * kind.block)
    np.testing.assert_array_equal(ours, theirs)


def test_single_vector_and_unknown_type() -> None:
    np.testing.assert_array_equal(dequantise(np.arange(3, dtype="<f4").view(np.uint8), 0, 3), [[0, 1, 2]])
    with pytest.raises(KeyError):
        dequantise(np.zeros(36, np.uint8), IDS["Q8_1"], 32)


def test_every_type_of_a_file_has_a_conversion() -> None:
    integers = {"I8", "I16", "I32", "I64", "F64"}
    activations = {"Q8_1", "Q8_K"}
    assert set(NAMES) == {kind.name for kind in GGML_TYPES.values()} - integers - activations
