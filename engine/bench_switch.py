"""What coming back to a conversation costs: from memory, from disk in a new process, with a cold file cache.

`measure` runs everything on real engines. The disk parts run in processes of their own (`python -m
engine.bench_switch JOB.json`) on copies of the store, so that nothing of them was touched before.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from engine.bench_driver import Answered, BenchEngine
from engine.bench_files import cached_share, drop_file_cache, second_store, segments, sequential_mb_s
from engine.bench_process import run_module
from engine.bench_ram import Visits
from engine.errors import EngineError
from engine.gguf import GgufFile
from engine.kv.layout import PageLayout
from engine.loading import physical_cores
from engine.messages import EngineSettings, Tokens
from engine.models.families import spec_from_gguf
from engine.store.record import Kind
from engine.store.segment import scan
from engine.store.tools import StoreTools

ANSWER = 16  # tokens of every answer
CHATS = 10
DOCUMENT_TOKENS = 6000
_COLD = "cold 1", "cold 2", "cold 3"  # stores, each for a process
_TURNS = 4
_OTHERS = 5 * 4096  # tokens of conversations beside, some of which are still there


@dataclass(frozen=True)
class SwitchFigures:
    """Milliseconds unless said. All turns are greedy, questions have `question_tokens` tokens.

    Attributes:
        tokens: of the conversation before the question; model, threads: as used; kv_bytes: its KV.
        prefill_ms: computing all of it once.
        ram_switch_ms: from the question to the state being ready, nothing else running (median);
            ram_switch_busy_ms: while another conversation computes its prompt (the longest of 32, at moments all over
            its steps), ram_switch_busy_median_ms.
        disk_restore_ms: until its state can be computed with in a new process, files cached by the system;
            disk_checked_ms: until all of it was verified (beside the first step, whose result waits for that);
            disk_first_token_ms: from the question to the first token there; question_prefill_ms: the part
            of it that the question's own tokens take; return_ratio: of it to a prefill of everything.
        cold_restore_ms, cold_checked_ms, cold_first_token_ms: the same with nothing cached (cold_cached_share: what was
            all the same), the best of three; cold_read_mb_s: until all was read and verified; disk_mb_s: a stream.
        bytes_written_ratio: of a turn, to its new KV and the tail record of before (the worst of several turns).
        shared_ratio: bytes of a document's pages after ten conversations to those after one, on disk or in
            memory, whichever is larger.
        equal: all answers after a return are those of a run that never left.
    """

    model: str
    threads: int
    tokens: int
    question_tokens: int
    kv_bytes: int
    prefill_ms: float
    ram_switch_ms: float
    ram_switch_busy_ms: float
    ram_switch_busy_median_ms: float
    disk_restore_ms: float
    disk_checked_ms: float
    disk_first_token_ms: float
    question_prefill_ms: float
    return_ratio: float
    cold_cached_share: float
    cold_restore_ms: float
    cold_checked_ms: float
    cold_first_token_ms: float
    cold_read_mb_s: float
    disk_mb_s: float
    bytes_written_ratio: float
    shared_ratio: float
    equal: bool


@dataclass(frozen=True)
class Plan:
    """What is asked: token ids are pseudo-random and fixed."""

    path: Path
    settings: EngineSettings
    tokens: int
    question: int
    vocabulary: int = 0

    def text(self, count: int, seed: int) -> Tokens:
        return Tokens.prompt([(7919 * (i + 1) + 104729 * seed) % self.vocabulary for i in range(count)])


def measure(path: Path, settings: EngineSettings, tokens: int, question: int, folder: Path) -> SwitchFigures:
    """Runs the benchmark; `folder`: where the stores of the run lie (deleted at the end). EngineError."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="bench-switch-") as made:
        scratch = Path(made)
        memory = max(settings.ram_budget_bytes, _memory(path, settings, tokens))
        settings = replace(settings, threads=settings.threads or physical_cores(), ram_budget_bytes=memory)
        with BenchEngine(path, settings, scratch / "store") as engine:
            plan = plan_of(engine, path, settings, tokens, question)
            first, history = first_turn(engine, plan)
            copies = [second_store(scratch / "store", scratch / name) for name in ("warm", *_COLD)]
            here = engine.ask("main", history + plan.text(question, 1), ANSWER)
            switches = _switches(engine, plan, history, first.finished.timings.prefill)
            written = _written_ratio(engine, plan, scratch / "store", history)
            loaded = engine.loaded
        del engine
        gc.collect()  # what it has mapped would stay in the file cache
        warm = in_new_process(plan, history, copies[0], cold=False)
        cold = [in_new_process(plan, history, copy, cold=True) for copy in copies[1:]]
        shared = _shared_ratio(plan, scratch / "shared")
    expected = list(here.finished.generated.ids)
    equal = all(run["generated"] == expected for run in (warm, *cold)) and here.finished.computed != ()
    prefill = first.finished.timings.prefill
    return SwitchFigures(
        model=loaded.name,
        threads=settings.threads,
        tokens=len(history),
        question_tokens=question,
        kv_bytes=len(history) * loaded.kv_bytes_per_token,
        prefill_ms=prefill,
        **_in_memory(*switches),
        **_from_disk(warm, prefill),
        **_from_cold_disk(cold),
        bytes_written_ratio=written,
        shared_ratio=shared,
        equal=equal,
    )


