"""Mutated headers: the reader and what stands on it raise typed errors only, and stay within bounds."""

from __future__ import annotations

import os
import random
import struct
import sys
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.errors import EngineError
from engine.gguf import GgufFile, MetadataArray
from engine.models.families import spec_from_gguf
from engine.models.tensors import check_tensors
from engine.tokenizer import Tokenizer
from tests.engine.gguf_bytes import ARRAY, BOOL, F32, STRING, U32
from tests.engine.tiny_model import KEYS, WORDS, Changes, Shapes, content

MUTANTS = 1000
MANY = int(os.environ.get("PAGEKEEP_FUZZ_FILES", "10000"))
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


def bases() -> list[bytes]:
    """A dense model, a mixture of experts, one with a SentencePiece vocabulary, latent attention, sliding windows."""
    experts: Shapes = {
        f"blk.{layer}.ffn_{part}": shape
        for layer in range(2)
        for part, shape in {
            "gate.weight": None,
            "up.weight": None,
            "down.weight": None,
            "gate_inp.weight": (8, 3),
            "gate_exps.weight": (8, 16, 3),
            "up_exps.weight": (8, 16, 3),
            "down_exps.weight": (16, 8, 3),
        }.items()
    }
    moe: Changes = {"llama.expert_count": (U32, 3), "llama.expert_used_count": (U32, 2)}
    scored: Changes = {
        "tokenizer.ggml.model": (STRING, "llama"),
        "tokenizer.ggml.scores": (ARRAY, (F32, [-float(i) for i in range(len(WORDS))])),
        "tokenizer.ggml.merges": None,
    }
    return [content(), content(moe, experts), content(scored), windowed()]


def windowed() -> bytes:
    keys = {key.replace("llama.", "gpt-oss."): value for key, value in KEYS.items()}
    window: Changes = {
        "gpt-oss.attention.sliding_window": (U32, 4),
        "gpt-oss.attention.sliding_window_pattern": (ARRAY, (BOOL, [True, False])),
    }
    gone: Changes = {key: None for key in KEYS if key.startswith("llama.")}
    sinks: Shapes = {f"blk.{layer}.attn_sinks.weight": (2,) for layer in range(2)}
    return content({**keys, **gone, **window, "general.architecture": (STRING, "gpt-oss")}, sinks)


@pytest.mark.parametrize("base", range(4))
def test_the_unchanged_models_are_read(tmp_path: Path, base: int) -> None:
    path = tmp_path / "whole.gguf"
    path.write_bytes(bases()[base])
    read_everything(path)


def refusals(folder: Path, seed: int, mutants: int) -> Iterator[EngineError | None]:
    """The typed error of each mutant, None where it is still a sound model. Any other exception comes out."""
    originals, rng, path = bases(), random.Random(seed), folder / "mutant.gguf"
    for _ in range(mutants):
        path.write_bytes(mutated(rng.choice(originals), rng))
        try:
            read_everything(path)
        except EngineError as error:
            yield error.with_traceback(None)
        else:
            yield None
        path.unlink()


def test_mutants_raise_typed_errors_and_stay_small(tmp_path: Path) -> None:
    list(refusals(tmp_path, 1, 20))  # what is loaded once does not count
    tracemalloc.start()
    errors = [error for error in refusals(tmp_path, 20, MUTANTS) if error is not None]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(errors) > MUTANTS // 3
    assert all(error.why and error.next for error in errors)
    assert peak < 8 << 20


@contextmanager
def room(size: int) -> Iterator[None]:
    """Beyond `size` bytes more of address space there is none (Linux; elsewhere no limit): a MemoryError comes out."""
    if sys.platform != "linux":
        yield
        return
    import resource

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ten_thousand_mutants_a_minute(tmp_path: Path) -> None:
    """PAGEKEEP_FUZZ_SEED: so that every run of a pipeline can see other mutants."""
    seed, started = int(os.environ.get("PAGEKEEP_FUZZ_SEED", "7")), time.process_time()
    with room(256 << 20):
        refused = sum(error is not None for error in refusals(tmp_path, seed, MANY))
    seconds = time.process_time() - started
    assert refused > MANY // 3
    assert MANY / seconds * 60 >= 10_000  # of processor time


@pytest.mark.parametrize("length", range(0, 640, 13))
def test_every_truncation_is_refused(tmp_path: Path, length: int) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(content()[:length])
    with pytest.raises(EngineError):
        read_everything(path)
