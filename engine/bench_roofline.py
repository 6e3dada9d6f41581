"""What this machine gives, and what share of it a model's prefill and decode reach. Both in the same minutes.

Bandwidth: the best plain stream over a mapped file. Matrix rates: torch's `_int_mm` (int8) and `mm` (bf16) at
512 x 2048 x 2048. A prefill's operations are two per active matrix weight and token; the head, and what stands behind
the last attention, are computed once, for the last token. A decode step reads the active weights once.
"""

from __future__ import annotations

import mmap
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.bench_compare import Lengths, measure
from engine.gguf import GgufFile
from engine.messages import EngineSettings
from engine.model_report import used_share
from engine.models.families import spec_from_gguf
from engine.tensor_classes import class_of, layer_of

_PASSES = 7
_PRODUCTS = 15
_SCRATCH_BYTES = 256_000_000
_ROWS, _INNER, _COLUMNS = 512, 2048, 2048
_TRIAL_ROWS = 16
_SLOW = 4.0  # G operations per second: no vectors; a product would take seconds


@dataclass(frozen=True)
class Machine:
    """`read`: GB/s over the mapped file; `int8`, `bf16`: G operations per second, 0 where torch has no such product, or
    none that uses this processor's vectors (`_int_mm` without VNNI: about 1 G operations per second)."""

    threads: int
    read: float
    int8: float
    bf16: float


@dataclass(frozen=True)
class Reached:
    """Tokens per second; G operations and GB a second those come to; shares of the int8 rate and of the stream."""

    prefill: float
    prefill_gops: float
    prefill_share: float
    decode: float
    decode_gb_s: float
    decode_share: float


def machine(path: Path | None, threads: int) -> Machine:
    """Without a file a temporary one is read, of a size that no cache holds."""
    int8, bf16 = matrix_rates(threads)
    if path is not None:
        return Machine(threads, stream(path, threads), int8, bf16)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder) / "stream"
        scratch.write_bytes(np.random.default_rng(0).bytes(_SCRATCH_BYTES))
        return Machine(threads, stream(scratch, threads), int8, bf16)


def reached(path: Path, settings: EngineSettings, lengths: Lengths, found: Machine) -> Reached:
    work, once, size = active_work(path)
    rates = measure(path, settings, lengths)
    gops = 2e-9 * (work * lengths.prompt + once) / lengths.prompt * rates.prefill
    gb_s = size * 1e-9 * rates.decode
    share = gops / found.int8 if found.int8 else 0.0
    return Reached(rates.prefill, gops, share, rates.decode, gb_s, gb_s / found.read)


def active_work(path: Path) -> tuple[float, float, float]:
    """Matrix weights that every token of a prompt meets, those that only its last one does, and the bytes of both."""
    work = once = size = 0.0
    with GgufFile.open(path) as gguf:
        spec = spec_from_gguf(gguf)
        for info in gguf.tensors.values():
            share = used_share(info, spec)
            if len(info.shape) < 2 or not share:
                continue
            size += info.nbytes * share
            if _behind_attention(info.name, len(spec.layers) - 1):
                once += prod(info.shape) * share
            else:
                work += prod(info.shape) * share
    return work, once, size


def _behind_attention(name: str, last_layer: int) -> bool:
    kind = class_of(name)
    if layer_of(name) != last_layer:
        return kind in ("embedding", "head")
    return kind != "attention" or "attn_output" in name


def stream(path: Path, threads: int) -> float:
    """Best GB/s of reading every byte of the mapping once, after a pass that fills the page cache."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapping:
        words = np.frombuffer(mapping, np.int64, len(mapping) // 8)
        shares = np.array_split(words, threads)
        best = min([_pass(shares) for _ in range(_PASSES + 1)][1:])
        del words, shares
    return path.stat().st_size * 1e-9 / best


def _pass(shares: list[npt.NDArray[np.int64]]) -> float:
    workers = [threading.Thread(target=share.max) for share in shares]
    begun = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.perf_counter() - begun


def matrix_rates(threads: int) -> tuple[float, float]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        a = torch.randint(-127, 127, (_ROWS, _INNER), dtype=torch.int8)
        b = torch.randint(-127, 127, (_INNER, _COLUMNS), dtype=torch.int8)
        halves, other = a.to(torch.bfloat16), b.to(torch.bfloat16)
        int8 = matrix_rate(lambda rows: torch._int_mm(a[:rows], b))
        return int8, matrix_rate(lambda rows: torch.mm(halves[:rows], other))
    finally:
        torch.set_num_threads(before)


def matrix_rate(product: Callable[[int], object]) -> float:
    """Best of some runs with so many rows, G operations per second; 0: see `Machine`."""
    try:
        if _best(product, _TRIAL_ROWS, 3) < _SLOW:
            return 0.0
        return _best(product, _ROWS, _PRODUCTS)
    except RuntimeError:
        return 0.0


def _best(product: Callable[[int], object], rows: int, runs: int) -> float:
    best = float("inf")
    for _ in range(runs):
        begun = time.perf_counter()
        product(rows)
        best = min(best, time.perf_counter() - begun)
    return 2e-9 * rows * _INNER * _COLUMNS / best