def _in_memory(idle: list[float], busy: list[float]) -> dict[str, float]:
    names = "ram_switch_ms", "ram_switch_busy_ms", "ram_switch_busy_median_ms"
    return dict(zip(names, (statistics.median(idle), max(busy), statistics.median(busy)), strict=True))


def _from_disk(found: dict[str, Any], prefill_ms: float) -> dict[str, float]:
    return {
        "disk_restore_ms": found["restore_ms"],
        "disk_checked_ms": found["checked_ms"],
        "disk_first_token_ms": found["first_token_ms"],
        "question_prefill_ms": found["prefill_ms"],
        "return_ratio": found["first_token_ms"] / prefill_ms,
    }


def _from_cold_disk(runs: list[dict[str, Any]]) -> dict[str, float]:
    """Of the quickest of several runs, and the quickest stream: what else uses the disk is not its rate."""
    found = min(runs, key=lambda run: float(run["checked_ms"]))
    return {
        "cold_cached_share": found["cached"],
        "cold_restore_ms": found["restore_ms"],
        "cold_checked_ms": found["checked_ms"],
        "cold_first_token_ms": found["first_token_ms"],
        "cold_read_mb_s": found["bytes_read"] / 1e3 / found["checked_ms"],
        "disk_mb_s": max(run["disk_mb_s"] for run in runs),
    }


def _memory(path: Path, settings: EngineSettings, tokens: int) -> int:
    """For all conversations of the run, so that none of them is evicted in it."""
    gguf = GgufFile.open(path)
    try:
        layout = PageLayout.for_spec(spec_from_gguf(gguf), settings.kv_type_k, settings.kv_type_v)
    finally:
        gguf.close()
    most = max(3 * tokens + _OTHERS, DOCUMENT_TOKENS + 4096)
    return most * layout.bytes_per_token + (256 << 20)


def plan_of(engine: BenchEngine, path: Path, settings: EngineSettings, tokens: int, question: int) -> Plan:
    handle = engine.client.model
    assert handle is not None
    needed = tokens + (_TURNS + 1) * (question + ANSWER) + ANSWER
    if needed > handle.context:
        raise EngineError(
            "The benchmark does not fit the model's context.",
            f"It needs {needed:,} tokens, the context has {handle.context:,}.",
            "Choose a smaller --tokens.",
        )
    plan = Plan(path, settings, tokens, question, handle.spec.vocabulary)
    engine.ask("touch", plan.text(16, 9), 1)  # first touch of the weights is not what is measured
    return plan


def first_turn(engine: BenchEngine, plan: Plan) -> tuple[Answered, Tokens]:
    text = plan.text(plan.tokens, 0)
    first = engine.ask("main", text, ANSWER)
    engine.flush()
    return first, text + first.finished.generated


