"""What the engine has to say of a conversation waits for no database; its name comes where it is shown."""

from __future__ import annotations

import io
import queue
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.cli.console import Console
from app.cli.session import open_session
from app.core.conversations import ConversationStore
from app.core.events import Notice
from app.core.paths import Paths
from app.core.workspace import Workspace
from engine.messages import EngineNotice


class Told:
    """A workspace, and what it says."""

    def __init__(self, home: Path) -> None:
        self.events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.workspace = Workspace(Paths.below(home), self.events.put)
        self.about = self.workspace.chats.new("The river").id

    def hear(self) -> None:
        """As on the engine's thread."""
        self.workspace._host._heard(EngineNotice("Lost.", "The disk fails.", "Nothing.", self.about))

    def notice(self) -> Notice:
        while True:
            event = self.events.get(timeout=240)
            if isinstance(event, Notice):
                return event


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    made = Told(tmp_path)
    yield made
    made.workspace.close()


def test_the_engine_does_not_wait_for_the_database(told: Told) -> None:
    with told.workspace.conversations.transaction():
        engine = threading.Thread(target=told.hear, daemon=True)
        engine.start()
        notice = told.notice()
        engine.join(60)
        assert not engine.is_alive()
    assert told.workspace.chats.about(notice).text == "“The river”: Lost. The disk fails. Nothing."
    once = told.workspace.chats.about(notice)
    assert told.workspace.chats.about(once) == once


def test_it_is_told_without_the_name_where_that_cannot_be_read(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(*given: object) -> None:
        raise sqlite3.OperationalError("database is locked")

    told.hear()
    notice = told.notice()
    monkeypatch.setattr(ConversationStore, "get", locked)
    assert told.workspace.chats.about(notice).text == "Lost. The disk fails. Nothing."


def test_the_command_line_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGEKEEP_HOME", str(tmp_path / "home"))
    Paths.default().create()
    err = io.StringIO()
    with open_session(Console(as_json=False, out=io.StringIO(), err=err)) as session:
        about = session.workspace.chats.new("The river").id
        session.workspace._host._heard(EngineNotice("Lost.", "The disk fails.", "Nothing.", about))
        assert any(isinstance(event, Notice) for event in session.events(0.5))
    assert "“The river”: Lost." in err.getvalue()
