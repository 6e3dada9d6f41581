"""Workspace events, which arrive on worker threads, as Qt signals on the main thread, 30 times a second.

Text of one answer that arrives between two beats is joined; of progress only the newest is kept.
Order within a turn or job is kept.
"""

from __future__ import annotations

import threading
from dataclasses import replace

from PySide6.QtCore import QElapsedTimer, QObject, Qt, QTimer, Signal, Slot

from app.core import events as core
from engine import messages as engine

BEAT_MS = 33

_SIGNALS: dict[type, str] = {
    core.TurnStarted: "turn_started",
    core.TurnPhase: "turn_phase",
    core.TurnText: "turn_text",
    core.TurnDone: "turn_done",
    core.TurnError: "turn_error",
    core.TurnWithdrawn: "turn_withdrawn",
    core.TurnMoved: "turn_moved",
    engine.TurnRestored: "turn_restored",
    core.AnswerChanged: "answer_changed",
    core.ConversationChanged: "conversation_changed",
    core.ConversationPurged: "conversation_purged",
    core.ImportQueued: "import_queued",
    core.ImportProgress: "import_progress",
    core.ImportDone: "import_done",
    core.ImportFailed: "import_failed",
    core.ImportCancelled: "import_cancelled",
    core.IndexingEnded: "indexing_ended",
    core.FetchProgress: "fetch_progress",
    core.FetchDone: "fetch_done",
    core.FetchFailed: "fetch_failed",
    core.Notice: "notice",
    engine.EngineNotice: "notice",
    engine.ModelLoading: "model_loading",
    engine.ModelLoaded: "model_loaded",
    engine.ModelFailed: "model_failed",
    engine.DocumentProgress: "document_progress",
    engine.DocumentRead: "document_read",
    engine.DocumentStopped: "document_stopped",
    engine.StateReport: "state_report",
    engine.EngineStats: "stats",
}


class EngineBridge(QObject):
    """`post` may be called from any thread and returns at once; every signal carries the event itself.

    Signals: one per event type, named after it (see `_SIGNALS`); `notice` carries Notice and EngineNotice.
    Events without a signal belong to a turn that reports by other means and are dropped.
    """

    turn_started = Signal(object)
    turn_phase = Signal(object)
    turn_text = Signal(object)
    turn_done = Signal(object)
    turn_error = Signal(object)
    turn_withdrawn = Signal(object)
    turn_moved = Signal(object)
    turn_restored = Signal(object)
    answer_changed = Signal(object)
    conversation_changed = Signal(object)
    conversation_purged = Signal(object)
    import_queued = Signal(object)
    import_progress = Signal(object)
    import_done = Signal(object)
    import_failed = Signal(object)
    import_cancelled = Signal(object)
    indexing_ended = Signal(object)
    fetch_progress = Signal(object)
    fetch_done = Signal(object)
    fetch_failed = Signal(object)
    notice = Signal(object)
    model_loading = Signal(object)
    model_loaded = Signal(object)
    model_failed = Signal(object)
    document_progress = Signal(object)
    document_read = Signal(object)
    document_stopped = Signal(object)
    state_report = Signal(object)
    stats = Signal(object)
    _woken = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lock = threading.Lock()
        self._pending: list[object] = []
        self._awake = False
        self._closed = False
        self._since = QElapsedTimer()
        self._since.start()
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._flush)
        self._woken.connect(self._schedule, Qt.ConnectionType.QueuedConnection)

    def post(self, event: object) -> None:
        with self._lock:
            if self._closed:
                return
            self._pending.append(event)
            wake, self._awake = not self._awake, True
            if wake:
                self._woken.emit()  # queued, so it returns at once; under the lock, so not after `close`

    def close(self) -> None:
        """Later events are dropped; from here on the bridge may be deleted."""
        with self._lock:
            self._closed = True

    @Slot()
    def _schedule(self) -> None:
        self._timer.start(max(0, BEAT_MS - int(self._since.elapsed())))

    @Slot()
    def _flush(self) -> None:
        with self._lock:
            events, self._pending, self._awake = self._pending, [], False
        for event in coalesce(events):
            name = _SIGNALS.get(type(event))
            if name is not None:
                getattr(self, name).emit(event)
        self._since.restart()


def coalesce(events: list[object]) -> list[object]:
    """The same story in fewer events: joined text, newest progress."""
    out: list[object] = []
    places: dict[object, int] = {}
    for event in events:
        key = _merge_key(event)
        if key is None:
            places.clear()
            out.append(event)
        elif key in places:
            out[places[key]] = _merged(out[places[key]], event)
        else:
            places[key] = len(out)
            out.append(event)
    return out


def _merge_key(event: object) -> object | None:
    match event:
        case core.TurnText():
            return core.TurnText, event.turn, event.part
        case core.TurnPhase():
            return core.TurnPhase, event.turn
        case core.ImportProgress() | core.FetchProgress():
            return type(event), event.job
        case engine.DocumentProgress():
            return type(event), event.document
        case engine.EngineStats():
            return engine.EngineStats
        case engine.TokenDelta() | engine.PrefillProgress():
            return type(event), event.turn
    return None


def _merged(earlier: object, later: object) -> object:
    if isinstance(earlier, core.TurnText) and isinstance(later, core.TurnText):
        return replace(later, delta=earlier.delta + later.delta)
    return later
