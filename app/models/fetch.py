"""A download with its progress: in the model manager and where a first start offers the starter model."""

from __future__ import annotations

from PySide6.QtCore import QElapsedTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QVBoxLayout, QWidget

from app.core import events
from app.services import Services
from app.widgets.cards import button, label
from app.widgets.format import about
from rag.sizes import size_text

_NAMES = {
    "starter": "Downloading the starter model",
    "search by meaning": "Downloading the small model that searches by meaning",
}


def fetch_words(event: events.FetchProgress, per_second: float = 0.0) -> str:
    """`Downloading the starter model: 41.2 MB of 98.3 MB, 5.1 MB/s, ~11 s left`."""
    name = _NAMES.get(event.what, event.what)
    if not event.total:
        return f"{name}: {size_text(event.done)}" if event.done else f"{name}: connecting"
    if event.done >= event.total:
        return f"{name}: verifying"
    parts = [f"{name}: {size_text(event.done)} of {size_text(event.total)}"]
    if per_second > 0:
        parts += [f"{size_text(per_second)}/s", f"{about((event.total - event.done) / per_second)} left"]
    return ", ".join(parts)


class FetchView(QWidget):
    """Hidden while nothing is fetched. Signals: failed (argument: UserError), done (argument: path)."""

    failed = Signal(object)
    done = Signal(object)

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._job: events.JobId | None = None
        self._clock = QElapsedTimer()
        self._begun_at = 0
        self._words = label("", "muted")
        self._bar = QProgressBar(textVisible=False)
        self._bar.setAccessibleName("Download progress")
        row = QHBoxLayout()
        row.addWidget(self._words, 1)
        row.addWidget(button("Stop", self.stop))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 4)
        layout.addLayout(row)
        layout.addWidget(self._bar)
        self.hide()
        signals = services.events
        signals.fetch_progress.connect(self._progress)
        signals.fetch_done.connect(self._done)
        signals.fetch_failed.connect(self._failed)

    def start(self, what: str) -> None:
        workspace = self._services.workspace
        self._words.setText("Connecting")
        self._bar.setRange(0, 0)
        self.show()
        self._services.tasks.write(lambda: workspace.fetches.submit(what), self._started, self._refused)

    def stop(self) -> None:
        job, workspace = self._job, self._services.workspace
        if job is not None:
            self._services.tasks.read(lambda: workspace.fetches.cancel(job))

    def _started(self, job: events.JobId) -> None:
        self._job = job

    def _refused(self, error: Exception) -> None:
        self.hide()
        self.failed.emit(error)

    def _progress(self, event: events.FetchProgress) -> None:
        if event.job != self._job:
            self._job, self._begun_at = event.job, event.done
            self._clock.start()
        self.show()
        elapsed = self._clock.elapsed() / 1000 if self._clock.isValid() else 0.0
        speed = (event.done - self._begun_at) / elapsed if elapsed > 0.5 else 0.0
        self._words.setText(fetch_words(event, speed))
        self._bar.setRange(0, 1000 if event.total else 0)
        self._bar.setValue(event.done * 1000 // event.total if event.total else 0)

    def _done(self, event: events.FetchDone) -> None:
        self.hide()
        self._job = None
        self.done.emit(event.path)

    def _failed(self, event: events.FetchFailed) -> None:
        self.hide()
        self._job = None
        if event.error is not None:
            self.failed.emit(event.error)
