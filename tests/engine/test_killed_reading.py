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
from tests.engine.engine_driver import Driver
from tests.engine.test_killed_reading import begin, told
for module in engine.background, engine.handing:  # every step is told, however busy the disk is
    module._WAIT_SHARE, module._MOST_WAIT_SECONDS = 1e6, 60.0
driver = Driver(Path(sys.argv[1]), Path(sys.argv[2]))
tokens = int(sys.argv[3])
begin(driver, tokens, sys.argv[4] == "turn")
print(told(driver.wait(lambda e: 0.7 * tokens <= told(e) < tokens, 300)), flush=True)
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
    return event.done if isinstance(event, DocumentProgress | PrefillProgress) else -1


@pytest.mark.parametrize("tokens", LENGTHS)
@pytest.mark.parametrize("how", ["ahead", "turn"])
def test_whoever_is_killed_goes_on_where_it_was_told(model: Path, tmp_path: Path, how: str, tokens: int) -> None:
    arguments = [str(model), str(tmp_path), str(tokens), how]
    root = Path(__file__).parent.parent.parent
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, *arguments], cwd=root, stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    assert child.stdout is not None
    with child, child.stdout:
        done = int(child.stdout.readline())
        child.kill()
    assert 0.7 * tokens <= done
    with Driver(model, tmp_path) as driver:
        begin(driver, tokens, how == "turn")
        first = driver.wait(lambda event: isinstance(event, DocumentProgress | TurnRestored))
        found = first.reused.total if isinstance(first, TurnRestored) else first.reused  # type: ignore[attr-defined]
        assert done <= found
