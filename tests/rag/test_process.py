"""Processes that read files: they end with whoever started them, and so do the programs that they start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rag.pdf.process import Child

LIFE_S = 20  # of a child that nobody ends
CHILD = f"""
import json, subprocess, sys, rag.pdf.process as process
request = json.loads(sys.stdin.readline())
process.end_with_parent(request["parent"])
with open(request["told"], "w") as told:
    subprocess.run(["sh", "-c", "echo ready; sleep {LIFE_S}; echo survived"], stdout=told)
"""
PARENT = f"""
import sys
from rag.pdf.process import Child
child = Child((sys.executable, "-c", {CHILD!r}), {{"told": sys.argv[1]}}, lambda: False)
child.next({LIFE_S})
"""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no process groups there")


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """Open as long as one of those lives who write to it."""
    path = tmp_path / "told"
    os.mkfifo(path)
    return path


def test_a_reader_ends_with_the_process_that_started_it(told: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, str(told)]) as parent:
        try:
            with told.open() as lines:
                assert lines.readline() == "ready\n"
                parent.kill()
                assert lines.read() == "", "the reader and its program are gone"
        finally:
            parent.kill()


def test_what_a_reader_has_started_is_killed_with_it(told: Path) -> None:
    child = Child((sys.executable, "-c", CHILD), {"told": str(told)}, lambda: False)
    try:
        with told.open() as lines:
            assert lines.readline() == "ready\n"
            child.kill()
            assert lines.read() == ""
    finally:
        child.kill()


def test_a_reader_whose_parent_was_gone_before_it_looked_ends() -> None:
    other = os.getppid()  # not the parent's id: that of this process
    code = f"import time, rag.pdf.process as p; p.end_with_parent({other}); time.sleep({LIFE_S})"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 1
