"""Record headers: what is written is read back; whatever else lies there is no record."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kv.keys import Key
from engine.store.record import BLOCK, Kind, RecordHeader, checksum, decode, intact, needs_more


def header(kind: Kind = Kind.PAGE, tokens: int = 7) -> RecordHeader:
    return RecordHeader(
        kind,
        bytes(range(32)),
        Key(b"k" * 16),
        Key(b"p" * 16),
        128,
        np.arange(tokens, dtype=np.int32) * 1000,
        (np.arange(tokens) % 2).astype(np.uint8),
        group=1,
        layout_id=1,
        sums=b"a" * 16 + b"b" * 16,
        stops=(100, 228),
        numerics="avx512/cpu/1",
        conversation="Gespräch 7",
        serial=123456789,
        payload_bytes=228,
        extra_bytes=8,
        extra_sum=b"x" * 16,
        flags=1,
    )


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("tokens", [0, 1, 256, 3000])
def test_round_trip(kind: Kind, tokens: int) -> None:
    wanted = header(kind, tokens)
    data = wanted.encode()
    assert len(data) == wanted.payload_offset
    assert wanted.payload_offset % (BLOCK if kind == Kind.PAGE else 64) == 0
    assert wanted.record_bytes % BLOCK == 0
    assert needs_more(data[:BLOCK]) == wanted.header_bytes
    found = decode(data)
    assert found is not None
    for name in RecordHeader.__dataclass_fields__:
        assert np.array_equal(getattr(found, name), getattr(wanted, name)), name


def test_every_flipped_bit_of_a_header_is_noticed() -> None:
    wanted = header()
    data = wanted.encode()
    for position in range(wanted.header_bytes * 8):
        flipped = bytearray(data)
        flipped[position // 8] ^= 1 << position % 8
        assert decode(bytes(flipped)) is None


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=600), st.integers(0, 500))
def test_no_bytes_make_it_fail(noise: bytes, position: int) -> None:
    data = bytearray(header().encode())
    data[position : position + len(noise)] = noise
    decode(bytes(data))
    decode(b"PKRECORD" + noise)
    with_sum = b"PKRECORD" + noise
    decode(with_sum + checksum(with_sum))


def test_a_layer_is_checked_by_its_own_sum() -> None:
    payload = np.random.default_rng(0).integers(0, 256, 228, np.uint8)
    good = RecordHeader(
        Kind.PAGE, bytes(32), sums=checksum(payload[:100]) + checksum(payload[128:228]), stops=(100, 228),
        payload_bytes=228,
    )  # fmt: skip
    assert intact(good, payload)
    payload[110] ^= 1
    assert intact(good, payload), "between the layers lies nothing"
    payload[200] ^= 1
    assert not intact(good, payload)
    assert not intact(good, payload[:-1])
