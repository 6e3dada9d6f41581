"""Perplexity of a model on a text, and how far its distributions are from reference logits (KL divergence)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.errors import EngineError
from engine.kv.sequence import Sequence
from engine.messages import EngineSettings
from engine.offline import OfflineModel, run_logits

Floats = npt.NDArray[np.floating]


@dataclass(frozen=True)
class Perplexity:
    """`value` = exp of the mean negative log probability of `tokens` tokens; `error`: its standard error."""

    value: float
    error: float
    tokens: int
    windows: int


@dataclass(frozen=True)
class Divergence:
    """Of the model's distributions from the reference's, in nats. `same_top`: share of equal most likely tokens."""

    mean: float
    median: float
    largest: float
    same_top: float
    positions: int


@dataclass(frozen=True)
class ReferenceLogits:
    """`logits` float32 [n, vocabulary] behind each of `tokens`, or behind those at `positions`."""

    tokens: tuple[int, ...]
    positions: npt.NDArray[np.integer]
    logits: Floats

    @staticmethod
    def load(path: Path) -> ReferenceLogits:
        """From an .npz with `tokens`, `logits` and, where not all tokens have some, `positions`. EngineError: no such
        file."""
        try:
            with np.load(path) as file:
                tokens, logits = file["tokens"], file["logits"]
                positions = file["positions"] if "positions" in file else np.arange(len(tokens))
        except FileNotFoundError as error:
            raise _no_reference(path, "there is no such file") from error
        except Exception as error:  # numpy raises whatever its readers do
            raise _no_reference(path, "it is no .npz file with 'tokens' and 'logits'") from error
        if logits.ndim != 2 or len(positions) != len(logits) or positions.max(initial=0) >= len(tokens):
            raise _no_reference(path, f"{len(tokens)} tokens do not fit logits of shape {logits.shape}")
        return ReferenceLogits(tuple(int(token) for token in tokens), positions, logits)


def _no_reference(path: Path, why: str) -> EngineError:
    return EngineError(
        "The reference cannot be used.", f"{path.name}: {why}.", "Make one with 'pagekeep model logits'."
    )


def measure_divergence(path: Path, reference: ReferenceLogits, settings: EngineSettings) -> Divergence:
    """Of the model's distributions from the reference's, over the same tokens. EngineError: another vocabulary."""
    logits, _ = run_logits(path, list(reference.tokens), 0, settings)
    if logits.shape[1] != reference.logits.shape[1]:
        raise EngineError(
            "The reference is of another model.",
            f"It has {reference.logits.shape[1]:,} logits per token, the model {logits.shape[1]:,}.",
            "Compare models with the same vocabulary.",
        )
    return divergence(logits[reference.positions], reference.logits)


def measure_perplexity(
    path: Path,
    text: str,
    settings: EngineSettings,
    window: int = 512,
    on_window: Callable[[int, int], None] = lambda done, total: None,
) -> Perplexity:
    """Cuts the text into windows of `window` tokens; the second half of each is judged, so that every judged token has
    at least half a window before it (llama.cpp's convention). EngineError: the text has less than one window."""
    losses: list[float] = []
    with OfflineModel(path, settings) as model:
        tokenizer = model.model.handle.tokenizer
        pieces = _windows(tokenizer.encode(text), window, tokenizer.bos if tokenizer.add_bos else None)
        for done, piece in enumerate(pieces, 1):
            logits = model.feed(piece, all_logits=True)
            losses += losses_of(logits[window // 2 : -1], piece[window // 2 + 1 :]).tolist()
            model.sequence.release()
            model.sequence = Sequence(model.cache)
            on_window(done, len(pieces))
    mean, spread = float(np.mean(losses)), float(np.std(losses))
    value = float(np.exp(mean))
    return Perplexity(value, value * spread / len(losses) ** 0.5, len(losses), len(pieces))


def losses_of(logits: Floats, following: list[int]) -> Floats:
    """-log p of each following token: logits [n, vocabulary], following [n]. Float64 [n]."""
    return -log_softmax(logits)[np.arange(len(following)), following]


def divergence(logits: Floats, reference: Floats) -> Divergence:
    """KL(reference || model) per position; both [n, vocabulary]."""
    ours, theirs = log_softmax(logits), log_softmax(reference)
    each = np.maximum((np.exp(theirs) * (theirs - ours)).sum(-1), 0)
    same = float(np.mean(ours.argmax(-1) == theirs.argmax(-1)))
    return Divergence(float(each.mean()), float(np.median(each)), float(each.max()), same, len(each))


def log_softmax(logits: Floats) -> npt.NDArray[np.float64]:
    """Over the last axis, in float64."""
    wide = logits.astype(np.float64)
    wide -= wide.max(-1, keepdims=True)
    return np.asarray(wide - np.log(np.exp(wide).sum(-1, keepdims=True)))


def _windows(ids: list[int], size: int, bos: int | None) -> list[list[int]]:
    """Whole windows; each begins with `bos` where the model wants one."""
    pieces = [ids[start : start + size] for start in range(0, len(ids) - size + 1, size)]
    if not pieces:
        raise EngineError(
            "The text is too short.", f"It has {len(ids)} tokens, one window {size}.", "Give a longer text."
        )
    return pieces if bos is None else [[bos, *piece[1:]] for piece in pieces]
