"""A bug of ours on the engine thread: logged with its trace, told to whoever waits, survived."""

from __future__ import annotations

import logging
from collections.abc import Callable

from engine.errors import EngineError
from engine.messages import Command, EngineNotice, Event, LoadModel, ModelFailed, Submit, TurnFailed

log = logging.getLogger(__name__)


def as_engine_error(error: Exception) -> EngineError:
    """What the reader is told; the trace is in the log."""
    return EngineError(
        "The engine met an error of its own.",
        f"{type(error).__name__}: {error}",
        "Ask again. If it comes back, restart Pagekeep; the log in the state folder says more.",
    )


def pass_over(what: str, error: Exception) -> None:
    """Only logged: nobody waits for it."""
    log.error("engine: %s failed", what, exc_info=error)


def explained(error: Exception) -> EngineError:
    """The error itself, or what the reader is told of a bug in a turn's own work."""
    if isinstance(error, EngineError):
        return error
    log.error("engine: a turn failed", exc_info=error)
    return as_engine_error(error)


def tell(command: Command | None, error: Exception, emit: Callable[[Event], None]) -> None:
    """Answers the command that failed (None: none in particular), so that nobody waits for ever."""
    log.error("engine: %s failed", type(command).__name__ if command else "a step", exc_info=error)
    told = as_engine_error(error)
    if isinstance(command, Submit):
        emit(TurnFailed(command.turn, command.conversation, told.what, told.why, told.next))
    elif isinstance(command, LoadModel):
        emit(ModelFailed(command.path, told.what, told.why, told.next))
    else:
        emit(EngineNotice(told.what, told.why, told.next))
