"""Two processes that ask the same document at once: it is computed once, whatever becomes of the one that does it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine.elsewhere import Elsewhere, Waiting
from engine.kv.cache import KvCache
from engine.kv.keys import Key
from engine.kv.log import KvLog
from engine.kv.prefix import PrefixMatch
from engine.kv.restore import Restore
from engine.messages import DocumentRead, PrefillDocument, PrefillProgress, Tokens
from engine.store.claims import ClaimFile
from tests.engine.engine_driver import Driver
from tests.engine.test_service import model, prompt  # noqa: F401  (a fixture)
from tests.engine.test_window_equality import model as windows  # noqa: F401  (a fixture)

ROOT = Path(__file__).parent.parent.parent
LENGTH = 5000
STEP_SECONDS = 0.1  # of 256 tokens: longer than the model takes, so that there is time to meet

OTHER = """
import json, sys, time
from pathlib import Path
from engine.messages import PrefillProgress
from engine.runner import Runner
from tests.engine.engine_driver import Driver
from tests.engine.test_elsewhere import asked
step = Runner.step
def slow(*given, **named):
    time.sleep(float(sys.argv[3]))
    return step(*given, **named)
Runner.step = slow
with Driver(Path(sys.argv[1]), Path(sys.argv[2]), prefill_chunk=256) as driver:
    driver.submit("1", "other", asked(1))
    driver.wait(lambda e: isinstance(e, PrefillProgress))
    print("computes", flush=True)
    done = driver.result("1")
    print(json.dumps([done.reused.total, done.generated.ids]), flush=True)
"""


def asked(question: int) -> Tokens:
    """The document, and a question to it."""
    ids = tuple(3 + place * place % 290 for place in range(LENGTH))
    return Tokens.prompt(ids + tuple(range(10 + question, 25 + question)))


@contextmanager
def other(model: Path, folder: Path, step_seconds: float = STEP_SECONDS) -> Iterator[subprocess.Popen[str]]:  # noqa: F811
    """A process that has just begun to compute."""
    command = [sys.executable, "-c", OTHER, str(model), str(folder), str(step_seconds)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "computes\n"
            yield process
        finally:
            process.kill()


def cold(model: Path, tokens: Tokens) -> tuple[int, ...]:  # noqa: F811
    with Driver(model, None) as driver:
        return driver.run("1", "c", tokens).generated.ids


def told(process: subprocess.Popen[str]) -> tuple[int, list[int]]:
    assert process.stdout is not None
    reused, ids = json.loads(process.stdout.readline())
    return reused, ids


@pytest.fixture
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the disk is."""
    monkeypatch.setattr("engine.elsewhere._PATIENCE_SECONDS", 300.0)


def asked_at_once(path: Path, folder: Path) -> None:
    with Driver(path, folder) as driver:
        size = driver.loaded.page_tokens  # type: ignore[union-attr]
        with other(path, folder) as process:
            done = driver.run("2", "mine", asked(2))
            reused, ids = told(process)
    computed = 2 * len(asked(1)) - done.reused.total - reused
    assert computed < LENGTH + 4 * size, "what was not claimed: the last page of each, and where the lead changed"
    assert done.generated.ids == cold(path, asked(2))
    assert tuple(ids) == cold(path, asked(1))
    assert sum(part.tokens for part in done.computed) == len(asked(2)) - done.reused.total


@pytest.mark.usefixtures("_patient")
def test_a_document_asked_at_once_is_computed_once(model: Path, tmp_path: Path) -> None:  # noqa: F811
    asked_at_once(model, tmp_path / "kv")


@pytest.mark.usefixtures("_patient")
def test_and_with_sliding_windows(windows: Path, tmp_path: Path) -> None:  # noqa: F811
    asked_at_once(windows, tmp_path / "kv")


@pytest.mark.usefixtures("_patient")
def test_killed_the_other_goes_on(model: Path, tmp_path: Path) -> None:  # noqa: F811
    with Driver(model, tmp_path) as driver:
        with other(model, tmp_path, 1.0) as process:
            driver.submit("2", "mine", asked(2))
            time.sleep(0.5)
            assert not [event for event in driver.events if isinstance(event, PrefillProgress)], "it waits"
            os.kill(process.pid, signal.SIGKILL)
            killed = time.monotonic()
            driver.wait(lambda event: isinstance(event, PrefillProgress), 120)
            assert time.monotonic() - killed < 120, "its claims end with it; patience would last 300 s"
        done = driver.result("2")
    assert done.generated.ids == cold(model, asked(2))


