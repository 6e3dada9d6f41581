"""What this package needs from others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rag.types import IngestProgress

Vectors = npt.NDArray[np.float32]
OnProgress = Callable[[IngestProgress], None]
Cancelled = Callable[[], bool]


class Embedder(Protocol):
    """Turns texts into unit vectors. May be called from any thread, one call at a time."""

    @property
    def name(self) -> str:
        """Identity of the vectors: two embedders of the same name give the same vectors."""

    @property
    def dimensions(self) -> int: ...

    @property
    def loaded(self) -> bool:
        """True when `embed` answers without loading anything first."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors [len(texts), dimensions], float32, of length 1."""


class TokenCounter(Protocol):
    def __call__(self, text: str) -> int:
        """Tokens `text` takes in the prompt."""
