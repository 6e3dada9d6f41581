"""The vocabulary of a GGUF file: token texts and types, special tokens, end-of-generation tokens.

Keys are `tokenizer.ggml.*`. Token types: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from engine.errors import ModelFileError
from engine.gguf import GgufFile, MetadataArray

PREFIX = "tokenizer.ggml."
_MAX_TOKENS = 1 << 23


class TokenType(IntEnum):
    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


# Texts that end a turn wherever they are in a vocabulary; files do not say so reliably.
_END_TEXTS = (
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|calls|>", "<|flush|>",
    "<end_of_turn>", "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]",
    "<|end_of_text|>", "<end_of_utterance>", "<eos>", "<turn|>", "<｜end▁of▁sentence｜>",
)  # fmt: skip
# Fill-in-the-middle markers also end a generation: by key, else the first of these texts that exists.
_FIM_TEXTS = (
    ("fim_pad_token_id", "<|fim_pad|> <fim-pad> <fim_pad> <PAD> [PAD]"),
    ("fim_rep_token_id", "<|fim_repo|> <|repo_name|> <fim-repo> <REPO> <reponame>"),
    ("fim_sep_token_id", "<|file_sep|>"),
)


@dataclass(frozen=True)
class Vocabulary:
    """`texts[id]`, `types[id]`, and `ids` by text (large: who can do without it does not keep it). bos, eos, unknown:
    None where the file names none.

    `scores[id]`: which merges go first; empty for vocabularies that list their merges.
    """

    texts: Sequence[str]
    types: Sequence[int]
    ids: dict[str, int]
    merges: Sequence[str]
    bos: int | None
    eos: int | None
    eog: frozenset[int]
    add_bos: bool | None
    add_eos: bool
    unknown: int | None = None
    scores: Sequence[float] = field(default_factory=list)
    add_space_prefix: bool | None = None

    def special(self, kinds: Sequence[int]) -> tuple[tuple[str, int], ...]:
        """(text, id) of the tokens of these types, longest text first."""
        wanted = set(kinds)
        found = [(self.texts[i], i) for i, kind in enumerate(self.types) if kind in wanted and self.texts[i]]
        return tuple(sorted(found, key=lambda entry: -len(entry[0].encode())))


@dataclass(frozen=True)
class Defaults:
    """Ids that a kind of vocabulary has where the file does not say."""

    bos: int | None = None
    eos: int | None = None
    unknown: int | None = None
    add_bos: bool | None = None


def read_vocabulary(gguf: GgufFile, defaults: Defaults | None = None) -> Vocabulary:
    """ModelFileError: no token list, lists of different lengths, or ids outside the vocabulary."""
    texts = _strings(gguf, "tokens")
    if texts is None or not 0 < len(texts) <= _MAX_TOKENS:
        fail(gguf, "tokens", "a list of token texts")
    ids, count = {text: i for i, text in enumerate(texts)}, len(texts)
    known = defaults or Defaults()
    add_bos = _flag(gguf, "add_bos_token")
    return Vocabulary(
        texts=texts,
        types=_types(gguf, len(texts)),
        ids=ids,
        merges=_strings(gguf, "merges") or [],
        bos=_token_id(gguf, "bos_token_id", count, known.bos),
        eos=_token_id(gguf, "eos_token_id", count, known.eos),
        eog=_eog(gguf, ids, count, known.eos),
        add_bos=known.add_bos if add_bos is None else add_bos,
        add_eos=bool(_flag(gguf, "add_eos_token")),
        unknown=_token_id(gguf, "unknown_token_id", count, known.unknown),
        scores=_scores(gguf, count),
        add_space_prefix=_flag(gguf, "add_space_prefix"),
    )


def fail(gguf: GgufFile, key: str, expected: str) -> NoReturn:
    found = gguf.metadata.get(PREFIX + key)
    state = "is missing" if found is None else f"is {found!r}"
    raise ModelFileError(
        f"The model file {gguf.path.name} cannot be used.",
        f"Key '{PREFIX}{key}' {state}, expected {expected}.",
        "Download or convert the file again.",
    )


def _strings(gguf: GgufFile, key: str) -> Sequence[str] | None:
    value = gguf.metadata.get(PREFIX + key)
    if value is None:
        return None
    if not isinstance(value, MetadataArray):
        fail(gguf, key, "a list of strings")
    try:
        return value.texts() if len(value) else []
    except TypeError:
        fail(gguf, key, "a list of strings")


def _types(gguf: GgufFile, count: int) -> Sequence[int]:
    values = _numbers(gguf, "token_type", count, "biu", "one type per token")
    return bytes([TokenType.NORMAL]) * count if values is None else np.clip(values, 0, 255).astype(np.uint8).tobytes()


def _scores(gguf: GgufFile, count: int) -> Sequence[float]:
    values = _numbers(gguf, "scores", count, "f", "one score per token")
    if values is None:
        return []
    with np.errstate(invalid="ignore"):  # a file may hold signalling NaN
        return array("d", values.astype(np.float64).tobytes())


def _numbers(gguf: GgufFile, key: str, count: int, kinds: str, expected: str) -> npt.NDArray[np.generic] | None:
    """At least `count` numbers of one of numpy's `kinds`; None without the key."""
    value = gguf.metadata.get(PREFIX + key)
    if value is None:
        return None
    if isinstance(value, MetadataArray) and len(value) >= count and value.dtype and value.dtype.kind in kinds:
        return value.numpy()
    fail(gguf, key, f"{expected} ({count})")


def _token_id(gguf: GgufFile, key: str, count: int, default: int | None = None) -> int | None:
    """The id at `key`; the default without the key. Ids are often stored as -1 or 2^32 - 1 for none."""
    value = gguf.metadata.get(PREFIX + key)
    if value is None:
        return default if default is not None and default < count else None
    if value in (-1, 0xFFFFFFFF):
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < count:
        fail(gguf, key, f"a token id below {count}")
    return value


def _flag(gguf: GgufFile, key: str) -> bool | None:
    value = gguf.metadata.get(PREFIX + key)
    return value if isinstance(value, bool) else None


def _eog(gguf: GgufFile, ids: dict[str, int], count: int, eos: int | None) -> frozenset[int]:
    found = {_token_id(gguf, key, count) for key in ("eot_token_id", "eom_token_id")}
    found.add(_token_id(gguf, "eos_token_id", count, eos))
    found |= {ids.get(text) for text in _END_TEXTS}
    for key, texts in _FIM_TEXTS:
        named = _token_id(gguf, key, count)
        found.add(named if named is not None else next((ids[t] for t in texts.split() if t in ids), None))
    if "<|return|>" in ids and "<|call|>" in ids:  # harmony: <|end|> only ends a message inside the turn
        found.discard(ids.get("<|end|>"))
    return frozenset(i for i in found if i is not None)
