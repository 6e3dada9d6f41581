"""Pagekeep and another engine on the same file, threads and lengths, run alternately, each run a process of its own.

Ratios are taken pair by pair: what disturbs the machine for longer than a run disturbs both of a pair.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from engine.bench_process import run_module, run_peer_source
from engine.messages import EngineSettings, Role
from engine.offline import OfflineModel

Peer = Literal["llama-cpp-python", "ik-llama-cpp-python", "xllamacpp"]
PEERS: tuple[Peer, ...] = ("llama-cpp-python", "ik-llama-cpp-python", "xllamacpp")
_WARM = 64


@dataclass(frozen=True)
class Lengths:
    """Tokens: in the KV before what is measured, read in one go, and fed one by one."""

    depth: int
    prompt: int
    generate: int


@dataclass(frozen=True)
class Rates:
    """Tokens per second of one run; `build`: what was run."""

    prefill: float
    decode: float
    build: str


@dataclass(frozen=True)
class Spread:
    """Of the ratios: quartiles are those of `statistics.quantiles`, inclusive."""

    least: float
    lower: float
    median: float
    upper: float
    most: float

    @staticmethod
    def of(values: list[float]) -> Spread:
        lower, median, upper = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
        return Spread(min(values), lower, median, upper, max(values))


@dataclass(frozen=True)
class Comparison:
    """Medians in tokens per second, and the spread of Pagekeep's rate to the peer's."""

    prefill: float
    peer_prefill: float
    prefill_ratio: Spread
    decode: float
    peer_decode: float
    decode_ratio: Spread

    @staticmethod
    def of(pairs: list[tuple[Rates, Rates]]) -> Comparison:
        ours, theirs = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        return Comparison(
            statistics.median(run.prefill for run in ours),
            statistics.median(run.prefill for run in theirs),
            Spread.of([a.prefill / b.prefill for a, b in pairs]),
            statistics.median(run.decode for run in ours),
            statistics.median(run.decode for run in theirs),
            Spread.of([a.decode / b.decode for a, b in pairs]),
        )


def alternate(
    path: Path, settings: EngineSettings, lengths: Lengths, peer: Peer, python: str, rounds: int
) -> Iterator[tuple[Rates, Rates]]:
    """Pairs of runs, as they come; who goes first changes. `settings.threads` must be given. EngineError."""
    for number in range(rounds):
        if number % 2:
            theirs = run_peer(path, settings, lengths, peer, python)
            yield run_pagekeep(path, settings, lengths), theirs
        else:
            ours = run_pagekeep(path, settings, lengths)
            yield ours, run_peer(path, settings, lengths, peer, python)


def run_pagekeep(path: Path, settings: EngineSettings, lengths: Lengths) -> Rates:
    job = {"path": str(path), "settings": asdict(settings), "lengths": asdict(lengths)}
    found = run_module("engine.bench_compare", json.dumps(job))
    return Rates(**found)


def run_peer(path: Path, settings: EngineSettings, lengths: Lengths, peer: Peer, python: str) -> Rates:
    kv = {"kv": settings.kv_type_k, "kv_v": settings.kv_type_v, "batch": settings.prefill_chunk}
    job = {"peer": peer, "path": str(path), "threads": settings.threads, **asdict(lengths), **kv}
    return Rates(**run_peer_source(python, peer_source(), json.dumps(job)))


def peer_source() -> str:
    return Path(__file__).with_name("bench_peers.py").read_text(encoding="utf-8")


def measure(path: Path, settings: EngineSettings, lengths: Lengths) -> Rates:
    """In the new process. The same tokens as a peer is given."""
    from kernels import isa

    with OfflineModel(path, settings) as model:
        vocabulary = model.model.handle.spec.vocabulary
        total = lengths.depth + lengths.prompt + lengths.generate
        ids = [(7919 * (index + 1)) % vocabulary for index in range(total)]
        model.feed(ids[:_WARM])
        model.sequence.keep_first(0)
        if lengths.depth:
            model.feed(ids[: lengths.depth])
        begun = time.perf_counter()
        model.feed(ids[lengths.depth : lengths.depth + lengths.prompt])
        read = time.perf_counter()
        for token in ids[lengths.depth + lengths.prompt :]:
            model.feed([token], role=Role.GENERATED)
        ended = time.perf_counter()
    return Rates(lengths.prompt / (read - begun), lengths.generate / (ended - read), f"Pagekeep: {isa()}")


def main() -> None:
    job = json.loads(sys.argv[1])
    found = measure(Path(job["path"]), EngineSettings(**job["settings"]), Lengths(**job["lengths"]))
    print(json.dumps(asdict(found)))


if __name__ == "__main__":
    main()
