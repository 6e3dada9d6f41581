"""Taking documents in: what becomes of every PDF of a folder, and the speeds that are promised.

Over 300 lines: every speed takes the same corpus, library and engine.

    python tests/bench/intake.py every FOLDER [PATTERN]
    python tests/bench/intake.py speeds FOLDER --model MODEL.gguf --embedder FOLDER [--only NAME ...] [--home FOLDER]

`every`: each file into a fresh library (words only); time, pages, kinds, or what was wrong. Files named "user"
are opened with the password "secret". `speeds`: a line each for words of gap-ref.pdf, words of axiom-vol10.5.pdf,
a query over 100,000 windows (vectors drawn at random, the query's own by the embedder), an import beside a conversation
that generates, and meaning of gap-ref.pdf; about three minutes on two quiet cores. With `--home` the libraries stay
there: a step can be run alone, and `meaning` is stopped after `--seconds` and goes on when it is run again.
"""

from __future__ import annotations

import argparse
import os
import queue
import resource
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from app.core.embedding import embedder_of
from app.core.events import ImportDone, ImportProgress, TurnDone, TurnError, TurnText, WorkspaceEvent
from app.core.paths import Paths
from app.core.settings import Settings
from app.core.workspace import Workspace
from app.main import SWITCH_INTERVAL_S
from engine.messages import ModelFailed, ModelLoaded, Sampling
from rag import DocumentError, IntakeCancelled, Library
from rag.protocols import Embedder, Vectors
from rag.types import Document

MIDDLE, LONG, MORE = "gap-ref.pdf", "axiom-vol10.5.pdf", "axiom-vol5.pdf"
QUESTIONS = ("How do I print a matrix?", "permutation group of a set", "SetPrintFormattingStatus", "error messages")
IDLE_S, BESIDE_S = 8.0, 25.0
STEPS = ("words", "long", "index", "query", "beside-words", "beside-vectors", "meaning")
ROWS = 8192


def every(options: argparse.Namespace) -> None:
    for path in sorted(options.folder.glob(options.pattern)):
        with tempfile.TemporaryDirectory() as home:
            library = Library(Path(home) / "library")
            start = time.monotonic()
            told = taken(library, path)
            library.close()
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
        print(f"{path.name[:34]:34} {time.monotonic() - start:7.2f} s  peak of readers {peak:4} MB  {told}", flush=True)


def taken(library: Library, path: Path) -> str:
    try:
        document = library.add(path, password="secret" if "user" in path.name else None)
    except DocumentError as error:
        return f"{error.kind}: {error.what} {error.why}"
    report = library.report(document.id)
    kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(page.kind for page in report.pages).items())
    return f"{document.pages} pages: {kinds}; {report.note}"


class RandomVectors:
    """Stands in an index for an embedder that would take a quarter of an hour; questions have the real one's."""

    name, loaded = "random", True

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.dimensions = embedder.dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self._embedder.embed(texts)

    def fill(self, library: Library, document: Document) -> int:
        """Vectors of all windows; returns how many these are."""
        chance, shelf = np.random.default_rng(int(document.id)), library._shelf
        total = int(shelf.db.tuples("SELECT windows FROM documents WHERE id = ?", (document.id,))[0][0])
        for first in range(0, total, ROWS):
            rows = chance.standard_normal((min(ROWS, total - first), self.dimensions), np.float32)
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            shelf.vectors.append(document.id, document.sha256, self.name, rows)
        return total


