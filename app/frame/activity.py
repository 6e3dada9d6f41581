"""What runs beside the chat, in words for as much room as there is."""

from __future__ import annotations

from dataclasses import dataclass

from app.widgets.format import count, duration, shortened
from engine.messages import DocumentProgress, DocumentStopped

NAME_LENGTHS = (40, 24, 16)  # characters of a file's name, where there is less and less room


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
