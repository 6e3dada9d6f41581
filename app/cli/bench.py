"""`pagekeep bench`: sweep, rates over the depth of the context; switch, what coming back to a conversation costs."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict, replace
from typing import Any

from app.cli.console import Console
from app.cli.session import open_session
from engine.messages import EngineSettings

HEAD = f"{'PP':>6} {'TG':>6} {'N_KV':>8} {'T_PP s':>9} {'S_PP t/s':>9} {'T_TG s':>9} {'S_TG t/s':>9}"
DEFAULT_CONTEXT = 4096


def run(options: Namespace, console: Console) -> None:
    {"sweep": _sweep, "switch": _switch}[options.action](options, console)


def _switch(options: Namespace, console: Console) -> None:
    from engine.bench_switch import measure

    with open_session(console) as session:
        path = session.model_path(options.model)
        engine, folder = session.workspace.settings.engine, session.workspace.paths.cache
    figures = measure(path, _settings(engine, options), options.tokens, options.question_tokens, folder)
    console.result(asdict(figures))
    for key, value in asdict(figures).items():
        console.text(f"{key}: {value:,.3f}" if isinstance(value, float) else f"{key}: {value}")


def _sweep(options: Namespace, console: Console) -> None:
    from engine.bench import sweep

    with open_session(console) as session:
        path = session.model_path(options.model)
        engine = session.workspace.settings.engine
    rows: list[dict[str, Any]] = []
    context = options.ctx or DEFAULT_CONTEXT
    console.text(HEAD)
    for row in sweep(path, _settings(engine, options), options.prompt, options.generate, context):
        rows.append(asdict(row))
        console.text(
            f"{row.pp:>6} {row.tg:>6} {row.n_kv:>8} {row.t_pp:>9.3f} {row.s_pp:>9.2f} {row.t_tg:>9.3f} {row.s_tg:>9.2f}"
        )
    console.result({"model": str(path), "rows": rows})


def _settings(engine: EngineSettings, options: Namespace) -> EngineSettings:
    context = options.ctx if options.action == "switch" and options.ctx else engine.context
    return replace(engine, threads=options.threads or engine.threads, context=context)
