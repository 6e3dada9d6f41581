"""Reference logits and how to compare with them; a harness that drives any backend over its own pages.

A golden (.npz) holds llama.cpp's logits for two token sequences. `twin_*`: the same weights dequantised to F32, the
target for a backend that computes in float32. Without them the file's own weights are floats and `log*` is that target.
Rounding of quantised activations makes llama.cpp differ from its own twin by `native_vs_twin_rel`; a fast backend is
allowed twice that and 1e-3.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pytest

from engine.kv.layout import PageLayout
from kernels.program import StepBatch, StepResult

DATA = Path(__file__).parent.parent / "data"
TWIN_LIMIT = 1e-4  # relative error of logits, float32 against float32
GEMMA_LIMIT = 2e-3  # llama.cpp looks GELU up by a 16-bit index even with float weights
GEMMA_GAP = 0.02
SURE_GAP = 1e-3  # logits; smaller gaps between the best two tokens are within rounding

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]


class Backend(Protocol):
    def step(self, batch: StepBatch) -> StepResult: ...


@dataclass(frozen=True)
class Golden:
    """Arrays of one golden; `twin` prefixes are resolved by the accessors."""

    arrays: dict[str, npt.NDArray[Any]]
    meta: dict[str, Any]

    @staticmethod
    def load(path: Path) -> Golden:
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
        return Golden(arrays, json.loads(str(arrays.pop("meta"))))

    def tokens(self, which: str) -> Ids:
        """Sequence "A", "B" or, for real models, "C"."""
        return self.arrays[f"tok{which}"].astype(np.int32)

    def exact(self, name: str) -> npt.NDArray[Any]:
        """The float32 truth: of the twin, where there is one."""
        return self.arrays.get(f"twin_{name}", self.arrays[name])

    def native_limit(self) -> float:
        """How far a backend that rounds activations may be from llama.cpp's own quantised figures."""
        return 2 * float(self.meta.get("native_vs_twin_rel", 1e-4)) + 1e-3


def parity_folder() -> Path:
    """The full set of reference files; skips unless PAGEKEEP_PARITY names it."""
    folder = os.environ.get("PAGEKEEP_PARITY")
    if not folder:
        pytest.skip("PAGEKEEP_PARITY does not name the folder of reference models")
    return Path(folder)


def relative_errors(ours: Floats, theirs: Floats) -> Floats:
    """Norm of the difference over the norm of the reference, for each row."""
    difference = np.linalg.norm(ours - theirs, axis=-1)
    return np.asarray(difference / np.linalg.norm(theirs, axis=-1), np.float32)


def twin_error(golden: Golden, which: str, logits: Floats) -> float:
    """Largest relative error against the float32 truth; `logits` [tokens, vocabulary] of the whole sequence."""
    rows = logits[golden.exact(f"pos{which}")]
    return float(relative_errors(rows, golden.exact(f"log{which}")).max())


def native_error(golden: Golden, which: str, logits: Floats) -> float:
    """Largest relative error against llama.cpp on the quantised file; its limit was measured on sequence A."""
    rows = logits[golden.arrays[f"pos{which}"]]
    return float(relative_errors(rows, golden.arrays[f"log{which}"]).max())


def sure_steps(golden: Golden, gap: float = SURE_GAP) -> int:
    """Greedy steps before the first one whose two best tokens are within rounding of each other."""
    close = np.flatnonzero(golden.exact("greedy_gap") < gap)
    return int(close[0]) if len(close) else len(golden.exact("greedy_gap"))


class Pages:
    """Pages of one sequence in plain memory, 64-byte aligned, filled with a pattern so that a read of what was
    never written shows."""

    def __init__(self, layout: PageLayout, tokens: int) -> None:
        count = -(-tokens // layout.page_tokens)
        size = -(-layout.payload_bytes // 64) * 64
        self._memory = np.full(count * size + 64, 0x7B, np.uint8)
        base = int(self._memory.__array_interface__["data"][0])
        first = base + (-base) % 64
        self.addresses = np.asarray([[first + i * size for i in range(count)]], np.uint64)


def batch_of(tokens: Ids, start: int, pages: Pages, out_rows: Ids | None = None) -> StepBatch:
    """One sequence's rows from position `start` on; logits for all rows unless said."""
    count = len(tokens)
    return StepBatch(
        tokens=np.ascontiguousarray(tokens, np.int32),
        roles=np.zeros(count, np.uint8),
        seq_rows=np.asarray([0, count], np.int32),
        seq_start=np.asarray([start], np.int32),
        pages=pages.addresses,
        seq_write=np.ones(1, np.uint8),
        out_rows=np.arange(count, dtype=np.int32) if out_rows is None else out_rows,
        cancel=np.zeros(1, np.uint8),
    )


def all_logits(backend: Backend, layout: PageLayout, tokens: Ids, chunk: int = 512) -> Floats:
    """Logits [tokens, vocabulary] of a fresh sequence, computed in steps of at most `chunk` tokens."""
    pages = Pages(layout, len(tokens))
    parts = [
        backend.step(batch_of(tokens[start : start + chunk], start, pages)).logits
        for start in range(0, len(tokens), chunk)
    ]
    return np.concatenate(parts)


def greedy(backend: Backend, layout: PageLayout, prompt: Ids, count: int) -> Ids:
    """The `count` most likely tokens behind `prompt`, one step each."""
    pages = Pages(layout, len(prompt) + count)
    last = np.asarray([len(prompt) - 1], np.int32)
    logits = backend.step(batch_of(prompt, 0, pages, last)).logits
    chosen = [int(logits[0].argmax())]
    while len(chosen) < count:
        step = batch_of(np.asarray(chosen[-1:], np.int32), len(prompt) + len(chosen) - 1, pages)
        chosen.append(int(backend.step(step).logits[0].argmax()))
    return np.asarray(chosen, np.int32)
