"""Files that ship with the program: the sample document, icons, themes."""

from __future__ import annotations

from pathlib import Path


def sample_pdf() -> Path:
    """The project's own short PDF, so that the first run has something to open."""
    return Path(__file__).parent / "sample" / "pagekeep-sample.pdf"
