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
    """Hidden while nothing is fetched. Signals: failed (argument: UserError), done (argument: path), running (whether
    something is fetched)."""

    failed = Signal(object)
    done = Signal(object)
    running = Signal(bool)

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._job: events.JobId | None = None
        self._ended: events.JobId | None = None
        self._wanted = ""  # by the reader, here
        self._clock = QElapsedTimer()
        self._begun_at: int | None = None  # bytes that were there already
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
        self._job, self._wanted = None, what
        self._words.setText("Connecting")
        self._bar.setRange(0, 0)
        self.show()
        self.running.emit(True)
        self._services.tasks.write(lambda: workspace.fetches.submit(what), self._started, self._refused)

    def stop(self) -> None:
        job, workspace = self._job, self._services.workspace
        if job is not None:
            self._services.tasks.read(lambda: workspace.fetches.cancel(job))

    def _started(self, job: events.JobId) -> None:
        if job != self._ended:  # else its end was told before its beginning
            self._follow(job)

    def _follow(self, job: events.JobId) -> None:
        self._job, self._begun_at = job, None
        self.running.emit(True)

    def _is_own(self, event: events.FetchDone | events.FetchFailed) -> bool:
        return event.job == self._job or (self._job is None and event.what == self._wanted)

    def _refused(self, error: Exception) -> None:
        self._end()
        self.failed.emit(error)

    def _end(self, job: events.JobId | None = None) -> None:
        self.hide()
        self._job, self._ended, self._wanted = None, job, ""
        self.running.emit(False)

    def _progress(self, event: events.FetchProgress) -> None:
        """One download is followed to its end; another that runs beside it is shown behind it."""
        if self._job is None:
            self._follow(event.job)
        if event.job != self._job:
            return
        if self._begun_at is None:
            self._begun_at = event.done
            self._clock.start()
        self.show()
        elapsed = self._clock.elapsed() / 1000
        speed = (event.done - self._begun_at) / elapsed if elapsed > 0.5 else 0.0
        self._words.setText(fetch_words(event, speed))
        self._bar.setRange(0, 1000 if event.total else 0)
        self._bar.setValue(event.done * 1000 // event.total if event.total else 0)

    def _done(self, event: events.FetchDone) -> None:
        if self._is_own(event):
            self._end(event.job)
            self.done.emit(event.path)

    def _failed(self, event: events.FetchFailed) -> None:
        if self._is_own(event):
            self._end(event.job)
            if event.error is not None:
                self.failed.emit(event.error)
