"""How far an import is, in words: the same on the command line and in the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag.sizes import plural, size_text

if TYPE_CHECKING:
    from rag import IngestProgress

_PHASES = {
    "copy": "copying",
    "recognise": "reading scans",
    "text": "reading text",
    "words": "indexing words",
    "vectors": "indexing meaning",
    "done": "finishing",
}
_UNITS = {"recognise": "page", "text": "page", "vectors": "passage"}


def import_words(progress: IngestProgress | None) -> str:
    """`reading text: 312 of 1,158 pages`, cut at its end where there is little room; None: nothing is known yet."""
    if progress is None:
        return "waiting"
    phase, done, total = _PHASES[progress.phase], progress.done, progress.total
    if not total or progress.phase == "done":
        return phase
    if progress.phase == "copy":
        return f"{phase}: {size_text(done)} of {size_text(total)}"
    if progress.phase == "words":
        return f"{phase}: {min(1.0, done / total):.0%}"
    return f"{phase}: {done:,} of {plural(total, _UNITS[progress.phase])}"
