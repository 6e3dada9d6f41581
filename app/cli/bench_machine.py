"""`pagekeep bench compare | roofline | parallel`: against other engines, against the machine, several conversations."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from app.cli.bench_model import wanted_model
from app.cli.console import Console
from app.cli.session import engine_options, open_session, stored_settings, with_engine_options
from engine.bench_compare import Comparison, Lengths, Rates, Spread, alternate
from engine.bench_parallel import Load, ParallelRow, PeerRow, measure, measure_peer
from engine.bench_roofline import machine, reached
from engine.loading import physical_cores
from engine.messages import EngineSettings
from rag.sizes import plural

PARALLEL_HEAD = (
    f"{'conversations':>13} {'first token ms':>14} {'each t/s':>9} {'together t/s':>12} {'busy':>6} "
    f"{'prefix hits':>11} {'drafts right':>12}"
)


def run_compare(options: Namespace, console: Console) -> None:
    settings, path = _settings(options), _path(options, console)
    lengths = Lengths(options.depth, options.prompt, options.generate)
    python = options.peer_python or sys.executable
    pairs: list[tuple[Rates, Rates]] = []
    for number, pair in enumerate(alternate(path, settings, lengths, options.peer, python, options.rounds), 1):
        pairs.append(pair)
        console.progress(
            f"Round {number} of {options.rounds}: {' against '.join(f'{r.prefill:,.0f}' for r in pair)} tokens/s"
        )
    console.clear()
    found = Comparison.of(pairs)
    builds = [pairs[0][0].build, pairs[0][1].build]
    shape = {"model": str(path), "threads": settings.threads, "kv": settings.kv_type_k, **asdict(lengths)}
    console.result({**shape, "builds": builds, "rounds": [list(map(asdict, pair)) for pair in pairs], **asdict(found)})
    console.text(
        f"{path.name}, {plural(settings.threads, 'thread')}, KV {settings.kv_type_k}, {lengths.depth:,} tokens deep"
    )
    console.text("\n".join(builds))
    console.text(_compared("prefill", lengths.prompt, found.prefill, found.peer_prefill, found.prefill_ratio))
    console.text(_compared("decode", lengths.generate, found.decode, found.peer_decode, found.decode_ratio))


def _compared(phase: str, tokens: int, ours: float, theirs: float, ratio: Spread) -> str:
    return (
        f"{phase} of {tokens:,}: {ours:,.1f} against {theirs:,.1f} tokens/s; ratio min {ratio.least:.2f}, quartiles "
        f"{ratio.lower:.2f} and {ratio.upper:.2f}, median {ratio.median:.2f}, max {ratio.most:.2f}"
    )


def run_roofline(options: Namespace, console: Console) -> None:
    settings = _settings(options)
    path = _path(options, console) if wanted_model(options) else None
    found = machine(path, settings.threads)
    int8, bf16 = (_matrix_rate(rate) for rate in (found.int8, found.bf16))
    console.text(f"{plural(found.threads, 'thread')}: reads {found.read:.1f} GB/s, int8 {int8}, bf16 {bf16}")
    result: dict[str, Any] = {"machine": asdict(found)}
    if path is not None:
        model = reached(path, settings, Lengths(0, options.prompt, options.generate), found)
        result |= {"model": str(path), "reached": asdict(model)}
        share = f", {model.prefill_share:.0%} of the int8 rate" if found.int8 else ""
        console.text(
            f"prefill of {options.prompt:,}: {model.prefill:,.1f} tokens/s, {model.prefill_gops:,.0f} Gop/s{share}\n"
            f"decode: {model.decode:,.1f} tokens/s, {model.decode_gb_s:.1f} GB/s, {model.decode_share:.0%} of the best "
            "stream"
        )
    console.result(result)


def _matrix_rate(gops: float) -> str:
    return f"{gops:,.0f} Gop/s" if gops else "not in vectors (torch has no such product for this processor)"


def run_parallel(options: Namespace, console: Console) -> None:
    """Without speculation unless it is asked for: the peer has none."""
    settings, path = _settings(options), _path(options, console)
    settings = replace(settings, speculation=options.speculation == "on")
    load = Load(options.prefix, options.question_tokens, options.generate)
    rows = list(_shown(measure(path, settings, load, options.counts), console))
    result: dict[str, Any] = {"model": str(path), "threads": settings.threads, "rows": [asdict(row) for row in rows]}
    if options.peer:
        peers, build = measure_peer(path, settings, load, options.peer_python or sys.executable, options.counts)
        result |= {"peer": build, "peer_rows": [asdict(row) for row in peers]}
        console.text(f"\n{build}")
        for ours, theirs in zip(rows, peers, strict=True):
            console.text(_against(ours, theirs))
    console.result(result)


def _shown(rows: Iterable[ParallelRow], console: Console) -> Iterable[ParallelRow]:
    console.text(PARALLEL_HEAD)
    for row in rows:
        drafts = f"{row.accepted:,}/{row.drafted:,}"
        console.text(
            f"{row.conversations:>13} {row.first_token_ms:>14,.0f} {row.each:>9,.1f} {row.together:>12,.1f} "
            f"{row.busy:>6.0%} {row.prefix_hits:>11} {drafts:>12}"
        )
        yield row


def _against(ours: ParallelRow, theirs: PeerRow) -> str:
    ratio = f", {ours.together / theirs.together:.2f} of it" if theirs.together else ""
    return (
        f"{ours.conversations:>13} conversations: first token {ours.first_token_ms:,.0f} against "
        f"{theirs.first_token_ms:,.0f} ms, together {ours.together:,.1f} against {theirs.together:,.1f} tokens/s{ratio}"
    )


def _path(options: Namespace, console: Console) -> Path:
    with open_session(console) as session:
        return session.model_path(wanted_model(options))


def _settings(options: Namespace) -> EngineSettings:
    """Threads as a number: the peer is given the same."""
    engine = stored_settings(lambda stored: with_engine_options(stored, **engine_options(options))).engine
    return replace(engine, threads=engine.threads or physical_cores())
