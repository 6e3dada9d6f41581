"""The window's composition: application, theme, services, window; and the way out.

Start: the window is shown before any database, document or model is opened; the rest follows the first paint.
End: the window is hidden first; then turns stop, state is saved and files are closed, on a thread, within a
bounded time, while the event loop still runs.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from PySide6.QtCore import QMessageLogContext, QObject, QTimer, QtMsgType, Signal, qInstallMessageHandler
from PySide6.QtWidgets import QApplication, QWidget

from app.core.paths import Paths
from app.engine_bridge import EngineBridge
from app.frame.signals import SignalWatch
from app.frame.state import WindowState, load_state, save_state
from app.late import Late
from app.services import Services
from app.tasks import Tasks
from app.widgets.theme import Theme
from app.widgets.toast import Toasts
from app.widgets.watchdog import Watchdog
from app.window import Window

CLOSE_SECONDS = 20.0
log = logging.getLogger("pagekeep.window")
_LEVELS = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}


class Desktop(QObject):
    """One window with its services.

    Signals:
        ended: everything is saved and closed.
    """

    ended = Signal()
    crashed = Signal(str)
    _closed = Signal()

    def __init__(self, application: QApplication, paths: Paths) -> None:
        super().__init__()
        self._state_file = paths.state / "window.json"
        state = load_state(self._state_file)
        self.bridge = EngineBridge(self)
        self.tasks = Tasks(self)
        self.theme = Theme(application, state.theme)
        self.workspace: Any = Late(lambda: _workspace(paths, self.bridge.post))
        host = QWidget()
        self.toasts = Toasts(host)
        self.services = Services(self.workspace, self.tasks, self.bridge, self.theme, self.toasts)
        self.window = Window(self.services, state, host)
        self.window.closing.connect(self.close)
        self.window.moved.connect(self._keep_state)
        self._closed.connect(self.ended)
        self.crashed.connect(self._tell_crash)
        self._is_closing = False
        self._saving = threading.Lock()

    def show(self) -> None:
        self.window.show()
        QTimer.singleShot(0, self._start)

    def _start(self) -> None:
        self.workspace.begin()
        self.window.start()

    def _keep_state(self) -> None:
        """Where the reader is now, should the process end without closing the window."""
        state = self.window.state()
        self.tasks.write(lambda: self._save(state))

    def _save(self, state: WindowState, last: bool = False) -> None:
        """What was kept on the way never replaces what the closing window left."""
        with self._saving:
            if last or not self._is_closing:
                save_state(self._state_file, state)

    def close(self) -> None:
        """Returns at once; `ended` follows."""
        if self._is_closing:
            return
        self._is_closing = True
        state = self.window.state()
        threading.Thread(target=self._finish, args=(state,), name="closing").start()

    def _finish(self, state: WindowState) -> None:
        begun = time.monotonic()
        self._save(state, last=True)
        self.tasks.close()
        try:
            if self.workspace.has_begun:
                self.workspace.close(CLOSE_SECONDS)
        except Exception:
            log.exception("closing failed")
        self.bridge.close()
        log.info("closed in %.2f s", time.monotonic() - begun)
        self._closed.emit()

    def _tell_crash(self, text: str) -> None:
        self.toasts.say(f"Something went wrong inside Pagekeep: {text} The log has the details.")


def _workspace(paths: Paths, on_event: Callable[[object], None]) -> object:
    """Its imports (databases, arrays, documents) take longer than the window."""
    from app.core.workspace import Workspace

    return Workspace(paths, on_event, read_ahead=True)


def run() -> int:
    """Shows the window and returns its exit status when it was closed."""
    started = time.perf_counter()
    application = QApplication.instance() or QApplication(sys.argv[:1])
    application.setApplicationName("Pagekeep")
    application.setApplicationDisplayName("Pagekeep")
    application.setDesktopFileName("pagekeep")
    application.setQuitOnLastWindowClosed(False)
    qInstallMessageHandler(_log_qt_message)
    desktop = Desktop(application, Paths.default().create())
    previous = sys.excepthook
    sys.excepthook = _excepthook(desktop, previous)
    desktop.ended.connect(application.quit)
    signals = SignalWatch(desktop.window.close, desktop) if os.name == "posix" else None
    desktop.show()
    log.info("window shown in %.0f ms", (time.perf_counter() - started) * 1000)
    watchdog = _watchdog()
    status = application.exec()
    sys.excepthook = previous
    if signals is not None:
        signals.stop()
    if watchdog is not None:
        for stall in watchdog.stop():
            log.warning("main thread was away for %.0f ms at\n%s", stall.seconds * 1000, stall.where)
    return int(status)


def _watchdog() -> Watchdog | None:
    if not os.environ.get("PAGEKEEP_WATCHDOG"):
        return None
    return Watchdog().start()


Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]


def _excepthook(desktop: Desktop, previous: Hook) -> Hook:
    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        previous(kind, error, traceback)
        if not issubclass(kind, KeyboardInterrupt):
            desktop.crashed.emit(f"{kind.__name__}.")

    return hook


def _log_qt_message(kind: QtMsgType, context: QMessageLogContext, text: str) -> None:
    logging.getLogger("qt").log(_LEVELS.get(kind, logging.INFO), "%s: %s", context.category or "qt", text)