def test_one_that_is_stopped_is_not_waited_for_for_ever(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:  # fmt: skip
    monkeypatch.setattr("engine.elsewhere._PATIENCE_SECONDS", 0.5)
    with Driver(model, tmp_path / "warm") as driver:
        driver.run("1", "c", prompt(500))  # the rate of this machine
        with other(model, tmp_path / "warm", 1.0) as process:
            os.kill(process.pid, signal.SIGSTOP)
            started = time.monotonic()
            done = driver.run("2", "mine", asked(2))
            assert 0.5 < time.monotonic() - started < 100
    assert done.generated.ids == cold(model, asked(2))


@pytest.mark.usefixtures("_patient")
def test_reading_ahead_takes_over_what_a_question_elsewhere_computes(model: Path, tmp_path: Path) -> None:  # noqa: F811
    document = Tokens.prompt(asked(1).ids[:LENGTH])
    with Driver(model, tmp_path) as driver, other(model, tmp_path) as process:
        driver.client.send(PrefillDocument("d", document))
        read = driver.wait(lambda event: isinstance(event, DocumentRead))
        reused, _ = told(process)
    assert isinstance(read, DocumentRead)
    assert read.computed + len(asked(1)) - reused < LENGTH + 1000
    assert read.computed < LENGTH / 2


@pytest.mark.usefixtures("_patient")
def test_without_room_to_read_what_came_it_is_computed(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:  # fmt: skip
    refused, begin = list[int](), KvCache.begin_restore

    def full(cache: KvCache, match: PrefixMatch, front: int = 0, *more: str) -> Restore:
        if cache.disk and front:
            refused.append(front)
            cache.pool.refuse(front)
        return begin(cache, match, front, *more)

    monkeypatch.setattr(KvCache, "begin_restore", full)
    with Driver(model, tmp_path) as driver, other(model, tmp_path, 0.25):
        done = driver.run("2", "mine", asked(2))
    assert refused, "something came"
    assert done.generated.ids == cold(model, asked(2))


CLAIMER = """
import sys, time
from pathlib import Path
from engine.kv.keys import Key
from engine.store.claims import ClaimFile
claims = ClaimFile(Path(sys.argv[1]))
print(claims.claim(Key(b"a" * 16)), claims.claim(Key(b"b" * 16)), flush=True)
claims.release(Key(b"b" * 16))
print("released", flush=True)
time.sleep(60)
"""


def test_a_claim_ends_with_its_process(tmp_path: Path) -> None:
    claims = ClaimFile(tmp_path)
    first, second = Key(b"a" * 16), Key(b"b" * 16)
    with subprocess.Popen(
        [sys.executable, "-c", CLAIMER, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True True\n"
        assert process.stdout.readline() == "released\n"
        assert (claims.claim(first), claims.claim(second)) == (False, True)
        process.kill()
        process.wait()
        assert claims.claim(first)
    claims.close()


@pytest.mark.parametrize(("tokens_a_second", "waits"), [(500.0, True), (10.0, False)])
def test_pages_that_keep_coming_are_waited_for_unless_they_come_at_a_small_part_of_our_rate(
    tokens_a_second: float, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, log = [1000.0], KvLog(None)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    elsewhere = Elsewhere(cast(Any, SimpleNamespace(log=log)), cast(Any, SimpleNamespace(prefill=2000.0)))
    waiting, tokens = Waiting(), 0
    while tokens < 20_000 and not waiting.alone:
        elsewhere._patient(waiting, cast(Any, SimpleNamespace(num_tokens=tokens)))
        now[0] += 128 / tokens_a_second / 10
        tokens += 128 if waiting.spent * tokens_a_second > tokens else 0
    assert waiting.alone != waits


def test_a_pause_is_no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a document that makes way for a question."""
    now, log = [1000.0], KvLog(None)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    elsewhere = Elsewhere(cast(Any, SimpleNamespace(log=log)), cast(Any, SimpleNamespace(prefill=2000.0)))
    waiting, sequence = Waiting(), cast(Any, SimpleNamespace(num_tokens=0))
    assert elsewhere._patient(waiting, sequence)
    waiting.pause()
    now[0] += 3600
    assert elsewhere._patient(waiting, sequence)
    assert waiting.spent == 0
    now[0] += 3600
    assert not elsewhere._patient(waiting, sequence)
