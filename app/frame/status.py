"""The status bar: model and speed, what runs, memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QStatusBar, QToolButton, QWidget

from app.chat.words import speed_words
from app.core.events import TurnDone
from app.core.records import Message, TurnReport
from app.frame.activity import Activity, import_forms, paused_forms, reading_forms
from app.services import Services
from app.widgets.elided import ElidedLabel
from app.widgets.format import shortened
from engine.messages import (
    ConversationId,
    DocumentProgress,
    DocumentRead,
    DocumentStopped,
    EngineStats,
    ModelFailed,
    ModelLoaded,
    ModelLoading,
)
from engine.models.naming import readable_name
from rag.sizes import size_text

MEMORY_EVERY_MS = 5000
SPACES = 100  # margins and gaps of the row
LEAST_ACTIVITY = 240
LONGEST_MODEL = 24
MODEL_FRAME = 36  # icon and margins of its button


def free_memory() -> int:
    """Bytes that programs could still get."""
    import psutil

    return int(psutil.virtual_memory().available)


class StatusBar(QStatusBar):
    """Signals: models_wanted; cancel_wanted (argument: the import that is shown); stop_reading_wanted,
    read_on_wanted: reading ahead is to pause, and to go on.
    """

    models_wanted = Signal()
    stop_reading_wanted = Signal()
    read_on_wanted = Signal()
    cancel_wanted = Signal(object)

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._loaded: ModelLoaded | None = None
        self.loading: ModelLoading | None = None
        self._stats: EngineStats | None = None
        self._shown: ConversationId | None = None
        self._report: TurnReport | None = None
        self._import = Activity()
        self._reading = Activity()
        self._pausing = False
        self._model_forms: tuple[str, ...] = ("Starting",)
        self._model = QToolButton(text=" Starting", iconSize=QSize(16, 16))
        self._model.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._model.setToolTip("Models (Ctrl+M)")
        self._model.clicked.connect(self.models_wanted)
        self._activity = ElidedLabel("", Qt.TextElideMode.ElideMiddle)
        self._activity.setProperty("role", "muted")
        self._progress = QProgressBar(textVisible=False)
        self._progress.setFixedWidth(120)
        self._progress.setAccessibleName("Progress")
        self._cancel = QToolButton(iconSize=QSize(14, 14))
        self._cancel.clicked.connect(self._stop)
        self._memory = ElidedLabel(alignment=Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._memory.setProperty("role", "muted")
        self._free = 0
        self._lay_out()
        self._connect()
        self._draw()
        self._show()

    def show_import(self, words: str, job: object) -> None:
        """No words: nothing is imported."""
        self._import = Activity(import_forms(words), job)
        self._show()

    def _show_reading(self, event: DocumentProgress) -> None:
        self._reading = Activity(reading_forms(event), part=event.done / max(1, event.total))
        self._show()

    def _end_reading(self, event: DocumentRead | DocumentStopped) -> None:
        """Stopped by the reader it can go on; what stopped it otherwise is told elsewhere."""
        self._reading = Activity()
        if isinstance(event, DocumentStopped) and self._pausing:
            self._reading = Activity(paused_forms(event), part=event.done / max(1, event.total), paused=True)
        self._pausing = False
        self._show()

    def _show(self) -> None:
        """Imports go first: reading ahead is what happens when nothing else does."""
        shown, what = (self._import, "importing") if self._import.words else (self._reading, "reading ahead")
        self._activity.show_forms(shown.forms)
        self._activity.setToolTip(shown.words)
        self._cancel.setVisible(bool(shown.words))
        name = "Go on reading ahead" if shown.paused else f"Stop {what}"
        self._cancel.setIcon(self._services.theme.icon("continue" if shown.paused else "close"))
        self._cancel.setToolTip(name)
        self._cancel.setAccessibleName(name)
        self._progress.setVisible(shown.part is not None)
        if shown.part is not None:
            self._progress.setRange(0, 1000)
            self._progress.setValue(int(shown.part * 1000))
        self._make_room()

    def _make_room(self) -> None:
        """Memory makes room for what runs, where there is not enough for both; the model says less."""
        parts = [self._progress, self._cancel] if self._activity.text() else []
        fixed = SPACES + sum(part.sizeHint().width() for part in parts if not part.isHidden())
        running = self._activity.sizeHint().width() if self._activity.text() else 0
        free = self.width() - fixed
        whole = self._wide(self._model_forms[0]) + running + self._memory.sizeHint().width() <= free
        self._memory.setVisible(whole or not running)
        beside = min(running, LEAST_ACTIVITY) if running else min(self._memory.sizeHint().width(), LEAST_ACTIVITY)
        fitting = (form for form in self._model_forms if self._wide(form) + beside <= free)
        shown = next(fitting, shortened(self._model_forms[-1], LONGEST_MODEL))
        self._model.setText(f" {shown}")

    def _wide(self, model: str) -> int:
        """Of the model's button with these words."""
        return self._model.fontMetrics().horizontalAdvance(f" {model}") + MODEL_FRAME

    def _say_model(self, *forms: str) -> None:
        self._model_forms = forms
        self._model.setToolTip(f"{forms[0]}\nModels (Ctrl+M)")
        self._model.setAccessibleName(f"Model: {forms[0]}")
        self._make_room()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._make_room()

    def _stop(self) -> None:
        if self._import.words:
            self.cancel_wanted.emit(self._import.job)
        elif self._reading.paused:
            self._reading = Activity()
            self._show()
            self.read_on_wanted.emit()
        else:
            self._pausing = True
            self.stop_reading_wanted.emit()

    @property
    def loaded(self) -> ModelLoaded | None:
        return self._loaded

    def show_chosen(self, model: Path | None) -> None:
        """The model that will be loaded, before it says so itself; None: there is none."""
        if model is None:
            self._say_model("No model")
        else:
            self._show_loading(ModelLoading(model, "starting"))

    def _show_loading(self, event: ModelLoading) -> None:
        self.loading = event
        name = readable_name(event.path)
        self._say_model(f"Loading {name}: {event.stage}", f"Loading {name}", f"Loading {shortened(name, 30)}")

    def _show_failed(self, event: ModelFailed) -> None:
        self.loading = None
        self._loaded = self._services.workspace.loaded  # the one before stays where another failed
        self._show_model() if self._loaded else self._say_model("No model")

    def _show_loaded(self, event: ModelLoaded) -> None:
        self._loaded, self.loading = event, None
        self._show_model()
        self._show_memory()

    def _show_stats(self, stats: EngineStats) -> None:
        self._stats = stats
        self._show_memory()

    def show_answers(self, conversation: ConversationId, messages: Sequence[Message]) -> None:
        """Of the conversation on the screen: the speed is that of its last answer, as it stands below it."""
        reports = [message.report for message in messages if message.report is not None]
        self._shown, self._report = conversation, reports[-1] if reports else None
        self._show_model()

    def _show_answer(self, event: TurnDone) -> None:
        if event.conversation == self._shown and event.message.report is not None:
            self._report = event.message.report
            self._show_model()

    def _show_model(self) -> None:
        if self._loaded is None:
            return
        name, speed = self._loaded.name, ""
        if self._report is not None and self._report.model == name:
            speed = speed_words(self._report)
        forms = ((name, *self._loaded.devices[:2], speed), (name, speed), (name,), (shortened(name, 30),))
        self._say_model(*("  ·  ".join(filter(None, form)) for form in forms))

    def _show_memory(self) -> None:
        parts = []
        if self._stats is not None:
            parts = [
                f"weights {size_text(self._stats.weights_bytes)}",
                f"state {size_text(self._stats.kv_memory_bytes)}",
            ]
            mapped = f"State straight from files: {size_text(self._stats.kv_mapped_bytes)}\n"
            self._memory.setToolTip(f"{mapped}State on disk: {size_text(self._stats.kv_disk_bytes)}")
        elif self._loaded is not None:
            parts = [f"weights {size_text(self._loaded.weights_bytes)}"]
        if self._free:
            parts.append(f"{size_text(self._free)} of memory free")
        joined = tuple("  ·  ".join(parts[number:]) for number in range(len(parts)))
        self._memory.show_forms(joined or ("",))
        self._make_room()

    def _measure(self) -> None:
        self._services.tasks.read(free_memory, self._show_free)

    def _show_free(self, free: int) -> None:
        self._free = free
        self._show_memory()

    def _lay_out(self) -> None:
        self.setSizeGripEnabled(False)
        row = QWidget()
        layout = QHBoxLayout(row)
        layout.setContentsMargins(6, 1, 12, 1)
        layout.setSpacing(8)
        layout.addWidget(self._model)
        layout.addSpacing(16)
        layout.addWidget(self._activity, 1)
        layout.addWidget(self._progress)
        layout.addWidget(self._cancel)
        layout.addSpacing(16)
        layout.addWidget(self._memory)
        self._activity.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.addWidget(row, 1)

    def _connect(self) -> None:
        signals = self._services.events
        signals.model_loading.connect(self._show_loading)
        signals.model_loaded.connect(self._show_loaded)
        signals.model_failed.connect(self._show_failed)
        signals.stats.connect(self._show_stats)
        signals.turn_done.connect(self._show_answer)
        signals.document_progress.connect(self._show_reading)
        for ended in (signals.document_read, signals.document_stopped):
            ended.connect(self._end_reading)
        self._services.theme.changed.connect(self._draw)
        timer = QTimer(self, interval=MEMORY_EVERY_MS)
        timer.timeout.connect(self._measure)
        timer.start()
        QTimer.singleShot(600, self, self._measure)

    def _draw(self) -> None:
        self._model.setIcon(self._services.theme.icon("model"))
        self._show()
