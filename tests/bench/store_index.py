"""The store's index at size, and what its compaction holds up.

    python tests/bench/store_index.py index [--pages 100000] [--folder DIR]
    python tests/bench/store_index.py compaction [--mb 300] [--folder DIR] [--process] [--no-qt]

`index`: pages of one model with dummy payloads (rows through the index's own code, an empty segment); opening, and the
look-up of a prefix of 100,000 tokens on disk and in memory, wall and CPU of the calling thread. `compaction`: half of
some hundred MB is let go and the rest rewritten, in this process's writing thread as eviction does it, or by
`cache gc` in another process (`--process`); meanwhile this process looks prefixes up and saves, one thread ticks every
5 ms, and so does an event loop of Qt (offscreen). Told is the longest time each of them was held up.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "bench")]

from store import FINGERPRINT, smollm2  # noqa: E402

from engine.kv.cache import KvCache  # noqa: E402
from engine.kv.keys import arrays, page_key, root_key  # noqa: E402
from engine.kv.layout import PageLayout  # noqa: E402
from engine.kv.sequence import Sequence  # noqa: E402
from engine.messages import Tokens  # noqa: E402
from engine.store import KvStore  # noqa: E402
from engine.store.following import GroupCount  # noqa: E402
from engine.store.index import Index  # noqa: E402
from engine.store.jobs import Job  # noqa: E402
from engine.store.opening import INDEX_NAME, SEGMENTS_NAME  # noqa: E402
from engine.store.record import Kind, RecordHeader  # noqa: E402
from engine.store.rows import NewRecord  # noqa: E402

CHAIN = 781  # pages of a conversation: 99,968 tokens
TICK = 0.005
Figures = dict[str, float]


# --- the index ----------------------------------------------------------------------------------------


def text(seed: int, tokens: int) -> Tokens:
    return Tokens.prompt(np.random.default_rng(seed).integers(0, 49152, tokens).tolist())


def chains(layout: PageLayout, pages: int, segment: str) -> Iterator[NewRecord]:
    size = layout.page_tokens
    for seed in range(-(-pages // CHAIN)):
        ids, roles = arrays(text(seed, CHAIN * size))
        parent = root_key(FINGERPRINT)
        for number in range(min(CHAIN, pages - seed * CHAIN)):
            cut = slice(number * size, (number + 1) * size)
            key = page_key(parent, ids[cut], roles[cut])
            yield NewRecord(
                RecordHeader(
                    Kind.PAGE, FINGERPRINT, key, parent, number * size, ids[cut], roles[cut], layout_id=1,
                    sums=bytes(16), stops=(layout.payload_bytes,), numerics="bench", payload_bytes=layout.payload_bytes,
                ),
                segment, 4096 + (seed * CHAIN + number) * 8192,
            )  # fmt: skip
            parent = key


def fill_index(folder: Path, layout: PageLayout, pages: int) -> None:
    KvStore(folder, layout, FINGERPRINT, name="bench").close()
    segment = "0000000000000000-00000000.seg"
    (folder / SEGMENTS_NAME / segment).touch(0o600)
    index = Index(folder / INDEX_NAME, FINGERPRINT, GroupCount(1, 1), "bench", layout.describe())
    index.publish(list(chains(layout, pages, segment)), {segment: 1 << 50}, [], 0)
    index.close()


def clocked(action: Callable[[], object], name: str, figures: Figures) -> None:
    wall, cpu = time.perf_counter(), time.thread_time()
    action()
    figures[f"{name}_ms"] = (time.perf_counter() - wall) * 1e3
    figures[f"{name}_cpu_ms"] = (time.thread_time() - cpu) * 1e3


def look_up(folder: Path, layout: PageLayout) -> Figures:
    """In a store that was just opened."""
    figures: Figures = {}
    opened: list[KvStore] = []
    clocked(lambda: opened.append(KvStore(folder, layout, FINGERPRINT, name="bench")), "open", figures)
    cache = KvCache(layout, FINGERPRINT, "bench", opened[0], 1 << 30)
    tokens = text(3, CHAIN * layout.page_tokens)
    tokens.packed  # noqa: B018 (as with every list that came from the application)
    for name in ("disk_first", "disk_again"):
        clocked(lambda: cache.match(tokens), name, figures)
    assert cache.match(tokens).disk_tokens == len(tokens)
    opened[0].close()
    return figures


def in_memory(layout: PageLayout) -> Figures:
    figures: Figures = {}
    cache = KvCache(layout, FINGERPRINT, "bench", None, 1 << 30)
    tokens = text(3, CHAIN * layout.page_tokens)
    tokens.packed  # noqa: B018
    sequence = Sequence(cache)
    sequence.reserve(len(tokens))
    sequence.commit(tokens.ids, tokens.roles)
    cache.save("long", sequence)
    for name in ("memory_first", "memory_again"):
        clocked(lambda: cache.match(tokens), name, figures)
    return figures


def index_figures(folder: Path, pages: int, rounds: int = 5) -> Figures:
    layout = PageLayout.for_spec(replace(smollm2(), layers=smollm2().layers[:1])).sized(128)
    fill_index(folder, layout, pages)
    runs = [look_up(folder, layout) for _ in range(rounds)]
    return {name: min(run[name] for run in runs) for name in runs[0]} | in_memory(layout)


# --- compaction ---------------------------------------------------------------------------------------


class Ticks:
    """How far ticks of a thread, and of an event loop, come apart; and what calls take."""

    def __init__(self) -> None:
        self.longest: Figures = {}

    def saw(self, name: str, seconds: float) -> None:
        self.longest[name] = max(self.longest.get(name, 0.0), seconds * 1e3)

    def thread(self, stop: threading.Event) -> None:
        last = time.perf_counter()
        while not stop.wait(TICK):
            now = time.perf_counter()
            self.saw("thread_tick_ms", now - last)
            last = now

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.saw(name, time.perf_counter() - start)


def fill_segments(folder: Path, layout: PageLayout, size: int) -> int:
    """Two conversations a segment, in turns, of which every other one is let go of. Returns those that stay."""
    with_store = KvStore(folder, layout, FINGERPRINT, name="bench")
    cache = KvCache(layout, FINGERPRINT, "bench", with_store, 2 * size + (256 << 20))
    tokens = 4 * layout.page_tokens
    count = size // (tokens * layout.bytes_per_token)
    for number in range(count):
        sequence = Sequence(cache)
        sequence.reserve(tokens)
        sequence.commit(text(number, tokens).ids, (0,) * tokens)
        cache.save(f"chat {number}", sequence)
        sequence.release()
    cache.flush()
    for number in range(1, count, 2):
        cache.drop(f"chat {number}", disk=True)
    cache.flush()
    with_store.close()
    return count


def compaction_figures(folder: Path, size: int, other_process: bool, qt: bool) -> Figures:
    layout = PageLayout.for_spec(smollm2())
    count = fill_segments(folder, layout, size)
    store = KvStore(folder, layout, FINGERPRINT, name="bench")
    cache = KvCache(layout, FINGERPRINT, "bench", store, 1 << 30)
    app = qt_application() if qt else None  # noqa: F841 (lives as long as this)
    ticks, stop = Ticks(), threading.Event()
    before = store.stat().bytes
    workers = [threading.Thread(target=ticks.thread, args=(stop,)), threading.Thread(
        target=serve, args=(cache, layout, count, ticks, stop))]  # fmt: skip
    for worker in workers:
        worker.start()
    started = time.perf_counter()
    done = collect_elsewhere(folder, before * 7 // 10) if other_process else collect_here(store)
    (watch_qt if qt else watch)(done, ticks)
    spent = time.perf_counter() - started
    stop.set()
    for worker in workers:
        worker.join()
    cache.flush()
    after = store.stat().bytes
    store.close()
    return {"before_mb": before / 1e6, "after_mb": after / 1e6, "seconds": spent, **ticks.longest}


def serve(cache: KvCache, layout: PageLayout, count: int, ticks: Ticks, stop: threading.Event) -> None:
    """The engine thread's part: looks every conversation up in turn and saves a few new tokens of another."""
    number, size = 0, layout.page_tokens
    while not stop.is_set():
        with ticks.timed("lookup_ms"):
            found = cache.match(text(number % count // 2 * 2, 4 * size))
        assert found.tokens == 4 * size, found.missing_reason
        fresh = Sequence(cache)
        fresh.reserve(40)
        with ticks.timed("save_ms"):
            fresh.commit(text(10_000 + number, 40).ids, (0,) * 40)
            cache.save("at work", fresh)
        fresh.release()
        number += 1
        time.sleep(0.01)


def collect_here(store: KvStore) -> Callable[[], bool]:
    """Eviction's way, on the thread that writes."""
    done, room = threading.Event(), store._room
    budget, room._budget = room._budget, store.stat().bytes * 7 // 10

    def work() -> None:
        store._make_room(0, None)
        room._budget = budget
        done.set()

    store._writer.submit(Job(task=work))
    return done.is_set


def collect_elsewhere(folder: Path, budget: int) -> Callable[[], bool]:
    source = (
        "import sys; from pathlib import Path; from engine.store.tools import StoreTools\n"
        "with StoreTools(Path(sys.argv[1])) as tools: tools.gc(int(sys.argv[2]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", source, str(folder), str(budget)], env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    return lambda: process.poll() is not None


def watch(done: Callable[[], bool], ticks: Ticks) -> None:
    while not done():
        time.sleep(0.01)


def qt_application() -> object:
    """Made before anything is measured: loading Qt holds the interpreter for half a second."""
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from PySide6.QtWidgets import QApplication

    return QApplication([])


def watch_qt(done: Callable[[], bool], ticks: Ticks) -> None:
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication

    app = QApplication.instance()
    assert app is not None
    timer, last = QTimer(), [time.perf_counter()]

    def tick() -> None:
        now = time.perf_counter()
        ticks.saw("qt_tick_ms", now - last[0])
        last[0] = now
        if done():
            app.quit()

    timer.timeout.connect(tick)
    timer.start(int(TICK * 1e3))
    app.exec()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", choices=["index", "compaction"])
    options.add_argument("--pages", type=int, default=100_000)
    options.add_argument("--mb", type=int, default=300)
    options.add_argument("--process", action="store_true")
    options.add_argument("--no-qt", action="store_true")
    options.add_argument("--folder", type=Path)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        if chosen.what == "index":
            figures = index_figures(Path(folder), chosen.pages)
        else:
            figures = compaction_figures(Path(folder), chosen.mb << 20, chosen.process, not chosen.no_qt)
    load = Path("/proc/loadavg").read_text().split()[0]
    print(json.dumps({name: round(value, 2) for name, value in figures.items()} | {"load": load}))


if __name__ == "__main__":
    main()
