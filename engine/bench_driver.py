"""An engine for benchmarks: a real EngineClient, and its events with the time at which they came."""

from __future__ import annotations

import itertools
import queue
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from engine.client import EngineClient
from engine.errors import EngineError
from engine.messages import (
    Cancel,
    ConversationId,
    EngineSettings,
    EngineStats,
    Event,
    Focus,
    LoadModel,
    ModelFailed,
    ModelLoaded,
    PrefillProgress,
    QueryState,
    Sampling,
    SaveState,
    StateReport,
    Submit,
    TokenDelta,
    Tokens,
    TurnFailed,
    TurnFinished,
    TurnId,
    TurnRestored,
)
from engine.timings import now_ms

_WAIT_SECONDS = 3600.0


@dataclass(frozen=True)
class Answered:
    """Milliseconds from the moment the turn was sent: until its state was back, and until its first token."""

    restored_ms: float
    first_token_ms: float
    restored: TurnRestored
    finished: TurnFinished


class BenchEngine:
    """Greedy turns on a loaded model. Use as a context manager. EngineError: the model does not load, a turn fails."""

    def __init__(self, path: Path, settings: EngineSettings, store: Path | None) -> None:
        self._events: queue.SimpleQueue[tuple[float, Event]] = queue.SimpleQueue()
        self._numbers = itertools.count(1)
        self._ended: set[TurnId] = set()
        self.client = EngineClient(lambda event: self._events.put((now_ms(), event)))
        self.client.start()
        self.client.send(LoadModel(path, settings, store))
        loaded = self._wait(lambda event: isinstance(event, ModelLoaded | ModelFailed))[1]
        if not isinstance(loaded, ModelLoaded):
            self.client.close()
            assert isinstance(loaded, ModelFailed)
            raise EngineError(loaded.what, loaded.why, loaded.next)
        self.loaded = loaded

    def __enter__(self) -> BenchEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()

    def send(self, conversation: str, tokens: Tokens, answer: int, history: int = 0) -> tuple[TurnId, float]:
        """Starts a turn; returns it and when that was. `history`: tokens that were there before, as in Submit."""
        turn = TurnId(str(next(self._numbers)))
        sent = now_ms()
        sampling = Sampling(temperature=0.0, max_tokens=answer)
        self.client.send(Submit(turn, ConversationId(conversation), tokens, sampling, history_tokens=history))
        return turn, sent

    def ask(self, conversation: str, tokens: Tokens, answer: int, history: int = 0) -> Answered:
        """Runs a turn to its end; `answer` tokens unless the model ends it."""
        return self.follow(*self.send(conversation, tokens, answer, history))

    def follow(self, turn: TurnId, sent: float) -> Answered:
        at, restored = self._wait(lambda event: isinstance(event, TurnRestored | TurnFailed) and event.turn == turn)
        first, _ = self._wait(lambda event: isinstance(event, TokenDelta | TurnFailed) and event.turn == turn, restored)
        _, done = self._wait(lambda event: isinstance(event, TurnFinished) and event.turn == turn, restored)
        assert isinstance(restored, TurnRestored)
        assert isinstance(done, TurnFinished)
        return Answered(at - sent, first - sent, restored, done)

    def has_ended(self, turn: TurnId) -> bool:
        """As far as its events came before one that was waited for."""
        return turn in self._ended

    def cancel(self, turn: TurnId) -> None:
        """Ends the turn, if it has not ended by itself."""
        self.client.send(Cancel(turn))
        if turn not in self._ended:
            self._wait(lambda event: turn in self._ended)

    def focus(self, conversation: str, tokens: Tokens) -> None:
        """The reader looks at it."""
        self.client.send(Focus(ConversationId(conversation), tokens))

    def wait_progress(self, turn: TurnId) -> None:
        """Until the turn computes its prompt."""
        self._wait(lambda event: isinstance(event, PrefillProgress) and event.turn == turn)

    def flush(self) -> None:
        """Until everything is durable."""
        self.client.send(SaveState(ConversationId("")))
        self.state("", Tokens())

    def state(self, conversation: str, tokens: Tokens) -> StateReport:
        request = next(self._numbers)
        self.client.send(QueryState(request, ConversationId(conversation), tokens))
        report = self._wait(lambda event: isinstance(event, StateReport) and event.request == request)[1]
        assert isinstance(report, StateReport)
        return report

    def idle_stats(self) -> EngineStats:
        """Sizes once nothing runs any more."""
        stats = self._wait(lambda event: isinstance(event, EngineStats) and not event.running + event.waiting)[1]
        assert isinstance(stats, EngineStats)
        return stats

    def next_event(self) -> tuple[float, Event]:
        """When it came, and what: for measurements over several turns."""
        return self._events.get(timeout=_WAIT_SECONDS)

    def _wait(self, wanted: Callable[[Event], bool], known: Event | None = None) -> tuple[float, Event]:
        """The next event that is wanted. Raises EngineError for the turn whose failure came instead."""
        if isinstance(known, TurnFailed):
            raise EngineError(known.what, known.why, known.next)
        while True:
            at, event = self._events.get(timeout=_WAIT_SECONDS)
            if isinstance(event, TurnFinished | TurnFailed):
                self._ended.add(event.turn)
            if wanted(event):
                return at, event
