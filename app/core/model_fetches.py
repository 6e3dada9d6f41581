"""Downloads of models, one after another, with progress as events."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from app.core.catalog import ModelCatalog
from app.core.errors import Cancelled, as_user_error
from app.core.events import FetchDone, FetchFailed, FetchProgress, JobId, WorkspaceEvent
from app.core.jobs import Job, JobThread


class ModelFetches:
    """Its thread also writes down which model loaded: `remember`."""

    def __init__(
        self, catalog: ModelCatalog, emit: Callable[[WorkspaceEvent], None], load: Callable[[Path], None]
    ) -> None:
        self._catalog = catalog
        self._emit = emit
        self._load = load
        self._jobs = JobThread("fetch")

    def submit(self, what: str = "starter", load: bool = True) -> JobId:
        """Returns at once; FetchProgress* -> FetchDone | FetchFailed. "starter" or owner/repo/file.gguf."""
        return self._jobs.submit(lambda job: self._fetch(job, what, load))

    def remember(self, path: Path) -> None:
        self._jobs.submit(lambda job: self._catalog.remember(path))

    def cancel(self, job: JobId) -> None:
        self._jobs.cancel(job)

    def close(self, timeout: float) -> None:
        self._jobs.close(timeout)

    def _fetch(self, job: Job, what: str, load: bool) -> None:
        try:
            path = self._catalog.fetch(
                what, lambda done, total: self._emit(FetchProgress(job.id, what, done, total)), job.cancelled
            )
        except Cancelled:
            self._emit(FetchFailed(job.id, what, None))
        except Exception as error:
            self._emit(FetchFailed(job.id, what, as_user_error(error)))
        else:
            self._emit(FetchDone(job.id, what, path))
            if load:
                self._load(path)
