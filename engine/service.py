"""The engine thread: drains commands, steps the scheduler, hands out events. Owns weights, KV and turns."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable

from engine import mishaps
from engine.admission import Admission
from engine.answer import AnswerText, LateSource
from engine.background import DocumentReader
from engine.canary import Canary
from engine.citation_limit import CitationLimit
from engine.costs import model_depth_scale
from engine.errors import EngineError
from engine.kv.cache import KvCache
from engine.kv.log import KvLog
from engine.kv.shift import KeyRotation
from engine.limits import Limits
from engine.loading import LoadedModel, ModelHandle, load
from engine.messages import (
    Cancel,
    Command,
    DropState,
    EngineNotice,
    Event,
    Focus,
    ForkState,
    LoadModel,
    ModelFailed,
    ModelLoading,
    PinState,
    PrefillDocument,
    QueryState,
    SaveState,
    StopDocument,
    Submit,
    TurnFailed,
)
from engine.overflow import shift_refused
from engine.prefetch import Prefetch
from engine.runner import Runner
from engine.running import Running, unknown_state
from engine.scheduler import Scheduler
from engine.speculation import Speculation
from engine.store import KvStore
from engine.timings import Rates
from engine.turn import Turn
from kernels.program import PARK

_IDLE_SECONDS = 0.5
_STATS_SECONDS = 0.5
_RESTORE_POLL_SECONDS = 0.002
_TIDY_SECONDS = 20.0
_DROP_SECONDS = 5.0


class Service:
    """Runs on the engine thread only, except for `interrupt` and reading `running`.

    Attributes:
        running: the loaded model and its parts; None before the first model.
    """

    def __init__(self, inbox: queue.SimpleQueue[Command | None], emit: Callable[[Event], None]) -> None:
        self._inbox = inbox
        self._emit = emit
        self._stats_due = 0.0
        self._tidy_due = 0.0
        self._idle_since = time.monotonic()
        self.running: Running | None = None

    # --- the loop -----------------------------------------------------------------------------------

    def run(self) -> None:
        """Until None arrives in the inbox."""
        while self._drain(self._patience()):
            if self.running is not None:
                self._work_on(self.running)
        self._unload()

    def interrupt(self) -> None:
        """Parks the step in progress, or ends it; called by other threads after they queued what should not wait."""
        if self.running is not None:
            self.running.runner.cancel[0] = PARK

    def _patience(self) -> float:
        """Seconds to wait for a command: none while there are turns to run."""
        running = self.running
        if running is not None and (running.scheduler.busy or running.reader.busy):
            return 0.0
        return _RESTORE_POLL_SECONDS if running and running.prefetch.busy else _IDLE_SECONDS

    def _drain(self, patience: float) -> bool:
        """Handles what is queued. The flag is cleared first: a Cancel that raised it is then in the queue."""
        if self.running is not None:
            self.running.runner.cancel[0] = 0
        if not patience and self._inbox.empty():
            return True
        try:
            command = self._inbox.get(timeout=patience) if patience else self._inbox.get_nowait()
            while command is not None:
                self._answer(command)
                command = self._inbox.get_nowait()
        except queue.Empty:
            return True
        return False

    def _work_on(self, running: Running) -> None:
        """A bug in a step fails the turns that run, not the thread."""
        try:
            self._work(running)
        except Exception as error:
            mishaps.tell(None, error, self._emit)
            running.scheduler.fail_all(mishaps.as_engine_error(error))

    def _work(self, running: Running) -> None:
        turns = running.scheduler.busy
        busy = turns or running.reader.busy
        if busy and not (running.scheduler.step() if turns else self._read_ahead(running)):
            running.scheduler.wait(_RESTORE_POLL_SECONDS)
        running.prefetch.poll()
        if busy:
            self._idle_since = time.monotonic()
        else:
            running.cache.poll()
            if running.cache.remap():
                self._stats_due = time.monotonic()
            self._tidy(running)
        self._report(running, busy)

    def _read_ahead(self, running: Running) -> bool:
        return running.reader.step(running.scheduler.slice(decoding=False))

    def _tidy(self, running: Running) -> None:
        """Now and then, when nothing runs: lets go of what was not used for long."""
        now = time.monotonic()
        if now < self._tidy_due:
            return
        self._tidy_due = now + min(_TIDY_SECONDS, running.settings.canary_seconds or _TIDY_SECONDS)
        running.cache.log.flush()
        running.cache.losses.look_again()  # what others found damaged is told though nobody asks
        running.cache.judge_by(running.rates.costs(running.depth_scale))
        focus = running.scheduler.focus
        idle = running.settings.idle_seconds
        if idle and running.cache.retire(idle, [focus] if focus else []):
            self._stats_due = now  # the panel shows what is left
        pause = running.settings.canary_seconds
        if pause and now - self._idle_since >= pause:
            self._idle_since = now
            running.canary.check_one()

    def _report(self, running: Running, busy: bool) -> None:
        running.tell_notices(self._emit)
        now = time.monotonic()
        if now >= self._stats_due and (busy or self._stats_due):
            self._stats_due = now + _STATS_SECONDS if busy else 0.0
            running.tell_stats(self._emit)

    # --- commands -----------------------------------------------------------------------------------

    def _answer(self, command: Command) -> None:
        try:
            self._handle(command)
        except Exception as error:
            mishaps.tell(command, error, self._emit)

    def _handle(self, command: Command) -> None:
        if isinstance(command, LoadModel):
            self._load(command)
        elif self.running is None:
            self._refuse(command)
        else:
            self._stats_due = self._stats_due or time.monotonic()
            self._dispatch(command, self.running)

    def _dispatch(self, command: Command, running: Running) -> None:
        match command:
            case Submit():
                running.reader.pause()
                running.scheduler.submit(self._turn(command, running.model.handle))
            case Cancel():
                running.scheduler.cancel(command.turn)
            case Focus():
                self._focus(command, running)
            case SaveState():
                running.cache.flush()
                # Of what was refused, before who asks for the state after it is answered.
                running.tell_notices(self._emit)
            case DropState():
                running.cache.drop(command.conversation, command.disk)
                running.cache.flush(_DROP_SECONDS)  # so that a state report after it tells what stayed
            case ForkState():
                running.cache.fork(command.source, command.target, command.tokens)
            case PrefillDocument():
                running.reader.add(command)
            case StopDocument():
                running.reader.stop(command.document)
            case PinState():
                running.cache.conversations.pin(command.conversation, command.pinned)
            case QueryState():
                running.cache.log.flush()  # who asks reads the log too
                self._emit(running.state(command))
            case LoadModel():
                raise AssertionError("handled before")

    def _refuse(self, command: Command) -> None:
        if isinstance(command, Submit):
            what, why, next_ = (
                "No model is loaded.",
                "The question was not sent.",
                "Load a model and ask again.",
            )
            self._emit(TurnFailed(command.turn, command.conversation, what, why, next_))
        elif isinstance(command, QueryState):
            report = unknown_state(command)
            self._emit(report)

    def _turn(self, request: Submit, handle: ModelHandle) -> Turn:
        source = LateSource(handle.chat.reply_stream, request.tokens.generated_end)
        return Turn(request, AnswerText(source, (*request.sampling.stop, *handle.chat.stops)))

    def _focus(self, command: Focus, running: Running) -> None:
        """The conversation's turns go first; what of it lies on disk is read before a question comes."""
        running.scheduler.focus = command.conversation
        if not running.scheduler.has_turn_of(command.conversation):  # that brings back what it needs
            running.prefetch.begin(running.cache.match(command.tokens, command.shifts), command.conversation)

    # --- loading ------------------------------------------------------------------------------------

    def _load(self, command: LoadModel) -> None:
        """A model that fails to load leaves the loaded one in place."""
        try:
            model = load(
                command.path,
                command.settings,
                lambda stage: self._emit(ModelLoading(command.path, stage)),
            )
        except EngineError as error:
            self._emit(ModelFailed(command.path, error.what, error.why, error.next))
            return
        self._unload()
        self.running = self._assemble(model, command)
        for warning in model.handle.warnings:
            self._emit(EngineNotice("About the model.", warning, ""))
        self._emit(model.handle.info)

    def _assemble(self, model: LoadedModel, command: LoadModel) -> Running:
        settings, folder = command.settings, command.store_folder
        store = self._open_store(model, command)
        cache = KvCache(model.layout, model.fingerprint, model.numerics, store, settings.ram_budget_bytes)
        cache.log = KvLog(folder, settings.cache_log)
        rates = Rates.load(folder / f"rates-{model.handle.info.fingerprint[:16]}.json" if folder else None)
        runner = Runner(model.backend, settings.micro_batch)
        limits = Limits(model.handle.context, settings.prefill_chunk, model.handle.tokenizer.eog_ids)
        spec = model.handle.spec
        rotation = None if shift_refused(spec, settings.kv_type_k) else KeyRotation.of(spec, model.layout)
        prefetch = Prefetch(cache, rates)
        admission = Admission(cache, rates, limits.context, self._emit, rotation, prefetch)
        citations = CitationLimit(model.handle.tokenizer, spec.vocabulary)
        speculation = Speculation(limits.end_tokens, limits.context, on=settings.speculation)
        scheduler = Scheduler(runner, admission, rates, limits, self._emit, citations, speculation)
        scale = model_depth_scale(model)
        cache.judge_by(rates.costs(scale))
        experts = any(layer.ffn.experts for layer in spec.layers)
        reader = DocumentReader(runner, cache, rates, limits.context, self._emit, experts)
        canary = Canary(runner, cache, self._emit)
        return Running(model, cache, store, rates, runner, scheduler, prefetch, reader, canary, settings, scale)

    def _open_store(self, model: LoadedModel, command: LoadModel) -> KvStore | None:
        """Without a store conversations work all the same; the reader is told."""
        if command.store_folder is None:
            return None
        try:
            settings, folder = command.settings, command.store_folder
            named = settings.disk_budget_bytes, model.handle.info.name, KvLog(folder, settings.cache_log)
            return KvStore(folder, model.layout, model.fingerprint, *named)
        except EngineError as error:
            self._emit(EngineNotice(error.what, error.why, error.next))
            return None

    def _unload(self) -> None:
        running, self.running = self.running, None
        if running is None:
            return
        running.scheduler.cancel_all()
        running.reader.stop_all("the model is not loaded any more")
        running.prefetch.cancel()
        running.cache.flush()
        running.cache.close()
        running.tell_notices(self._emit)
        running.cache.log.flush()
        running.rates.save()
        if running.store is not None:
            running.store.close()
        running.model.gguf.close()