def _switches(engine: BenchEngine, plan: Plan, history: Tokens, prefill_ms: float) -> tuple[list[float], list[float]]:
    """Milliseconds until a conversation in memory is ready: idle, and beside another one's prefill."""
    visits = Visits(engine, history, plan.question, plan.text)
    idle, other = visits.idle(), max(2048, plan.tokens // 2)
    engine.focus("main", history)
    return idle, visits.busy(other, prefill_ms / 1e3 * other / len(history))


def _written_ratio(engine: BenchEngine, plan: Plan, store: Path, history: Tokens) -> float:
    """The worst turn's bytes written to its allowance: the KV of its new tokens, and the unfinished end that stood
    before it, which is written once more with what follows. The first turn is not counted: it leaves another end."""
    ratios, before, tail = [], 0, 0
    for number in range(_TURNS + 1):
        question = plan.text(plan.question, 60 + number)
        done = engine.ask("main", history + question, ANSWER).finished
        engine.flush()
        history = history + question + done.generated
        new = (plan.question + len(done.generated)) * engine.loaded.kv_bytes_per_token
        with StoreTools(store) as tools:
            after = tools.stat().bytes_written
            ratios.append((after - before) / (new + tail))
            before, tail = after, sum(page.bytes for page in tools.show("main").pages if page.tail)
    return max(ratios[1:])


# --- sharing ------------------------------------------------------------------------------------------


def _shared_ratio(plan: Plan, store: Path) -> float:
    """How many times the pages of one document are kept by ten conversations on it."""
    with BenchEngine(plan.path, plan.settings, store) as engine:
        size = engine.loaded.page_tokens
        document = plan.text(min(DOCUMENT_TOKENS, engine.loaded.context - 64), 70)
        pages = len(document) // size
        for number in range(CHATS):
            engine.ask(f"chat {number}", document + plan.text(plan.question, 80 + number), 1)
        engine.flush()
        in_memory = engine.idle_stats().kv_memory_bytes / (size * engine.loaded.kv_bytes_per_token)
        own = CHATS * -(-(len(document) + plan.question - pages * size) // size)
    records = [found.header for path in segments(store) for found in scan(path, 0)]
    ours = [header for header in records if header.kind == Kind.PAGE and header.start + size <= pages * size]
    once = {(header.key, header.group): header.record_bytes for header in ours}  # a page has a record a layer group
    on_disk = sum(header.record_bytes for header in ours) / sum(once.values())
    return max((in_memory - own) / pages, on_disk)


# --- a process of its own -----------------------------------------------------------------------------


def in_new_process(plan: Plan, history: Tokens, store: Path, cold: bool) -> dict[str, Any]:
    job = {
        "plan": {**asdict(plan), "path": str(plan.path)},
        "history": [history.ids, history.roles],
        "store": str(store),
        "cold": cold,
    }
    file = store.with_suffix(".json")
    file.write_text(json.dumps(job))
    return run_module("engine.bench_switch", str(file))


def _return_to(job: dict[str, Any]) -> dict[str, Any]:
    """In the new process: loads the model, asks in a conversation it has never seen."""
    given = job["plan"]
    plan = Plan(**{**given, "path": Path(given["path"]), "settings": EngineSettings(**given["settings"])})
    history, store = Tokens(*map(tuple, job["history"])), Path(job["store"])
    stream = sequential_mb_s(store) if job["cold"] else 0.0  # before anything is mapped here, which stays in the cache
    with BenchEngine(plan.path, plan.settings, store) as engine:
        engine.ask("touch", plan.text(16, 9), 1)
        if job["cold"]:
            drop_file_cache(store)
        cached = cached_share(store) if job["cold"] else 1.0
        answered = engine.ask("main", history + plan.text(plan.question, 1), ANSWER, len(history))
    if answered.restored.reused.disk < plan.tokens:
        found = f"{answered.restored.reused.disk:,} of its {plan.tokens:,} tokens were found there."
        raise EngineError("The conversation did not come back from disk.", found)
    return {
        "cached": cached,
        "restore_ms": answered.restored.restore_ms,
        "checked_ms": answered.finished.timings.check,
        "first_token_ms": answered.first_token_ms,
        "prefill_ms": answered.finished.timings.prefill,
        "bytes_read": answered.finished.bytes_read,
        "generated": list(answered.finished.generated.ids),
        "disk_mb_s": stream,
    }


if __name__ == "__main__":
    print(json.dumps(_return_to(json.loads(Path(sys.argv[1]).read_text()))))
