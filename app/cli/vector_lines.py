"""What is said while vectors are made: that they are, how many, about how long; also where there is no terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from app.cli.console import Console
from rag.sizes import plural
from rag.types import DocumentId, IngestProgress

FIRST_S, EVERY_S = 5.0, 60.0  # a first guess of the time; then a line now and again where none is redrawn


@dataclass
class VectorLines:
    """Follows the progress of `missing` windows; `shown` draws it on a terminal."""

    console: Console
    missing: int
    documents: int
    shown: Callable[[IngestProgress], None]
    clock: Callable[[], float] = time.monotonic
    _begun: dict[DocumentId | None, int] = field(default_factory=dict)
    _made: dict[DocumentId | None, int] = field(default_factory=dict)
    _started: float = 0.0
    _next: float = 0.0

    def __call__(self, progress: IngestProgress) -> None:
        if progress.phase == "vectors":
            self._follow(progress)
        self.shown(progress)

    def _follow(self, progress: IngestProgress) -> None:
        now = self.clock()
        if not self._begun:
            self._started, self._next = now, now + FIRST_S
            self.console.note(
                f"Making vectors, to find by meaning too: {plural(self.missing, 'passage')} of"
                f" {plural(self.documents, 'document')}. Words are searched already: Ctrl-C loses nothing, 'pagekeep"
                " index vectors' goes on; --words-only leaves them out."
            )
        self._begun.setdefault(progress.document_id, progress.done)
        self._made[progress.document_id] = progress.done
        if now >= self._next and self.made:
            self._next = now + EVERY_S
            self.console.note(f"  {self.made:,} of {self.missing:,} passages, about {self._left(now)} left")

    @property
    def made(self) -> int:
        return sum(done - self._begun[document] for document, done in self._made.items())

    def _left(self, now: float) -> str:
        seconds = (now - self._started) / self.made * max(0, self.missing - self.made)
        return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
