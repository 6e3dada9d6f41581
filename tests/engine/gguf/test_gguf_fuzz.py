"""Mutated headers: the reader and what stands on it raise typed errors only, and stay within bounds."""

from __future__ import annotations

import random
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from engine.errors import EngineError
from engine.gguf import GgufFile, MetadataArray
from engine.models.families import spec_from_gguf
from engine.models.tensors import check_tensors
from engine.tokenizer import Tokenizer
from tests.engine.gguf_bytes import ARRAY, BOOL, F32, I32, STRING, U32, Tensor, gguf, pair

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


def tiny_model() -> bytes:
    """A whole llama model of 8 channels with a vocabulary of bytes."""
    words = [chr(code) for code in range(0x21, 0x7F)] + ["ab", "<s>"]
    keys = [
        pair("general.architecture", STRING, "llama"),
        pair("llama.block_count", U32, 1),
        pair("llama.context_length", U32, 32),
        pair("llama.embedding_length", U32, 8),
        pair("llama.feed_forward_length", U32, 16),
        pair("llama.attention.head_count", U32, 2),
        pair("llama.attention.head_count_kv", ARRAY, (I32, [1])),
        pair("llama.attention.layer_norm_rms_epsilon", F32, 1e-5),
        pair("llama.rope.scaling.type", STRING, "yarn"),
        pair("llama.rope.scaling.factor", F32, 4.0),
        pair("tokenizer.ggml.model", STRING, "gpt2"),
        pair("tokenizer.ggml.pre", STRING, "smollm"),
        pair("tokenizer.ggml.tokens", ARRAY, (STRING, words)),
        pair("tokenizer.ggml.token_type", ARRAY, (I32, [1] * (len(words) - 1) + [3])),
        pair("tokenizer.ggml.merges", ARRAY, (STRING, ["a b"])),
        pair("tokenizer.ggml.bos_token_id", U32, len(words) - 1),
        pair("tokenizer.ggml.add_bos_token", BOOL, True),
    ]
    shapes = {
        "token_embd.weight": (8, len(words)), "output_norm.weight": (8,), "blk.0.attn_norm.weight": (8,),
        "blk.0.attn_q.weight": (8, 8), "blk.0.attn_k.weight": (8, 4), "blk.0.attn_v.weight": (8, 4),
        "blk.0.attn_output.weight": (8, 8), "blk.0.ffn_norm.weight": (8,), "blk.0.ffn_gate.weight": (8, 16),
        "blk.0.ffn_up.weight": (8, 16), "blk.0.ffn_down.weight": (16, 8),
    }  # fmt: skip
    tensors = [Tensor(name, shape, data=bytes(4 * int(np.prod(shape)))) for name, shape in shapes.items()]
    return gguf(keys, tensors)


def mutated(content: bytes, rng: random.Random) -> bytes:
    """One to three changes: a bit, a byte, an edge number, a cut, a copied or removed stretch."""
    data = bytearray(content)
    header = len(content) - 3000  # most changes where they matter
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
    path = tmp_path / "tiny.gguf"
    path.write_bytes(tiny_model())
    read_everything(path)


def test_mutants_raise_typed_errors_and_stay_small(tmp_path: Path) -> None:
    content, rng, path = tiny_model(), random.Random(20), tmp_path / "mutant.gguf"
    errors: list[EngineError] = []
    tracemalloc.start()
    for _ in range(MUTANTS):
        path.write_bytes(mutated(content, rng))
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
    path.write_bytes(tiny_model()[:length])
    with pytest.raises(EngineError):
        read_everything(path)