class Speeds:
    """Each measurement prints its line."""

    def __init__(self, options: argparse.Namespace, home: Path) -> None:
        self._options, self._home = options, home

    def run(self) -> None:
        steps: dict[str, Callable[[], None]] = {
            "words": self._words, "long": self._long, "index": self._index, "query": self._query,
            "beside-words": self._beside_words, "beside-vectors": self._beside_vectors, "meaning": self._meaning,
        }  # fmt: skip
        print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores", flush=True)
        for name, step in steps.items():
            if not self._options.only or name in self._options.only:
                step()

    def _add(self, home: str, file: str) -> tuple[Document, float]:
        library = Library(self._home / home)
        start = time.monotonic()
        document = library.add(self._options.folder / file)
        took = time.monotonic() - start
        library.close()
        return document, took

    def _words(self) -> None:
        document, took = self._add("words", MIDDLE)
        (self._home / "words.txt").write_text(str(took))
        told("words", f"{document.pages:,} pages by words in {took:.1f} s", took < 8)

    @property
    def _words_s(self) -> float:
        """Of MIDDLE, with nothing else running."""
        if not (self._home / "words.txt").is_file():
            self._words()
        return float((self._home / "words.txt").read_text())

    def _long(self) -> None:
        document, took = self._add("long", LONG)
        own, readers = (
            resource.getrusage(who).ru_maxrss / 1e6 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        )
        words = f"{document.pages:,} pages by words in {took:.1f} s, peak {own:.2f} GB and {readers:.2f} GB of a reader"
        told("long", words, took < 60 and own + readers < 1)

    def _index(self) -> None:
        """What a query is looked for in."""
        for file in (LONG, MIDDLE, MORE):
            self._add("long", file)
        embedder = RandomVectors(embedder_of(self._options.embedder))
        library = Library(self._home / "long", embedder)
        for document in library.documents():
            if not document.embedded:
                embedder.fill(library, document)
        library.close()

    def _query(self) -> None:
        """Cold: a process that has asked nothing yet, its library's files on the disk only; the embedder is loaded."""
        if not (self._home / "long").is_dir():
            self._index()
        embedder = RandomVectors(embedder_of(self._options.embedder))
        embedder.embed(["a"])
        library = Library(self._home / "long", embedder)
        windows = sum(library._shelf.vectors.done(document.id, embedder.name) for document in library.documents())
        out_of_memory(self._home / "long")
        times = []
        for question in QUESTIONS * 6:
            start = time.perf_counter()
            library.search(question)
            times.append(1e3 * (time.perf_counter() - start))
        library.close()
        rest = times[len(QUESTIONS) :]
        spread = f"median {statistics.median(rest):.0f} ms, most {max(rest):.0f} ms"
        first = ", ".join(f"{ms:.0f}" for ms in times[: len(QUESTIONS)])
        told("query", f"over {windows:,} windows: {spread}; each cold {first} ms", statistics.median(rest) < 100)

    def _beside_words(self) -> None:
        alone = self._words_s
        with Beside(self._home / "home-words", self._options.model, self._options.embedder) as both:
            idle = both.generate(IDLE_S)
            pages, words_s, rate = both.generate_with_words(self._options.folder / MIDDLE)
        compared("words", rate, idle, alone / words_s)
        print(f"         ({pages:,} pages in {words_s:.1f} s; {alone:.1f} s alone)", flush=True)

    def _beside_vectors(self) -> None:
        """The words are taken in before."""
        home = Paths.below(self._home / "home").create()
        library = Library(home.library)
        library.add(self._options.folder / MIDDLE)
        library.close()
        with Beside(self._home / "home", self._options.model, self._options.embedder) as both:
            idle = both.generate(IDLE_S)
            both.make_vectors()
            beside, rate = both.generate_with_vectors(BESIDE_S)
            alone = both.vectors(IDLE_S)
        compared("vectors", rate, idle, beside / alone)
        print(f"         ({beside:.0f} windows/s of {alone:.0f})", flush=True)

    def _meaning(self) -> None:
        document, _ = self._add("words", MIDDLE)  # at once where it is there
        library = Library(self._home / "words", embedder_of(self._options.embedder))
        spent = self._home / "meaning.txt"
        before = float(spent.read_text()) if spent.is_file() else self._words_s
        start = time.monotonic()
        with suppress(IntakeCancelled):
            library.embed_missing(cancelled=lambda: time.monotonic() - start > self._options.seconds)
        took = before + time.monotonic() - start
        spent.write_text(str(took))
        ready, left = library.document(document.id).state == "ready", library.windows_without_vectors()
        library.close()
        words = f"{document.pages:,} pages by meaning in {took:.0f} s, their words included; {left:,} windows are left"
        told("meaning", words, ready and took < 120)


def out_of_memory(folder: Path) -> None:
    """Has the system forget what it keeps of the files."""
    for path in folder.rglob("*"):
        if path.is_file():
            handle = os.open(path, os.O_RDONLY)
            os.fsync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(handle)


def compared(what: str, rate: float, idle: float, share: float) -> None:
    numbers = f"{rate:.0f} tokens/s of {idle:.0f} ({rate / idle:.2f}), import at {share:.2f} of its rate alone"
    told("beside", f"{what}: {numbers}", rate > 0.75 * idle and share >= 0.2)


