"""An object that is made on a thread of its own while the window is shown already."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Late:
    """Stands for what `make` returns: the first use of an attribute waits until it is there.

    Use it from worker threads only until `is_ready`; afterwards from anywhere. What `make` raised is raised
    again at every use.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: Any = None
        self._error: Exception | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="late", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    @property
    def has_begun(self) -> bool:
        return self._thread.ident is not None

    @property
    def is_ready(self) -> bool:
        return self._done.is_set()

    def _run(self) -> None:
        try:
            self._made = self._make()
        except Exception as error:
            self._error = error
        self._done.set()

    def __getattr__(self, name: str) -> Any:
        self._done.wait()
        if self._error is not None:
            raise self._error
        return getattr(self._made, name)
