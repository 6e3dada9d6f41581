"""The command line as a reader uses it: a process of its own, a data folder of its own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
TIME_LIMIT_S = 240


@contextmanager
def _let_interrupt() -> Iterator[None]:
    """Whoever was begun in the background of a script ignores interrupts, and hands that on; no handler is handed on,
    and no code need run between fork and exec, where threads of this process may have left locks behind."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one object on standard output."""
        assert self.out.count("\n") == 1, (self.out, self.err)
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        assert self.status == 2, (self.status, self.out, self.err)
        assert list(self.json) == ["error"]
        told = self.json["error"]
        more = ["over_by", "ways"] if "ways" in told else []  # of a question that does not fit the context
        assert list(told) == ["what", "why", "next", *more]
        assert all(isinstance(told[key], str) for key in ("what", "why", "next"))
        return told


@dataclass(frozen=True)
class CommandLine:
    home: Path
    env: dict[str, str]

    def __call__(self, *arguments: object, program: tuple[str, ...] = ("-m", "app.main"), **env: str) -> Outcome:
        command = [sys.executable, *program, *map(str, arguments)]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=self.env | env,
            cwd=ROOT,
            timeout=TIME_LIMIT_S,
            stdin=subprocess.DEVNULL,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "app.main", *map(str, arguments)]
        pipe = subprocess.PIPE
        with _let_interrupt():
            return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=self.env, cwd=ROOT)


@pytest.fixture
def make_command_line() -> Callable[[Path], CommandLine]:
    def make(home: Path) -> CommandLine:
        dropped = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM", "PYTHONWARNINGS")
        env = {key: value for key, value in os.environ.items() if key not in dropped}
        return CommandLine(home, env | {"PAGEKEEP_HOME": str(home), "PYTHONPATH": str(ROOT)})

    return make


@pytest.fixture
def pagekeep(tmp_path: Path, make_command_line: Callable[[Path], CommandLine]) -> CommandLine:
    return make_command_line(tmp_path / "home")
