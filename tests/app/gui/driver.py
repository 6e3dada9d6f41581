"""Drives the real window: what a reader does with it, and waiting for what the reader would wait for."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication

from app.core.events import TurnDone, TurnError
from app.core.paths import Paths
from app.core.records import Message
from app.gui import Desktop
from engine.messages import ConversationId, ModelFailed

LONGEST_S = 240.0  # until what must come has come: told is that it hangs, not how busy the machine is
ROUNDS = 20  # of the event loop: what one event brings about comes with the next


class Driver:
    """One running window on the data folder `home`. Call `quit` in any case."""

    def __init__(self, application: QApplication, home: Path) -> None:
        self.application = application
        application.setQuitOnLastWindowClosed(False)
        self.desktop = Desktop(application, Paths.below(home).create())
        self.window = self.desktop.window
        self.ended = False
        self.done: list[Message] = []
        self.errors: list[TurnError] = []
        self.failures: list[ModelFailed] = []
        self.desktop.bridge.model_failed.connect(self.failures.append)
        self.desktop.ended.connect(self._end)
        self.desktop.bridge.turn_done.connect(self._note_done)
        self.desktop.bridge.turn_error.connect(self.errors.append)

    def show(self) -> None:
        self.desktop.show()
        self.until(lambda: self.window.controller.on_screen is not None, "no conversation was shown")

    def until(self, condition: Callable[[], object], otherwise: str) -> None:
        """Runs the event loop until `condition` holds; fails with `otherwise`."""
        end = time.monotonic() + LONGEST_S
        while not condition():
            self.application.processEvents()
            time.sleep(0.002)
            if time.monotonic() > end:
                raise TimeoutError(otherwise)

    def wait(self, seconds: float) -> None:
        """At least so long, and for some rounds of the event loop."""
        end, rounds = time.monotonic() + seconds, itertools.count(1)
        self.until(lambda: next(rounds) > ROUNDS and time.monotonic() > end, "")

    # --- what a reader does -----------------------------------------------------------------------
    def use_model(self, model: Path) -> None:
        self.desktop.tasks.write(lambda: self.desktop.workspace.load_model(model))
        self.wait_for_model()

    def wait_for_model(self) -> None:
        self.until(lambda: self.window.status.loaded or self.failures, "the model did not load")
        assert not self.failures, self.failures

    def add(self, *files: Path) -> None:
        """As dropped on the window; waits until they are in the library."""
        names = {file.name for file in files}
        self.window.library.importing.add(files)
        self.until(lambda: names <= set(self.window.library.rows.names().values()), "no import")

    def new_conversation(self) -> ConversationId:
        before = self.window.controller.on_screen
        self.window.new_conversation()
        self.until(lambda: self.window.controller.on_screen not in (None, before), "no new conversation")
        return self.window.controller.on_screen

    def choose(self, conversation: ConversationId) -> None:
        self.window.conversations.select(conversation)
        self.until(lambda: self.window.controller.on_screen == conversation, "not shown")

    def ask(self, question: str) -> None:
        """Types a question and sends it; does not wait."""
        self.window.chat.composer.editor.setPlainText(question)
        self.window.chat.composer.editor.send.emit()

    def documents(self) -> tuple[int, ...]:
        """Attached to the conversation on the screen."""
        return self.window.controller.conversation.document_ids

    def shown_text(self) -> str:
        """Text of the newest answer on the screen."""
        answers = self.window.chat.transcript.answers
        return answers[-1].text() if answers else ""

    def answered(self, conversation: ConversationId) -> list[Message]:
        return [message for message in self.done if message.conversation == conversation]

    def quit(self) -> None:
        """Closes the window and waits until everything is saved."""
        if not self.ended:
            self.window.close()
            self.until(lambda: self.ended, "the window did not end")
            for left in (self.window, self.desktop):
                left.deleteLater()
            self.application.sendPostedEvents(None, QEvent.Type.DeferredDelete)

    def _end(self) -> None:
        self.ended = True

    def _note_done(self, event: TurnDone) -> None:
        self.done.append(event.message)
