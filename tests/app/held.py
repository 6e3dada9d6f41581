"""An engine that gives time to whoever wants to stop it, so that a busy machine is not too late."""

from __future__ import annotations

import itertools
import threading

import pytest

from engine.client import EngineClient
from engine.messages import Command
from engine.runner import Runner
from kernels.program import StepResult


def held_until(monkeypatch: pytest.MonkeyPatch, command: type[Command], steps: int) -> None:
    """Behind its first `steps` steps the engine goes on only once such a command was sent to it, or it is closed
    because the test has failed before."""
    sent, done = threading.Event(), itertools.count()
    send, close, step = EngineClient.send, EngineClient.close, Runner.step

    def sending(client: EngineClient, given: Command) -> None:
        send(client, given)
        if isinstance(given, command):
            sent.set()

    def closing(client: EngineClient, timeout: float | None = None) -> bool:
        sent.set()
        return close(client, timeout)

    def stepping(runner: Runner, *given: object, **named: object) -> StepResult:
        if next(done) >= steps:
            sent.wait(100)
        return step(runner, *given, **named)

    monkeypatch.setattr(EngineClient, "send", sending)
    monkeypatch.setattr(EngineClient, "close", closing)
    monkeypatch.setattr(Runner, "step", stepping)
