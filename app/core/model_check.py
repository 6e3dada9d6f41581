"""Whether a model file is sound: structure, tokenizer and chat template, finite weights in samples, a short run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.core.errors import UserError
from engine.chat_format import ChatFormat
from engine.gguf import GGML_TYPES, GgufFile, TensorInfo
from engine.gguf.dequantise import DEQUANTISED_TYPES, dequantise
from engine.messages import EngineSettings
from engine.models.families import spec_from_gguf
from engine.models.tensors import check_tensors
from engine.offline import run_logits
from engine.tokenizer import Tokenizer

SAMPLED_ROWS = 16  # of each tensor, from its first to its last
RUN_TOKENS = 32


@dataclass(frozen=True)
class ModelCheck:
    """What was looked at. `spread`: standard deviation of the logits after the last of `run_tokens` tokens."""

    path: Path
    architecture: str
    tensors: int
    weights_bytes: int
    sampled_rows: int
    vocabulary: int
    run_tokens: int
    spread: float
    warnings: tuple[str, ...]


def check_file(path: Path, settings: EngineSettings) -> ModelCheck:
    """Raises EngineError for a file that cannot be used, UserError where its numbers are no numbers."""
    with GgufFile.open(path) as file:
        spec = spec_from_gguf(file)
        check_tensors(file, spec)
        tokenizer = Tokenizer.from_gguf(file)
        chat = ChatFormat.from_gguf(file, tokenizer)
        tensors = tuple(file.tensors.values())
        sampled = sum(_check_weights(file, info) for info in tensors)
    count = min(RUN_TOKENS, spec.context)
    logits, _ = run_logits(path, _spread_ids(spec.vocabulary, count), 0, settings)
    if not np.isfinite(logits).all():
        raise _damaged(path, f"A run over {count} tokens gives logits that are not finite.")
    size = sum(info.nbytes for info in tensors)
    spread = float(logits[-1].std())
    warnings = (*spec.warnings, *chat.warnings)
    return ModelCheck(
        path, spec.architecture, len(tensors), size, sampled, spec.vocabulary, count, round(spread, 4), warnings
    )


def _check_weights(file: GgufFile, info: TensorInfo) -> int:
    """Rows looked at."""
    if info.ggml_type not in DEQUANTISED_TYPES:
        return 0
    chosen = np.unique(np.linspace(0, info.rows - 1, min(SAMPLED_ROWS, info.rows)).astype(int))
    width = GGML_TYPES[info.ggml_type].row_bytes(info.cols)
    rows = file.raw(info).reshape(info.rows, width)[chosen]
    with np.errstate(all="ignore"):  # damaged scales overflow: that is what is looked for
        wrong = int((~np.isfinite(dequantise(rows, info.ggml_type, info.cols)).all(axis=1)).sum())
    if wrong:
        where = f"{info.name} ({info.type_name})"
        raise _damaged(file.path, f"{where}: {wrong} of {len(chosen)} sampled rows hold weights that are not finite.")
    return len(chosen)


def _spread_ids(vocabulary: int, count: int) -> list[int]:
    """Ids from all over the vocabulary."""
    return [int(i) for i in np.linspace(0, vocabulary - 1, count)]


def _damaged(path: Path, why: str) -> UserError:
    return UserError(f"The model file {path.name} is damaged.", why, "Get the file again.")
