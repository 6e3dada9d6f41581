"""Checking a model file: structure, sizes, finite weights in samples, and a short run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.errors import EngineError
from engine.gguf import GgufFile, TensorInfo
from engine.gguf.dequantise import DEQUANTISED_TYPES, dequantise
from engine.messages import EngineSettings
from engine.models.families import spec_from_gguf
from engine.models.tensors import check_tensors
from engine.offline import run_logits
from engine.tokenizer import Tokenizer

_SAMPLED_ROWS = 8
_SMOKE_PROMPT = "The quick brown fox jumps over the lazy dog. "


@dataclass(frozen=True)
class CheckReport:
    """`problems`: sentences, empty for a sound file. `refusal`: of a file that is not supported or cannot be read.
    `smoke_text`: what the model said, empty without a run."""

    path: Path
    tensors: int
    sampled_values: int
    smoke_tokens: int
    smoke_text: str
    problems: tuple[str, ...]
    refusal: EngineError | None = None


def check_model(path: Path, settings: EngineSettings | None = None, smoke_tokens: int = 32) -> CheckReport:
    """Reads the header, a few rows of every tensor, and generates `smoke_tokens` tokens (0: no run). Never raises an
    EngineError: what is wrong is in the report."""
    try:
        with GgufFile.open(path) as gguf:
            spec = spec_from_gguf(gguf)
            check_tensors(gguf, spec)
            tokenizer = Tokenizer.from_gguf(gguf)
            sampled, problems = _sample(gguf)
            tensors = len(gguf.tensors)
        text = "" if problems or not smoke_tokens else _smoke(path, tokenizer, smoke_tokens, settings)
    except EngineError as error:
        return CheckReport(path, 0, 0, 0, "", (error.why,), error)
    return CheckReport(path, tensors, sampled, smoke_tokens if text else 0, text, tuple(problems))


def _sample(gguf: GgufFile) -> tuple[int, list[str]]:
    """How many values were looked at, and the tensors with values that are no numbers."""
    count, problems = 0, []
    for info in gguf.tensors.values():
        if info.ggml_type not in DEQUANTISED_TYPES:
            continue
        values = np.concatenate([dequantise(gguf.raw(row), info.ggml_type, info.cols) for row in _rows(info)])
        count += values.size
        if not np.isfinite(values).all():
            problems.append(f"Tensor {info.name!r} has values that are no finite numbers.")
    return count, problems


def _rows(info: TensorInfo) -> Iterator[TensorInfo]:
    """Rows spread over the tensor, the first and the last among them."""
    for row in sorted({int(row) for row in np.linspace(0, info.rows - 1, _SAMPLED_ROWS)}):
        yield info.part(row, 1)


def _smoke(path: Path, tokenizer: Tokenizer, count: int, settings: EngineSettings | None) -> str:
    """The greedy continuation of a sentence. EngineError: logits that are no finite numbers."""
    prompt = tokenizer.encode(_SMOKE_PROMPT)
    if tokenizer.add_bos and tokenizer.bos is not None:
        prompt = [tokenizer.bos, *prompt]
    logits, following = run_logits(path, prompt, count, settings or EngineSettings())
    if not np.isfinite(logits).all():
        raise EngineError("The model computes nonsense.", "Its logits are no finite numbers.", "Download it again.")
    return tokenizer.decode(following) or " "
