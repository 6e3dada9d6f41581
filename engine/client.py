"""EngineClient: the other threads' view of the engine. Starts its thread, sends commands, receives events."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass

from engine.loading import ModelHandle, held_tokens
from engine.messages import Cancel, Command, Event, Focus, Removal, Shift, StopDocument, Submit, Tokens
from engine.overflow import Overflowing, OverflowOption, overflow_options, shift_refused
from engine.service import Service


@dataclass(frozen=True)
class Quote:
    """What running a prompt would cost now. `seconds` 0 while this machine's rate is unknown."""

    total: int
    reused_memory: int
    reused_disk: int
    new: int
    seconds: float


class EngineClient:
    """All methods may be called from any thread. `on_event` is called on the engine thread: quick, never raising."""

    def __init__(self, on_event: Callable[[Event], None]) -> None:
        self._inbox: queue.SimpleQueue[Command | None] = queue.SimpleQueue()
        self._service = Service(self._inbox, on_event)
        self._thread = threading.Thread(target=self._service.run, name="engine", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def send(self, command: Command) -> None:
        """Queues a command. What the reader waits for parks the step in progress, or ends it."""
        self._inbox.put(command)
        if isinstance(command, Cancel | Submit | Focus | StopDocument) and not self._inbox.empty():
            self._service.interrupt()

    def close(self, timeout: float | None = None) -> bool:
        """Cancels turns, keeps what they computed, makes KV durable, ends the thread. False after `timeout` seconds."""
        if not self._thread.is_alive():
            return True
        self._inbox.put(None)
        self._service.interrupt()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def wait(self) -> None:
        """Until the engine's thread has ended, by `close` or by a fault."""
        self._thread.join()

    @property
    def model(self) -> ModelHandle | None:
        """The loaded model, None before the first."""
        running = self._service.running
        return running.model.handle if running else None

    def quote(self, tokens: Tokens, shifts: tuple[Shift, ...] = (), removal: Removal | None = None) -> Quote:
        """The price of a prompt (see Submit). Reads the page maps only: no I/O, no waiting for the engine."""
        running = self._service.running
        if running is None:
            return Quote(len(tokens), 0, 0, len(tokens), 0.0)
        memory, disk = running.cache.peek(tokens, shifts)
        if removal is not None and running.may_shift:
            whole = running.cache.peek(removal.undone(tokens), removal.shifts)
            if sum(whole) - len(removal.removed) > max(memory + disk, removal.position):
                memory = max(0, whole[0] - len(removal.removed))
                disk = sum(whole) - len(removal.removed) - memory
        new = len(tokens) - memory - disk
        return Quote(len(tokens), memory, disk, new, running.rates.prefill_ms(new) / 1e3)

    def shift_refused(self) -> str:
        """Why a range cannot be taken out without computing what follows, "" if it can."""
        running = self._service.running
        if running is None:
            return "No model is loaded."
        return shift_refused(running.model.handle.spec, running.settings.kv_type_k)

    def ways_out(
        self, total: int, shared: int, turns: tuple[int, ...], question: int, reserve: int
    ) -> tuple[OverflowOption, ...]:
        """What can be done with a prompt that is too long (fields of engine.overflow.Overflowing); () if it fits."""
        running = self._service.running
        if running is None:
            return ()
        info, settings = running.model.handle.info, running.settings
        held = held_tokens(running.model.layout, settings)
        prompt = Overflowing(
            total, shared, turns, question, info.context, running.model.handle.spec.context, reserve,
            running.rates.decode, info.kv_bytes_per_token, held, info.load_ms / 1e3,
        )  # fmt: skip
        costs = running.rates.costs(running.depth_scale)
        return overflow_options(prompt, costs, running.model.handle.spec, settings.kv_type_k)
