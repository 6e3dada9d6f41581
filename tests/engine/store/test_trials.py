"""Trial after trial on one store: killed writers, flipped bits, truncated and removed files, a removed folder, a full
disk, a neighbour.

After each trial everything that comes back must be right, what was acknowledged and not damaged must come back,
and work goes on. `PAGEKEEP_TRIALS=1000` is the long form.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from engine.kv.notices import NOT_SAVED
from engine.messages import Tokens
from engine.store.tools import StoreTools
from tests.engine.kv.small import append, check_rows
from tests.engine.store.opened import Opened, restore, tokens_of
from tests.engine.store.test_processes import acknowledged, start
from tests.engine.store.worker import DOCUMENT, script

TRIALS = int(os.environ.get("PAGEKEEP_TRIALS", "16"))
ROUNDS = 40
FULL = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, resource.RLIM_INFINITY))"
DAMAGING = ("flip", "truncate", "remove", "index", "vanish")
KINDS = ("kill", "full", "beside", "flip", "flip", "truncate", "remove", "index", "tidy", "vanish")


class Trials:
    """One store, and what is known to be in it. `sound`: acknowledged tokens that nothing has damaged since."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.histories: dict[str, Tokens] = {}
        self.sound: dict[str, int] = {}
        self.done = Counter[str]()

    def run(self, number: int) -> None:
        kind = KINDS[number % len(KINDS)]
        getattr(self, kind)(number)
        if kind in DAMAGING:
            self.sound.clear()
        self.check(number)
        self.done[kind] += 1

    # --- what may happen ---

    def kill(self, number: int) -> None:
        self._worker(number, "", self.chance.uniform(0.0, 0.3))

    def full(self, number: int) -> None:
        self._worker(number, FULL, None)

    def beside(self, number: int) -> None:
        """A second process that is killed while this one works on the same store."""
        process = start(self.folder, number, ROUNDS)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        self._converse(f"own-{number}")
        process.kill()
        self._take_note(number, *process.communicate(timeout=400))

    def flip(self, number: int) -> None:
        path = self._segment()
        with path.open("r+b") as file:
            for _ in range(self.chance.randint(1, 4)):
                place = self.chance.randrange(path.stat().st_size)
                file.seek(place)
                byte = file.read(1)[0]
                file.seek(place)
                file.write(bytes([byte ^ (1 << self.chance.randrange(8))]))

    def truncate(self, number: int) -> None:
        path = self._segment()
        os.truncate(path, self.chance.randrange(path.stat().st_size))

    def remove(self, number: int) -> None:
        """A file that goes while it is in use."""
        with Opened(self.folder) as opened:
            for name in self._some():
                found = opened.cache.match(self.histories[name])
                self._segment().unlink(missing_ok=True)
                sequence = restore(opened.cache, found)
                check_rows(sequence)
                sequence.release()

    def vanish(self, number: int) -> None:
        """The folder, or that of the segments, goes while it is in use."""
        with Opened(self.folder) as opened:
            opened.converse("own-before", DOCUMENT).release()
            gone = self.folder if number % 2 else self.folder / "segments"
            shutil.rmtree(gone.rename(self.folder.with_name("gone")))
            opened.converse("own-after", DOCUMENT + tokens_of(range(number))).release()
        self.histories["own-after"] = DOCUMENT + tokens_of(range(number))
        with Opened(self.folder) as opened:
            assert opened.cache.match(self.histories["own-after"]).tokens == len(self.histories["own-after"])

    def index(self, number: int) -> None:
        index = self.folder / "index.sqlite"
        if number % 2:
            for path in self.folder.glob("index.sqlite*"):
                path.unlink()
        else:
            with index.open("r+b") as file:
                file.seek(self.chance.randrange(max(1, index.stat().st_size - 600)))
                file.write(self.chance.randbytes(500))

    def tidy(self, number: int) -> None:
        with StoreTools(self.folder) as tools:
            tools.verify(drop_damaged=True)
            tools.gc(6 << 20)
        self.sound.clear()

    # --- what must hold ---

    def check(self, number: int) -> None:
        with Opened(self.folder) as opened:
            for name in self._some():
                tokens = self.histories[name]
                sequence = restore(opened.cache, opened.cache.match(tokens))
                check_rows(sequence)
                assert sequence.num_tokens >= self.sound.get(name, 0), f"{name} after trial {number}"
                done = sequence.num_tokens
                append(sequence, Tokens(tokens.ids[done:], tokens.roles[done:]))
                opened.cache.save(name, sequence)
                check_rows(sequence)
                sequence.release()
                if opened.cache.flush(240) and not any(notice.what == NOT_SAVED for notice in opened.cache.notices()):
                    self.sound[name] = len(tokens)

    def _some(self) -> Iterable[str]:
        names = sorted(self.histories)
        return self.chance.sample(names, min(3, len(names)))

    def _segment(self) -> Path:
        if not list((self.folder / "segments").glob("*.seg")):
            self._converse("own-again")
        return self.chance.choice(sorted((self.folder / "segments").iterdir()))

    def _converse(self, name: str) -> None:
        tokens = DOCUMENT + tokens_of(self.chance.choices(range(1000), k=self.chance.randint(1, 60)))
        with Opened(self.folder) as opened:
            opened.converse(name, tokens).release()
        self.histories[name], self.sound[name] = tokens, len(tokens)

    def _worker(self, number: int, before: str, seconds: float | None) -> None:
        process = start(self.folder, number, ROUNDS, before)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if seconds is not None:
            time.sleep(seconds)
            process.kill()
        output, errors = process.communicate(timeout=400)
        self._take_note(number, output if not before else "", errors)

    def _take_note(self, number: int, output: str, errors: str) -> None:
        assert "Traceback" not in errors, errors
        saved = acknowledged(output)
        turns = script(number, ROUNDS)
        for name, tokens in turns:
            if len(tokens) <= saved.get(name, 0) or name not in self.histories:
                self.histories[name] = tokens
        self.sound |= {name: count for name, count in saved.items() if len(self.histories[name]) >= count}


@pytest.mark.timeout(600 + 3 * TRIALS)
def test_no_trial_gives_a_wrong_row_or_loses_what_was_acknowledged(tmp_path: Path) -> None:
    trials = Trials(tmp_path / "store", 3)
    for number in range(TRIALS):
        trials.run(number)
    assert sum(trials.done.values()) == TRIALS
    print(dict(trials.done), file=sys.stderr)
