"""Mapped files that are cut short while they are read: zeros and a note, for guarded memory only."""

from __future__ import annotations

import mmap
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kernels.guarded import MOST, guard, is_lost, lost_count

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="guarded on Linux only")
PAGE = mmap.PAGESIZE


def mapped(path: Path, pages: int) -> np.ndarray:
    path.write_bytes(b"\x07" * pages * PAGE)
    with path.open("r+b") as file:
        memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    view = np.frombuffer(memory, np.uint8)
    assert guard(memory, view)
    return view


def test_what_is_cut_off_reads_as_zeros_and_is_noted(tmp_path: Path) -> None:
    view, other = mapped(tmp_path / "cut", 7), mapped(tmp_path / "whole", 3)
    before = lost_count()
    with (tmp_path / "cut").open("r+b") as file:
        file.truncate(2 * PAGE)
    assert not is_lost(view), "nobody has met it yet"
    assert view[2 * PAGE :].sum() == 0
    assert (view[: 2 * PAGE] == 7).all()
    assert lost_count() == before + 5
    assert is_lost(view)
    assert is_lost(view[4 * PAGE + 5 : 4 * PAGE + 6])
    assert not is_lost(view[: 2 * PAGE])
    assert (other == 7).all()
    assert not is_lost(other)


def test_a_number_is_given_back_and_starts_clean(tmp_path: Path) -> None:
    for number in range(1100):  # more than there are places
        view = mapped(tmp_path / "file", 1)
        if number % 100 == 0:
            (tmp_path / "file").write_bytes(b"")
            assert not view.any()
            assert is_lost(view)
        else:
            assert not is_lost(view)


def test_descriptors_are_left_for_others() -> None:
    held = []
    for _ in range(MOST + 1):
        memory = mmap.mmap(-1, PAGE)
        if not guard(memory, np.frombuffer(memory, np.uint8)):
            break
        held.append(memory)
    assert len(held) <= MOST
    held.pop()
    assert guard(memory, np.frombuffer(memory, np.uint8)), "a place is free again"


def test_other_memory_is_not_guarded(tmp_path: Path) -> None:
    """A fault that is not ours ends the process as it would without us."""
    program = f"""
import mmap, pathlib, numpy as np
from kernels.guarded import guard
def mapped(name):
    path = pathlib.Path({str(tmp_path)!r}) / name
    path.write_bytes(b"x" * {PAGE})
    with path.open("r+b") as file:
        memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        file.truncate(0)
    return memory, np.frombuffer(memory, np.uint8)
ours, other = mapped("ours"), mapped("other")
assert guard(*ours)
assert not ours[1].any()
print("alive", flush=True)
other[1].sum()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "alive\n", done.stderr
    assert done.returncode == -signal.SIGBUS
