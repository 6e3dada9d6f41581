"""kill -9 while a document is read, ahead or for a question: the next process goes on where the reader was told it was.

`PAGEKEEP_TRIALS=1` also reads 30,000 tokens.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.messages import DocumentProgress, PrefillDocument, PrefillProgress, TurnRestored
from tests.engine.engine_driver import Driver
from tests.engine.test_service import DENSE, prompt

LENGTHS = (2000, 7900, *((30_000,) if os.environ.get("PAGEKEEP_TRIALS") else ()))
CHILD = """
import sys, time
from pathlib import Path
import engine.background, engine.handing
from engine.messages import TokenDelta
from tests.engine.engine_driver import Driver
from tests.engine.test_killed_reading import begin, told
if sys.argv[4] != "usual waits":  # every step is told, however busy the disk is
    for module in engine.background, engine.handing:
        module._WAIT_SHARE, module._MOST_WAIT_SECONDS = 1e6, 60.0
driver = Driver(Path(sys.argv[1]), Path(sys.argv[2]), prefill_chunk=256)
tokens = int(sys.argv[3])
begin(driver, tokens, sys.argv[4] != "ahead")
steps = lambda: sum(told(event) >= 0 for event in driver.events)
due = lambda e: 0.7 * tokens <= told(e) < tokens if sys.argv[4] != "usual waits" else told(e) >= 0 and steps() > 12
if sys.argv[4] == "read":  # the first token
    due = lambda e: isinstance(e, TokenDelta)
driver.wait(due, 300)
print(max(map(told, driver.events)), flush=True)
time.sleep(60)
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dense Q4_1 file with a context of 32,768 tokens instead of 512."""
    data = bytearray(DENSE.read_bytes())
    value = data.index(b"llama.context_length") + len("llama.context_length") + 4  # behind the type of the value
    data[value : value + 4] = (32768).to_bytes(4, "little")
    path = tmp_path_factory.mktemp("model") / "dense.gguf"
    path.write_bytes(data)
    return path


def begin(driver: Driver, tokens: int, turn: bool) -> None:
    if turn:
        driver.submit("t", "c", prompt(tokens, 5))
    else:
        driver.client.send(PrefillDocument("d", prompt(tokens, 5)))


def told(event: object) -> int:
    """As kept."""
    if isinstance(event, PrefillProgress):
        return event.kept
    return event.done if isinstance(event, DocumentProgress) else -1


def killed(model: Path, folder: Path, tokens: int, how: str) -> int:
    """How much was told as read before."""
    root = Path(__file__).parent.parent.parent
    command = [sys.executable, "-c", CHILD, str(model), str(folder), str(tokens), how]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        done = int(child.stdout.readline())
        child.kill()
    return done


@pytest.mark.parametrize("tokens", LENGTHS)
@pytest.mark.parametrize("how", ["ahead", "turn"])
def test_whoever_is_killed_goes_on_where_it_was_told(model: Path, tmp_path: Path, how: str, tokens: int) -> None:
    done = killed(model, tmp_path, tokens, how)
    assert 0.7 * tokens <= done
    with Driver(model, tmp_path) as driver:
        begin(driver, tokens, how == "turn")
        first = driver.wait(lambda event: isinstance(event, DocumentProgress | TurnRestored))
        found = first.reused.total if isinstance(first, TurnRestored) else first.reused  # type: ignore[attr-defined]
        assert done <= found


def test_the_last_step_is_told_no_earlier_than_the_others(model: Path, tmp_path: Path) -> None:
    """A prompt that is read whole, killed with its first token: what was told of it is in the files."""
    done = killed(model, tmp_path, 2000, "read")
    assert done >= 0.7 * 2000
    with Driver(model, tmp_path) as driver:
        begin(driver, 2000, True)
        assert done <= driver.result("t").reused.total


def test_a_disk_that_is_waited_for_no_longer_than_usual_is_told_no_earlier(model: Path, tmp_path: Path) -> None:
    """After each step two percent of its time: what is told may lag behind, never the files."""
    done = killed(model, tmp_path, 7900, "usual waits")
    with Driver(model, tmp_path) as driver:
        begin(driver, 7900, True)
        assert done <= driver.result("t").reused.total
