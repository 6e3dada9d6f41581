"""Documents: intake of PDFs, index, retrieval, and citations checked against the stored text.

Names are resolved on first use, so that the extraction process starts without the index's imports.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rag.errors import DocumentError, IntakeCancelled
    from rag.library import Library
    from rag.types import (
        CharRange,
        Citation,
        Document,
        DocumentId,
        Hit,
        IngestProgress,
        IntakeReport,
        Outline,
        PageReport,
        Passage,
    )

__all__ = [
    "CharRange",
    "Citation",
    "Document",
    "DocumentError",
    "DocumentId",
    "Hit",
    "IngestProgress",
    "IntakeCancelled",
    "IntakeReport",
    "Library",
    "Outline",
    "PageReport",
    "Passage",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'rag' has no attribute {name!r}")
    home = {"Library": "rag.library", "DocumentError": "rag.errors", "IntakeCancelled": "rag.errors"}
    return getattr(importlib.import_module(home.get(name, "rag.types")), name)
