"""What commands print: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from typing import Any, TextIO

from app.cli.notices import of_command
from app.core.errors import UserError

REDRAW_S = 0.1


@dataclass
class Console:
    """`as_json`: exactly one object on standard output, nothing else there."""

    as_json: bool
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)
    _drawn: float = 0.0
    _width: int = 0

    def result(self, data: dict[str, Any]) -> None:
        if self.as_json:
            self.out.write(json.dumps(data, ensure_ascii=False, default=str) + "\n")
            self.out.flush()

    def text(self, text: str = "", end: str = "\n") -> None:
        """For readers; silent with --json."""
        if not self.as_json:
            self.clear()
            self.out.write(text + end)
            self.out.flush()

    def error(self, error: UserError) -> None:
        self.clear()
        told = {**error.to_json(), "next": of_command(error.next)}
        if self.as_json:
            self.result({"error": told})
        else:
            self.err.write("\n".join(part for part in (error.what, error.why, told["next"]) if part) + "\n")

    def note(self, text: str) -> None:
        self.clear()
        self.err.write(text + "\n")
        self.err.flush()

    def progress(self, text: str) -> None:
        """Replaces the progress shown before; only a terminal shows any."""
        now = time.monotonic()
        if now - self._drawn < REDRAW_S or not self.err.isatty():
            return
        self._drawn = now
        self.err.write("\r" + text.ljust(self._width))
        self._width = len(text)
        self.err.flush()

    def clear(self) -> None:
        """Ends a progress line."""
        if self._width:
            self.err.write("\r" + " " * self._width + "\r")
            self.err.flush()
            self._width = 0
