"""Rates of this machine, measured as the engine works, and the clock of one turn."""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine.kv.value import Costs
from engine.messages import TurnTimings

_KEEP = 0.8  # weight of the past in the running mean: a change of load shows after about five steps
_SMALLEST_READ = 8 << 20


def now_ms() -> float:
    return time.perf_counter() * 1e3


@dataclass
class Rates:
    """Running means in tokens per second; 0 where nothing was measured yet. Kept across runs in `path`."""

    path: Path | None = None
    prefill: float = 0.0
    decode: float = 0.0
    read: float = 0.0  # bytes per second of verified restores
    _stepped: float = field(default=0.0, repr=False)

    @staticmethod
    def load(path: Path | None) -> Rates:
        """A missing or damaged file means that nothing is known yet."""
        if path is None or not path.exists():
            return Rates(path)
        try:
            known = json.loads(path.read_text())
            return Rates(path, float(known["prefill"]), float(known["decode"]), float(known.get("read", 0.0)))
        except (OSError, ValueError, KeyError, TypeError):
            return Rates(path)

    def save(self) -> None:
        if self.path is None or not self.prefill:
            return
        fresh = self.path.with_suffix(".new")
        with contextlib.suppress(OSError):  # a full disk costs estimates, nothing else
            fresh.write_text(json.dumps({"prefill": self.prefill, "decode": self.decode, "read": self.read}))
            fresh.replace(self.path)

    def saw_prefill(self, tokens: int, ms: float) -> None:
        """Chunks under 16 tokens are left out: they measure a step's fixed cost."""
        if tokens >= 16 and ms > 0:
            self.prefill = _mean(self.prefill, tokens * 1e3 / ms)

    def saw_decode(self, tokens: float, ms: float) -> None:
        if tokens > 0 and ms > 0:
            self.decode = _mean(self.decode, tokens * 1e3 / ms)

    def saw_step(self) -> None:
        """A step, or a piece of one, has just ended."""
        self._stepped = now_ms()

    def saw_restore(self, size: int, seconds: float, ended: float) -> None:
        """It ended at that moment (perf_counter). Small reads are left out: they measure the way to the I/O threads
        and back. Beside a step, which has the processors, a read is no slower than it seems, but may be faster."""
        if size < _SMALLEST_READ or seconds <= 0:
            return
        rate, alone = size / seconds, self._stepped <= (ended - seconds) * 1e3
        if alone or rate > self.read:
            self.read = _mean(self.read, rate)

    def restore_ms(self, size: int) -> float:
        return size * 1e3 / self.read if self.read else 0.0

    def costs(self, depth_scale: float) -> Costs:
        """What a page is worth on this machine; assumed rates where nothing was measured."""
        known = Costs(depth_scale=depth_scale)
        if self.prefill:
            known = replace(known, seconds_per_token=1 / self.prefill, compute_measured=True)
        return replace(known, read_bytes_per_second=self.read, read_measured=True) if self.read else known

    def prefill_ms(self, tokens: int) -> float:
        return tokens * 1e3 / self.prefill if self.prefill else 0.0


def _mean(past: float, value: float) -> float:
    return value if past == 0.0 else _KEEP * past + (1 - _KEEP) * value


@dataclass
class TurnClock:
    """Collects one turn's phases; `report` is what leaves the engine thread."""

    submitted: float = field(default_factory=now_ms)
    queue: float = 0.0
    restore: float = 0.0
    check: float = 0.0
    remove: float = 0.0
    prefill: float = 0.0
    first_token: float = 0.0
    decode: float = 0.0
    save: float = 0.0

    def admitted(self) -> None:
        self.queue = now_ms() - self.submitted

    def checked(self, at: float) -> None:
        """All that came from disk was checked at that moment; 0: nothing did."""
        self.check = max(0.0, at - self.submitted - self.queue)

    def sampled_first(self) -> None:
        self.first_token = now_ms() - self.submitted

    def report(self) -> TurnTimings:
        return TurnTimings(
            self.queue, self.restore, self.remove, self.prefill, self.first_token, self.decode, self.save, self.check
        )
