"""The program itself in a process of its own: starts, is told to end, leaves private files and no complaint."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.skipif(sys.platform == "win32", reason="no POSIX signals")
def test_program_starts_and_ends_on_sigterm(tmp_path: Path) -> None:
    environment = {**os.environ, "PAGEKEEP_HOME": str(tmp_path / "home"), "QT_QPA_PLATFORM": "offscreen"}
    complaints = tmp_path / "stderr"
    with complaints.open("w") as stderr:
        program = subprocess.Popen([sys.executable, "-m", "app.main"], cwd=ROOT, env=environment, stderr=stderr)
    log = tmp_path / "home" / "state" / "logs" / "pagekeep.log"
    try:
        end = time.monotonic() + 200
        while not (log.exists() and "window shown" in log.read_text()):
            assert time.monotonic() < end, "no window"
            assert program.poll() is None, complaints.read_text()
            time.sleep(0.05)
        time.sleep(1.0)
        program.send_signal(signal.SIGTERM)
        assert program.wait(120) == 0
    finally:
        program.kill()
    text = log.read_text()
    assert "closed in" in text
    assert "Traceback" not in text + complaints.read_text()
    open_to_others = [p for p in (tmp_path / "home").rglob("*") if p.stat().st_mode & 0o077]
    assert open_to_others == []
    assert (tmp_path / "home" / "state" / "window.json").exists()
