"""Mutated headers: the reader and what stands on it raise typed errors only, and stay within bounds."""

from __future__ import annotations

import random
import struct
import tracemalloc
from pathlib import Path

import pytest

from engine.errors import EngineError
from engine.gguf import GgufFile, MetadataArray
from engine.models.families import spec_from_gguf
from engine.models.tensors import check_tensors
from engine.tokenizer import Tokenizer
from tests.engine.tiny_model import content, saved

MUTANTS = 3000
EDGES = [
    0,
    1,
    2,
    3,
    7,
    0x7F,
    0x80,
    0xFF,
    0xFFFF,
    0x7FFFFFFF,
    0xFFFFFFFF,
    1 << 40,
    (1 << 63) - 1,
    1 << 63,
    (1 << 64) - 1,
]


def mutated(original: bytes, rng: random.Random) -> bytes:
    """One to three changes: a bit, a byte, an edge number, a cut, a copied or removed stretch."""
    data = bytearray(original)
    header = original.index(b"blk.1.ffn_down")  # most changes where they matter
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(4, min(header, len(data)) if rng.random() < 0.9 else len(data))
        kind = rng.randrange(6)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.randrange(256)
        elif kind == 2:
            data[at : at + 8] = struct.pack("<Q", rng.choice(EDGES))
        elif kind == 3:
            data[at : at + 4] = struct.pack("<I", rng.choice(EDGES) & 0xFFFFFFFF)
        elif kind == 4:
            del data[at : at + rng.choice([1, 8, 40, len(data)])]
        else:
            data[at:at] = data[at : at + rng.choice([1, 8, 40])]
        if len(data) < 32:
            break
    return bytes(data)


def read_everything(path: Path) -> None:
    with GgufFile.open(path) as file:
        for value in file.metadata.values():
            if isinstance(value, MetadataArray):
                value.tolist()
        for name, info in file.tensors.items():
            assert len(file.raw(name)) == info.nbytes
        spec = spec_from_gguf(file)
        check_tensors(file, spec)
        tokenizer = Tokenizer.from_gguf(file)
        tokenizer.decode(tokenizer.encode("ab ba<s>", special=True))


def test_the_unchanged_model_is_read(tmp_path: Path) -> None:
    read_everything(saved(tmp_path))


def test_mutants_raise_typed_errors_and_stay_small(tmp_path: Path) -> None:
    original, rng, path = content(), random.Random(20), tmp_path / "mutant.gguf"
    errors: list[EngineError] = []
    tracemalloc.start()
    for _ in range(MUTANTS):
        path.write_bytes(mutated(original, rng))
        try:
            read_everything(path)
        except EngineError as error:
            errors.append(error.with_traceback(None))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(errors) > MUTANTS // 3
    assert all(error.why and error.next for error in errors)
    assert peak < 8 << 20


@pytest.mark.parametrize("length", range(0, 640, 13))
def test_every_truncation_is_refused(tmp_path: Path, length: int) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(content()[:length])
    with pytest.raises(EngineError):
        read_everything(path)
