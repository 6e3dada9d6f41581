"""Whether pages are mapped or read into memory: whichever has been faster on this machine."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from pathlib import Path

_SMALLEST = 8 << 20  # smaller restores measure the way to the threads and back
_AGAIN = 16  # restores after which the slower way gets another try
_TRIAL = 32 << 20  # on one that is no larger: reading 184 MB into fresh memory took 450 ms where mapping took 15
FILE = "ways.json"


@dataclass
class Ways:
    """Bytes per second of verified restores, the best seen of each way; 0: not measured yet.

    The best and not the mean: what had to come from the disk says nothing about the way it came.
    """

    path: Path
    mapped: float = 0.0
    read: float = 0.0
    restores: int = 0
    _changed: bool = field(default=False, repr=False)

    @staticmethod
    def load(path: Path) -> Ways:
        """A missing or damaged file means that nothing is known yet."""
        try:
            known = json.loads(path.read_text())
            return Ways(path, float(known["mapped"]), float(known["read"]))
        except (OSError, ValueError, KeyError, TypeError):
            return Ways(path)

    def save(self) -> None:
        if self._changed:
            with contextlib.suppress(OSError):
                self.path.write_text(json.dumps({"mapped": self.mapped, "read": self.read}))

    def choose_map(self, size: int) -> bool:
        """For a restore of that many bytes. Mapping until both are known, then the faster; at times the other one."""
        trial = _SMALLEST <= size <= _TRIAL
        if not self.mapped or not self.read:
            return not self.mapped or not trial
        self.restores += trial
        return (self.mapped >= self.read) != (trial and self.restores % _AGAIN == 0)

    def saw(self, mapped: bool, size: int, seconds: float) -> None:
        if size < _SMALLEST or seconds <= 0:
            return
        self._changed = True
        if mapped:
            self.mapped = max(self.mapped, size / seconds)
        else:
            self.read = max(self.read, size / seconds)
