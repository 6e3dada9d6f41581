"""The fingerprint: everything that determines the numbers in a page, and nothing else.

Covered: tensor names, types, shapes and content samples; the computation's parameters; rope factors; KV
types and
layout; this module's version. Not covered: names, context size, template, tokenizer, placement, threads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.gguf import GgufFile
from engine.kv.layout import PageLayout
from engine.models.spec import ModelSpec

VERSION = 1
FINGERPRINT_BYTES = 32
WHOLE_TENSOR_BYTES = 64 << 10
_SAMPLES = 4
_SAMPLE_BYTES = 4 << 10
_NOT_NUMBERS = {"ModelSpec.name", "ModelSpec.context"}


def fingerprint(gguf: GgufFile, spec: ModelSpec, layout: PageLayout) -> bytes:
    """32 bytes. Reads all tensors under 64 KB and four samples of 4 KB of the others."""
    digest = hashlib.blake2b(digest_size=FINGERPRINT_BYTES, person=b"pagekeep-kv")
    digest.update(f"{VERSION}|{describe(spec)}|{layout.describe()}".encode())
    for name, info in sorted(gguf.tensors.items()):
        digest.update(f"|{name}|{info.ggml_type}|{info.shape}|".encode())
        for piece in _samples(gguf.raw(name)):
            digest.update(piece.tobytes())
    return digest.digest()


def describe(value: Any, path: str = "") -> str:
    """Canonical text of a spec. Fields at their default are left out, so that a new field changes nothing old."""
    if is_dataclass(value) and not isinstance(value, type):
        name = type(value).__name__
        parts = (
            f"{entry.name}={describe(getattr(value, entry.name))}"
            for entry in fields(value)
            if f"{name}.{entry.name}" not in _NOT_NUMBERS and not _is_default(value, entry.name)
        )
        return f"{name}({','.join(parts)})"
    if isinstance(value, tuple):
        return f"[{','.join(describe(item) for item in value)}]"
    if isinstance(value, float):
        return float(np.float32(value)).hex()  # what the kernels see; steady against the last bits of a library's pow
    return f"{value!s}"


def _is_default(value: Any, name: str) -> bool:
    entry = next(entry for entry in fields(value) if entry.name == name)
    return entry.default is not MISSING and bool(getattr(value, name) == entry.default)


def _samples(raw: npt.NDArray[np.uint8]) -> Iterator[npt.NDArray[np.uint8]]:
    if len(raw) <= WHOLE_TENSOR_BYTES:
        yield raw
        return
    last = len(raw) - _SAMPLE_BYTES
    for index in range(_SAMPLES):
        start = last * index // (_SAMPLES - 1)
        yield raw[start : start + _SAMPLE_BYTES]
