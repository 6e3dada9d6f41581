"""kill -9 in the middle of a prefill of a model with sliding windows: nothing that was written is computed again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from engine.store.tools import StoreTools
from tests.engine.engine_driver import Driver
from tests.engine.test_window_equality import _text, model  # noqa: F401  (model is a fixture)

TOKENS = 6000
CHILD = """
import sys, time
from pathlib import Path
from engine.messages import PrefillProgress
from engine.runner import Runner
from engine.store.tools import StoreTools
from tests.engine.engine_driver import Driver
from tests.engine.test_window_equality import _text
step = Runner.step
Runner.step = lambda *given, **named: (time.sleep(0.4), step(*given, **named))[1]  # pages are written meanwhile
with Driver(Path(sys.argv[1]), Path(sys.argv[2])) as driver:
    driver.submit("1", "c", _text(int(sys.argv[3])))
    driver.wait(lambda e: isinstance(e, PrefillProgress) and e.done > int(sys.argv[4]))
    assert driver.client._service.running.cache.disk.hand_over().wait(240)  # the writing thread has a low priority
    print("read", flush=True)
    driver.result("1")
"""


def test_what_a_killed_prefill_had_written_is_not_read_again(model: Path, tmp_path: Path) -> None:  # noqa: F811
    folder, step = tmp_path / "kv", 1500
    arguments = [str(model), str(folder), str(TOKENS), str(step)]
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, *arguments], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "read\n"
    child.kill()
    child.wait(240)
    child.stdout.close()
    with StoreTools(folder) as tools:
        pages = sum(share.pages for share in tools.stat().shares)
    with Driver(model, folder) as driver:
        size = driver.loaded.page_tokens  # type: ignore[union-attr]
        done = driver.run("2", "c", _text(TOKENS))
    with StoreTools(folder) as tools:
        written = sum(share.pages for share in tools.stat().shares)
    assert done.reused.total == pages * size >= size
    assert TOKENS // size == written > pages
