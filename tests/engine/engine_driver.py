"""Drives a real EngineClient in tests: collects its events and waits for the one that is needed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from engine.client import EngineClient
from engine.messages import (
    ConversationId,
    EngineSettings,
    Event,
    LastTurn,
    LoadModel,
    ModelFailed,
    ModelLoaded,
    QueryState,
    Removal,
    Sampling,
    Shift,
    StateReport,
    Submit,
    TokenDelta,
    Tokens,
    TurnFailed,
    TurnFinished,
    TurnId,
)

E = TypeVar("E")
ENDED = LastTurn()
GREEDY = Sampling(temperature=0.0, max_tokens=12)


class Driver:
    """`events`: everything the engine said, in order."""

    def __init__(self, model: Path, store: Path | None, **settings: object) -> None:
        self.events: list[Event] = []
        self._acts: list[tuple[Callable[[Event], object], Callable[[], object]]] = []
        self._changed = threading.Condition()
        self.client = EngineClient(self._heard)
        self.client.start()
        self.load(model, store, **settings)
        self.loaded = self.wait(lambda e: isinstance(e, ModelLoaded | ModelFailed))

    def load(self, model: Path, store: Path | None, **settings: object) -> None:
        self.client.send(LoadModel(model, EngineSettings(**({"threads": 2} | settings)), store))  # type: ignore[arg-type]

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *error: object) -> None:
        assert self.client.close(240)

    def quit(self) -> None:
        """As `close` does, without waiting: for the engine's own thread."""
        self.client._inbox.put(None)

    def _heard(self, event: Event) -> None:
        with self._changed:
            self.events.append(event)
            due = [act for wanted, act in self._acts if wanted(event)]
            self._acts = [(wanted, act) for wanted, act in self._acts if act not in due]
            self._changed.notify_all()
        for act in due:
            act()

    def at(self, wanted: Callable[[Event], object], act: Callable[[], object]) -> None:
        """Does `act` once, on the engine's thread, in the moment of an event: what it sends is dealt with before the
        next step, however busy this machine is."""
        self._acts.append((wanted, act))

    def wait(self, wanted: Callable[[Event], bool], seconds: float = 240) -> Event:
        def found() -> list[Event]:
            return [event for event in self.events if wanted(event)]

        with self._changed:
            assert self._changed.wait_for(found, seconds), f"not seen among {self.events[-5:]}"
            return found()[-1]

    def submit(
        self, turn: str, conversation: str, tokens: Tokens, sampling: Sampling = GREEDY, history: int = 0,
        last_turn: LastTurn = ENDED,
    ) -> None:  # fmt: skip
        who = TurnId(turn), ConversationId(conversation)
        self.client.send(Submit(*who, tokens, sampling, history_tokens=history, last_turn=last_turn))

    def run_shifted(
        self, turn: str, conversation: str, tokens: Tokens, shifts: tuple[Shift, ...], removal: Removal | None = None,
        history: int = 0,
    ) -> TurnFinished:  # fmt: skip
        """A turn on a conversation out of which ranges were taken."""
        who, had = (TurnId(turn), ConversationId(conversation)), {"history_tokens": history}
        self.client.send(Submit(*who, tokens, GREEDY, shifts=shifts, removal=removal, **had))
        return self.result(turn)

    def result(self, turn: str) -> TurnFinished:
        done = self.wait(lambda e: isinstance(e, TurnFinished | TurnFailed) and e.turn == turn)
        assert isinstance(done, TurnFinished), done
        return done

    def run(
        self, turn: str, conversation: str, tokens: Tokens, sampling: Sampling = GREEDY, history: int = 0,
        last_turn: LastTurn = ENDED,
    ) -> TurnFinished:  # fmt: skip
        self.submit(turn, conversation, tokens, sampling, history, last_turn)
        return self.result(turn)

    def wait_tokens(self, turn: str, count: int) -> None:
        """Until that many tokens were seen, or the turn ended before."""
        ends = TokenDelta, TurnFinished, TurnFailed
        self.wait(
            lambda e: (
                isinstance(e, ends) and e.turn == turn and (not isinstance(e, TokenDelta) or self.deltas(turn) >= count)
            )
        )

    def deltas(self, turn: str) -> int:
        return sum(len(e.ids) for e in self.events if isinstance(e, TokenDelta) and e.turn == turn)

    def state(
        self, conversation: str, tokens: Tokens, shifts: tuple[Shift, ...] = (), history: int | None = None
    ) -> StateReport:
        """`history` None: all of `tokens` was computed once."""
        request, had = len(self.events), len(tokens) if history is None else history
        self.client.send(QueryState(request, ConversationId(conversation), tokens, shifts, had))
        report = self.wait(lambda e: isinstance(e, StateReport) and e.request == request)
        assert isinstance(report, StateReport)
        return report
