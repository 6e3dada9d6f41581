"""The status bar: model and speed, what runs, memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QStatusBar, QToolButton, QWidget

from app.chat.words import speed_words
from app.core.events import TurnDone
from app.core.records import Message, TurnReport
from app.services import Services
from app.widgets.elided import ElidedLabel
from app.widgets.format import count, duration, shortened
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
NAME_LENGTHS = (40, 24, 16)  # characters of a file's name, where there is less and less room


def free_memory() -> int:
    """Bytes that programs could still get."""
    import psutil

    return int(psutil.virtual_memory().available)


@dataclass(frozen=True)
class Activity:
    """What runs beside the chat, in shorter and shorter words. `part` 0 to 1, None for no bar."""

    forms: tuple[str, ...] = ("",)
    job: object = None
    part: float | None = None
    paused: bool = False

    @property
    def words(self) -> str:
        return self.forms[0]


def reading_words(event: DocumentProgress) -> str:
    """`reading gnuplot.pdf ahead: 1,200 of 6,400 tokens, 12 s left, not saved: The disk is full.`"""
    return reading_forms(event)[0]


def reading_forms(event: DocumentProgress) -> tuple[str, ...]:
    left = f", {duration(max(1.0, event.seconds_left))} left" if event.seconds_left else ""
    lost, briefly = (f", not saved: {event.not_saved}", ", not saved") if event.not_saved else ("", "")
    done = f"{event.done * 100 // max(1, event.total)} %{left}{briefly}"
    return (
        f"reading {event.label} ahead: {count(event.done)} of {count(event.total)} tokens{left}{lost}",
        *(f"reading {shortened(event.label, most)} ahead: {done}" for most in NAME_LENGTHS),
        f"reading ahead: {done}",
        done,
    )


def paused_forms(event: DocumentStopped) -> tuple[str, ...]:
    """`reading gnuplot.pdf ahead paused at 80 %`."""
    at = f"paused at {event.done * 100 // max(1, event.total)} %"
    return (*tuple(f"reading {shortened(event.label, most)} ahead {at}" for most in (1000, *NAME_LENGTHS)), at)


def import_forms(words: str) -> tuple[str, ...]:
    """`words`: of a file and where its import is, as LibraryPanel.activity tells them."""
    name, colon, rest = words.partition(": ")
    return (words, *(f"{shortened(name, most)}{colon}{rest}" for most in NAME_LENGTHS), rest or words)


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
        self._stats: EngineStats | None = None
        self._shown: ConversationId | None = None
        self._report: TurnReport | None = None
        self._import = Activity()
        self._reading = Activity()
        self._pausing = False
        self._model_forms: tuple[str, ...] = ("No model",)
        self._model = QToolButton(text=" No model", iconSize=QSize(16, 16))
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

    def _show_loading(self, event: ModelLoading) -> None:
        name = readable_name(event.path)
        self._say_model(f"Loading {name}: {event.stage}", f"Loading {name}", f"Loading {shortened(name, 30)}")

    def _show_failed(self, event: ModelFailed) -> None:
        self._loaded = self._services.workspace.loaded  # the one before stays where another failed
        self._show_model() if self._loaded else self._say_model("No model")

    def _show_loaded(self, event: ModelLoaded) -> None:
        self._loaded = event
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
