"""Parts of a benchmark as processes of their own: this program's, and another engine's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine.errors import EngineError

_RUN_SECONDS = 3600
_HOME = str(Path(__file__).resolve().parent.parent)


def run_module(module: str, argument: str) -> dict[str, Any]:
    """The object that `python -m module argument` prints, as the last line that is one. EngineError.

    It is found where this process has found it: not in the working directory, where a checkout without its native
    module may lie.
    """
    done = _run([sys.executable, "-m", module, argument], {"PYTHONPATH": _HOME})
    if done.returncode:
        next_ = "See with 'pagekeep model check FILE' whether the model runs here at all, then try again."
        raise EngineError("A run of the benchmark failed.", _last_line(done.stderr), next_)
    return _printed(done)


def run_peer_source(python: str, source: str, argument: str) -> dict[str, Any]:
    """The same of a program that must not see this one's modules, run by another interpreter. EngineError."""
    try:
        done = _run([python, "-c", source, argument], {})
    except OSError as error:
        next_ = "Give its interpreter: --peer-python."
        raise EngineError("The peer could not be started.", str(error), next_) from error
    if done.returncode:
        next_ = "Install the peer there, or give another interpreter: --peer-python."
        raise EngineError("The peer's run failed.", _last_line(done.stderr), next_)
    return _printed(done)


def _run(command: list[str], more: dict[str, str]) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment = {**kept, "PYTHONSAFEPATH": "1", **more}
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=_RUN_SECONDS, check=False, env=environment
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        why = f"It was not done after {_RUN_SECONDS:,} seconds and was ended."
        next_ = "Measure fewer tokens or a smaller model, or try again while the machine does nothing else."
        raise EngineError("A run of the benchmark took too long.", why, next_) from error


def _last_line(told: str) -> str:
    return (told.strip().splitlines() or ["It said nothing."])[-1][-500:]


def _printed(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    for line in reversed(done.stdout.splitlines()):
        with suppress(ValueError):
            found = json.loads(line)
            if isinstance(found, dict):
                return found
    why = f"Of what it printed no line is a result. Its last line: {_last_line(done.stdout or done.stderr)}"
    next_ = "Try again; if it is the peer's run, install the peer anew or give another interpreter: --peer-python."
    raise EngineError("A run of the benchmark gave no figures.", why, next_)
