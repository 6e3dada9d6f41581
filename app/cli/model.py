"""`pagekeep model`: list, describe, fetch, plan, check; logits for comparisons with other engines."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import Any

from app.cli import model_file
from app.cli.console import Console
from app.cli.session import engine_options, open_session
from app.core.errors import UserError
from app.core.gate import no_model
from engine.messages import EngineSettings
from rag.sizes import size_text


def run(options: Namespace, console: Console) -> None:
    actions = {
        "ls": _ls, "info": _info, "fetch": _fetch, "logits": _logits, "plan": model_file.plan, "check": model_file.check
    }  # fmt: skip
    actions[options.action](options, console)


def _ls(options: Namespace, console: Console) -> None:
    with open_session(console) as session:
        entries = session.workspace.models.models()
    console.result({"models": [_plain(asdict(entry)) for entry in entries]})
    for entry in entries:
        state = "" if entry.present else "  (file is gone)"
        console.text(f"{'*' if entry.chosen else ' '} {entry.name}  {size_text(entry.bytes)}  {entry.path}{state}")
    if not entries:
        console.text("No models yet: 'pagekeep model fetch starter' gets a small one.")


def _info(options: Namespace, console: Console) -> None:
    with open_session(console) as session:
        models = session.workspace.models
        path = models.resolve(options.file) if options.file else models.chosen
        if path is None:
            raise no_model()
    model_file.describe(path, console)


def _fetch(options: Namespace, console: Console) -> None:
    with open_session(console) as session:
        path = session.fetch(options.what)
    console.result({"path": str(path), "bytes": path.stat().st_size})
    console.text(str(path))


def _logits(options: Namespace, console: Console) -> None:
    import numpy as np

    from engine.offline import run_logits

    given = {key: value for key, value in engine_options(options).items() if value is not None}
    # comparable: nothing from the preferences, and the KV state as references keep it
    settings = EngineSettings(**{"kv_type_k": "f32", "kv_type_v": "f32", **given})
    tokens = read_tokens(Path(options.tokens))
    logits, greedy = run_logits(Path(options.file), tokens, options.greedy, settings, console.note)
    out = Path(options.out)
    with out.open("wb") as file:  # a name without .npz stays as it was given
        np.savez(file, logits=logits, greedy=np.asarray(greedy, np.int32), tokens=np.asarray(tokens, np.int32))
    console.result({"out": str(out), "tokens": len(tokens), "vocabulary": logits.shape[1], "greedy": greedy})
    console.text(f"{out}: logits {logits.shape[0]:,} x {logits.shape[1]:,}, greedy {greedy}")


def read_tokens(path: Path) -> list[int]:
    """Raises UserError when the file is no list of ids."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserError("The tokens could not be read.", f"There is no file {path}.", "Check the path.") from error
    except (OSError, ValueError, RecursionError) as error:
        raise UserError("The tokens could not be read.", f"{path}: {error}.", "Give a JSON list of ids.") from error
    if not isinstance(data, list) or not all(type(item) is int for item in data):
        raise UserError("The tokens could not be read.", f"{path} holds no list of ids.", "Give a JSON list of ids.")
    return data


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    return {key: str(value) if isinstance(value, Path) else value for key, value in data.items()}
