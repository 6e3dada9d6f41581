"""Several processes, killed processes, full disks."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.store.tools import StoreTools
from tests.engine.kv.small import PAGE, check_rows
from tests.engine.store.opened import Opened, restore, tokens_of
from tests.engine.store.worker import script

ROOT = Path(__file__).parents[3]
ROUNDS = 400
TRIALS = int(os.environ.get("PAGEKEEP_TRIALS", "12"))  # 1000 for the long form


def start(folder: Path, seed: int, rounds: int = ROUNDS, before: str = "") -> subprocess.Popen[str]:
    code = f"import sys; sys.argv[1:] = {[str(folder), str(seed), str(rounds)]}; {before}\n"
    code += "from tests.engine.store.worker import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )


def acknowledged(output: str) -> dict[str, int]:
    lines = [line.split() for line in output.splitlines() if line.startswith("saved") and line.count(" ") == 2]
    return {name: int(tokens) for _, name, tokens in lines if tokens.isdigit()}


def check_saved(folder: Path, seeds: list[int], saved: dict[str, int]) -> None:
    """Everything acknowledged comes back, and nothing that comes back is wrong."""
    with StoreTools(folder) as tools:
        assert not tools.verify().damaged
    with Opened(folder) as opened:
        for seed in seeds:
            for name, tokens in dict(script(seed, ROUNDS)).items():
                sequence = restore(opened.cache, opened.cache.match(tokens))
                assert sequence.num_tokens >= saved.get(name, 0)
                check_rows(sequence)
                sequence.release()


@pytest.mark.timeout(600 + 6 * TRIALS)
def test_killed_at_any_moment(tmp_path: Path) -> None:
    chance, saved = random.Random(11), dict[str, int]()
    for seed in range(TRIALS):
        process = start(tmp_path, seed)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        first = process.stdout.readline() if seed % 3 == 0 else ""  # however slow the disk is: something was saved
        time.sleep(chance.uniform(0.0, 0.25))
        process.kill()
        output, errors = process.communicate(timeout=400)
        assert "Traceback" not in errors
        saved |= acknowledged(first + output)
    assert saved, "no turn was saved before the kill: the test would show nothing"
    check_saved(tmp_path, list(range(TRIALS)), saved)


def test_two_processes_at_once(tmp_path: Path) -> None:
    processes = [start(tmp_path, seed, 30) for seed in (1, 2)]
    with Opened(tmp_path) as third:
        third.converse("mine", tokens_of(range(5000, 5000 + 4 * PAGE))).release()
        outputs = [process.communicate(timeout=400) for process in processes]
        assert all(process.returncode == 0 for process in processes), outputs
        tokens = dict(script(1, 30))
        for history in tokens.values():
            found = third.cache.match(history)
            assert found.tokens == len(history), "what others wrote is seen without opening again"
            sequence = restore(third.cache, found)
            check_rows(sequence)
            sequence.release()
    saved = {name: count for output, _ in outputs for name, count in acknowledged(output).items()}
    for seed in (1, 2):
        histories = dict(script(seed, 30))
        assert {name: saved[name] for name in histories} == {n: len(t) for n, t in histories.items()}
    with StoreTools(tmp_path) as tools:
        assert not tools.verify().damaged
        assert tools.stat().segments == 3


def test_a_full_disk_is_a_notice_and_work_goes_on(tmp_path: Path) -> None:
    """A limit on file sizes stands for the full disk: writes fail in the middle of a record."""
    code = """
import resource, sys
from pathlib import Path
from tests.engine.kv.small import PAGE, check_rows
from tests.engine.store.opened import Opened, restore, tokens_of
folder = Path(sys.argv[1])
with Opened(folder) as opened:
    first = opened.converse("before", tokens_of(range(2 * PAGE + 1)))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    long = tokens_of(range(100, 100 + 20 * PAGE))
    sequence = opened.converse("during", long)
    check_rows(sequence)
    notices = opened.cache.notices()
    assert [notice.what for notice in notices].count(notices[0].what) == 1, notices
    assert "full" in notices[0].why, notices
    assert opened.cache.report("during", long).tokens_unsaved > 0
    assert opened.cache.match(long).memory_tokens == 20 * PAGE
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    opened.store.retry()
    opened.cache.save("during", sequence)
    opened.cache.flush()
    assert opened.cache.report("during", long).tokens_unsaved == 0
with Opened(folder) as opened:
    for ids in (range(2 * PAGE + 1), range(100, 100 + 20 * PAGE)):
        sequence = restore(opened.cache, opened.cache.match(tokens_of(ids)))
        assert sequence.num_tokens == len(ids)
        check_rows(sequence)
print("through")
"""
    result = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, cwd=ROOT, timeout=120
    )
    assert result.stdout == "through\n", result.stderr


def test_a_dead_process_holds_nothing_up(tmp_path: Path) -> None:
    process = start(tmp_path, 3)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.stdout.readline()
    with StoreTools(tmp_path) as tools:
        tools.gc(0)
        assert tools.stat().segments == 1, "a segment that is written to is left alone"
        process.kill()
        process.wait(240)
        process.stdout.close()
        assert process.stderr is not None
        process.stderr.close()
    with StoreTools(tmp_path) as tools:
        tools.gc(0)
        assert (tools.stat().segments, list((tmp_path / "segments").iterdir())) == (0, [])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_became_read_only_is_a_notice(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        (tmp_path / "segments").chmod(0o500)
        opened.converse("c", tokens_of(range(20)))
        assert opened.cache.notices()
        (tmp_path / "segments").chmod(0o700)