class Beside:
    """A workspace as the window has one, a conversation that goes on generating, and what an import does to it."""

    def __init__(self, home: Path, model: Path, embedder: Path) -> None:
        self._events: queue.SimpleQueue[tuple[float, WorkspaceEvent]] = queue.SimpleQueue()
        settings = Settings(embedder=embedder, sampling=Sampling(temperature=0.8, seed=7, max_tokens=256))
        settings = replace(settings, engine=replace(settings.engine, speculation="off"))
        self._workspace = Workspace(
            Paths.below(home).create(), lambda event: self._events.put((time.monotonic(), event)), settings
        )
        self._workspace.load_model(model)
        while not isinstance(event := self._events.get(timeout=300)[1], ModelLoaded):
            assert not isinstance(event, ModelFailed), event
        self._deltas: list[float] = []  # times of one turn's pieces of text
        self._rates: list[tuple[int, float]] = []  # of each turn: pieces, seconds
        self._progress: list[tuple[float, int]] = []  # windows that have vectors

    def __enter__(self) -> Beside:
        return self

    def __exit__(self, *error: object) -> None:
        self._workspace.close()

    def generate(self, seconds: float, until: Callable[[], bool] = lambda: False) -> float:
        """Tokens per second of decoding."""
        self._rates = []
        end = time.monotonic() + seconds
        while time.monotonic() < end and not until():
            conversation = self._workspace.chats.new().id
            turn = self._workspace.ask(conversation, "Tell me a long story about a lighthouse keeper and the sea.")
            self._deltas = []
            while not self._hear(turn) and time.monotonic() < end and not until():
                pass
            self._workspace.cancel(turn)
            while conversation in self._workspace.running():
                time.sleep(0.01)
            if len(self._deltas) > 1:
                self._rates.append((len(self._deltas) - 1, self._deltas[-1] - self._deltas[0]))
        return sum(n for n, _ in self._rates) / sum(s for _, s in self._rates)

    def _hear(self, turn: str) -> bool:
        """Whether the turn has ended."""
        at, event = self._events.get(timeout=300)
        if isinstance(event, TurnText) and event.turn == turn:
            self._deltas.append(at)
        elif isinstance(event, ImportProgress) and event.progress.phase == "vectors":
            self._progress.append((at, event.progress.done))
        elif isinstance(event, ImportDone):
            self._taken = (at, event.document)
        return isinstance(event, TurnDone | TurnError) and event.turn == turn

    def generate_with_words(self, path: Path) -> tuple[int, float, float]:
        """Pages, seconds until their words could be searched, tokens per second meanwhile."""
        self._taken: tuple[float, Document] | None = None
        start = time.monotonic()
        self._workspace.documents.add(path)
        rate = self.generate(120, lambda: self._taken is not None)
        assert self._taken is not None
        return self._taken[1].pages, self._taken[0] - start, rate

    def make_vectors(self) -> None:
        self._workspace.documents.resume()

    def generate_with_vectors(self, seconds: float) -> tuple[float, float]:
        """Windows per second, tokens per second."""
        self._progress = []
        rate = self.generate(seconds)
        return self._windows_a_second(), rate

    def vectors(self, seconds: float) -> float:
        """Windows per second with nothing else running."""
        self._progress = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._hear("")
        return self._windows_a_second()

    def _windows_a_second(self) -> float:
        """Between the first and the last batch that were heard of."""
        if len(self._progress) < 2:
            return 0.0
        (first, before), (last, after) = self._progress[0], self._progress[-1]
        return (after - before) / (last - first)


def told(name: str, words: str, held: bool) -> None:
    print(f"{name:8} {words}: {'held' if held else 'MISSED'} (load {os.getloadavg()[0]:.1f})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    listed = commands.add_parser("every")
    listed.add_argument("folder", type=Path)
    listed.add_argument("pattern", nargs="?", default="*.pdf")
    listed.set_defaults(run=every)
    speeds = commands.add_parser("speeds")
    speeds.add_argument("folder", type=Path)
    speeds.add_argument("--model", type=Path, required=True)
    speeds.add_argument("--embedder", type=Path, required=True)
    speeds.add_argument("--only", nargs="*", default=[], choices=STEPS)
    speeds.add_argument("--home", type=Path, help="kept; default: a folder for this run")
    speeds.add_argument("--seconds", type=float, default=600.0, help="of `meaning`, before it is stopped")
    speeds.set_defaults(run=measured)
    options = parser.parse_args()
    options.run(options)


def measured(options: argparse.Namespace) -> None:
    sys.setswitchinterval(SWITCH_INTERVAL_S)  # as the program does
    with tempfile.TemporaryDirectory() as home:
        kept = options.home or Path(home)
        kept.mkdir(parents=True, exist_ok=True)
        Speeds(options, kept).run()


if __name__ == "__main__":
    main()
