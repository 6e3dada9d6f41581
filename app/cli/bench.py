"""`pagekeep bench`: sweep, rates over the depth of the context; switch, what coming back costs; perplexity, quality.

The comparisons with other engines and with the machine are in `bench_machine`.
"""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from app.cli.bench_model import wanted_model
from app.cli.console import Console
from app.cli.session import engine_options, open_session, stored_settings, with_engine_options
from app.core.errors import UserError
from engine.messages import EngineSettings

HEAD = f"{'PP':>6} {'TG':>6} {'N_KV':>8} {'T_PP s':>9} {'S_PP t/s':>9} {'T_TG s':>9} {'S_TG t/s':>9}"
DEFAULT_CONTEXT = 4096


def run(options: Namespace, console: Console) -> None:
    from app.cli.bench_machine import run_compare, run_parallel, run_roofline

    {
        "sweep": _sweep,
        "switch": _switch,
        "perplexity": _perplexity,
        "compare": run_compare,
        "roofline": run_roofline,
        "parallel": run_parallel,
    }[options.action](options, console)


def _switch(options: Namespace, console: Console) -> None:
    from engine.bench_switch import measure

    with open_session(console) as session:
        path = session.model_path(wanted_model(options))
        engine, folder = session.workspace.settings.engine, session.workspace.paths.cache
    figures = measure(path, _settings(engine, options), options.tokens, options.question_tokens, folder)
    console.result(asdict(figures))
    for key, value in asdict(figures).items():
        console.text(f"{key}: {value:,.3f}" if isinstance(value, float) else f"{key}: {value}")


def _sweep(options: Namespace, console: Console) -> None:
    from engine.bench import sweep

    with open_session(console) as session:
        path = session.model_path(wanted_model(options))
        engine = session.workspace.settings.engine
        longest = session.workspace.models.info(path).context
    context = options.ctx or min(DEFAULT_CONTEXT, longest)
    warning = _check_context(options, context, longest)
    if warning:
        console.note(warning)
    rows: list[dict[str, Any]] = []
    console.text(HEAD)
    settings = replace(_settings(engine, options), context=min(context, longest))
    for row in sweep(path, settings, options.prompt, options.generate, context):
        rows.append(asdict(row))
        console.text(
            f"{row.pp:>6} {row.tg:>6} {row.n_kv:>8} {row.t_pp:>9.3f} {row.s_pp:>9.2f} {row.t_tg:>9.3f} {row.s_tg:>9.2f}"
        )
    console.result({"model": str(path), "rows": rows, **({"warning": warning} if warning else {})})


def _check_context(options: Namespace, context: int, longest: int) -> str:
    """A warning when the model's context ends before the one that was asked for. UserError: not a row fits."""
    row = options.prompt + options.generate
    if row > min(context, longest):
        raise UserError(
            "There is nothing to measure.",
            f"A row takes {row:,} tokens (--prompt and --generate), the context has {min(context, longest):,}.",
            "Use a larger --ctx, up to the model's context, or smaller --prompt and --generate.",
        )
    return f"The model's context ends at {longest:,} of {context:,} tokens." if context > longest else ""


def _settings(engine: EngineSettings, options: Namespace) -> EngineSettings:
    return replace(engine, **{key: value for key, value in engine_options(options).items() if value is not None})


def _perplexity(options: Namespace, console: Console) -> None:
    from engine.perplexity import ReferenceLogits, measure_divergence, measure_perplexity

    settings = stored_settings(lambda stored: with_engine_options(stored, **engine_options(options))).engine
    path, text = Path(options.file), read_text(Path(options.text))
    reference = ReferenceLogits.load(Path(options.reference)) if options.reference else None
    found = measure_perplexity(path, text, settings, options.window, lambda *done: _show_windows(console, *done))
    console.clear()
    figures: dict[str, Any] = {"model": str(path), "window": options.window, "perplexity": asdict(found)}
    console.text(f"perplexity {found.value:,.4f} +- {found.error:,.4f} over {found.tokens:,} tokens")
    if reference is not None:
        apart = measure_divergence(path, reference, settings)
        figures["divergence"] = asdict(apart)
        console.text(
            f"KL divergence from the reference: mean {apart.mean:.3e}, median {apart.median:.3e}, largest "
            f"{apart.largest:.3e}; same likeliest token at {apart.same_top:.1%} of {apart.positions:,} positions"
        )
    console.result(figures)


def _show_windows(console: Console, done: int, total: int) -> None:
    console.progress(f"Window {done:,} of {total:,}")


def read_text(path: Path) -> str:
    """Raises UserError when the file is no text."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise UserError("The text could not be read.", f"{path}: {why}.", "Give a text file in UTF-8.") from error
