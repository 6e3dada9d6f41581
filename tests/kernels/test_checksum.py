"""The native checksums against the xxhash package, on every level that this machine can run."""

from __future__ import annotations

import numpy as np
import pytest
import xxhash

from kernels.checksum import cpu, reference
from kernels.native_program import available_isas

LENGTHS = (241, 256, 319, 320, 1023, 1024, 1025, 1088, 2048, 2049, 5000, 65536, 98304, 100_003)


def pieces_of(lengths: tuple[int, ...]) -> np.ndarray:
    """Pieces at odd distances, one after the other."""
    starts = np.cumsum([3, *(length + 5 for length in lengths)])[:-1]
    return np.stack([starts, starts + lengths], axis=1).astype(np.int64)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("lengths", [LENGTHS, (0, 1, 240, 300)])
def test_equal_to_the_reference(isa: str, lengths: tuple[int, ...]) -> None:
    pieces = pieces_of(lengths)
    payload = np.random.default_rng(7).integers(0, 256, int(pieces[-1, 1]) + 9, np.uint8)
    sums = b"".join(xxhash.xxh3_128_digest(payload[a:b].tobytes()) for a, b in pieces)
    assert cpu.intact([(payload, pieces, sums)], isa)[0]
    assert reference.intact([(payload, pieces, sums)])[0]


@pytest.mark.parametrize("isa", available_isas())
def test_any_flipped_bit_is_noticed(isa: str) -> None:
    payload = np.random.default_rng(8).integers(0, 256, 4000, np.uint8)
    pieces = np.array([[0, 1500], [1536, 3900]], np.int64)
    sums = b"".join(xxhash.xxh3_128_digest(payload[a:b].tobytes()) for a, b in pieces)
    for place in range(0, 3900, 37):
        payload[place] ^= 1 << place % 8
        inside = place < 1500 or place >= 1536
        assert cpu.intact([(payload, pieces, sums)], isa)[0] != inside, place
        payload[place] ^= 1 << place % 8


def test_pieces_outside_the_payload_are_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        cpu.intact([(np.zeros(300, np.uint8), np.array([[0, 301]], np.int64), bytes(16))])


@pytest.mark.parametrize("isa", available_isas())
def test_of_many_parts_the_damaged_ones_are_named(isa: str) -> None:
    chance = np.random.default_rng(9)
    parts = []
    for number in range(7):
        data = chance.integers(0, 256, 900 + number, np.uint8)
        sums = xxhash.xxh3_128_digest(data[5:400].tobytes()) + xxhash.xxh3_128_digest(data[448:].tobytes())
        parts.append((data, np.array([[5, 400], [448, len(data)]], np.int64), sums))
    parts[2][0][399] ^= 1
    parts[5][0][-1] ^= 128
    assert cpu.intact(parts, isa) == [True, True, False, True, True, False, True]
    assert cpu.intact([], isa) == []
