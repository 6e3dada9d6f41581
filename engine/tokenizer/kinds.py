"""The kinds of tokenizer in GGUF files (`tokenizer.ggml.model`): BPE, SentencePiece, WordPiece, unigram."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from engine.errors import UnsupportedModel
from engine.gguf import GgufFile, MetadataArray
from engine.tokenizer.bpe import BytePairEncoder, SpacedPairEncoder
from engine.tokenizer.byte_map import to_bytes
from engine.tokenizer.pre_tokenizers import DEFAULT, PRE_TOKENIZERS, PreTokenizer
from engine.tokenizer.spm import SentencePieceEncoder, piece_bytes
from engine.tokenizer.unigram import SpaceRules, UnigramEncoder
from engine.tokenizer.vocabulary import PREFIX, Defaults, Vocabulary, fail, read_vocabulary
from engine.tokenizer.wpm import WordPieceEncoder

_SENTENCE_PIECE = Defaults(bos=1, eos=2, unknown=0)
_UNIGRAM = Defaults(eos=1, unknown=2)
_WORD_PIECE = Defaults(bos=101, eos=102, unknown=100)


class Encoder(Protocol):
    def encode(self, text: str, *, continues: bool = False) -> list[int]: ...

    def id_of(self, text: str) -> int | None:
        """The token of exactly this text."""
        ...


@dataclass(frozen=True)
class Kind:
    """`to_bytes`: of a normal token's text. `add_bos`: where the file is silent. `warnings`: for the reader."""

    encoder: Encoder
    to_bytes: Callable[[str], bytes]
    add_bos: bool
    warnings: tuple[str, ...] = ()


def read_kind(gguf: GgufFile) -> tuple[Vocabulary, Kind]:
    """UnsupportedModel: another kind; ModelFileError: a broken vocabulary."""
    model = gguf.metadata.get(PREFIX + "model")
    if model == "gpt2":
        vocabulary = read_vocabulary(gguf)
        pre, warnings = _pre_tokenizer(gguf)
        return vocabulary, Kind(BytePairEncoder(vocabulary, pre), to_bytes, pre.add_bos, warnings)
    if model == "llama":
        vocabulary = read_vocabulary(gguf, _SENTENCE_PIECE)
        if not vocabulary.scores:
            fail(gguf, "scores", "a score per token")
        return vocabulary, Kind(SentencePieceEncoder(vocabulary), piece_bytes, add_bos=True)
    if model == "bert":
        vocabulary = read_vocabulary(gguf, _WORD_PIECE)
        return vocabulary, Kind(WordPieceEncoder(vocabulary), piece_bytes, add_bos=True)
    if model == "t5":
        vocabulary = read_vocabulary(gguf, _UNIGRAM)
        return vocabulary, Kind(_unigram(gguf, vocabulary), piece_bytes, add_bos=False)
    if model == "gemma4":
        vocabulary = read_vocabulary(gguf)
        return vocabulary, Kind(SpacedPairEncoder(vocabulary), piece_bytes, add_bos=True)
    raise UnsupportedModel(
        f"The model file {gguf.path.name} cannot be used.",
        f"Tokenizer model {model!r} is not supported; supported: 'gpt2' (byte-level BPE), 'llama' (SentencePiece), "
        "'bert' (WordPiece), 't5' (unigram), 'gemma4' (BPE).",
        "Choose another model.",
    )


def _unigram(gguf: GgufFile, vocabulary: Vocabulary) -> UnigramEncoder:
    charsmap = gguf.metadata.get(PREFIX + "precompiled_charsmap")
    data = bytes(value & 0xFF for value in charsmap.tolist()) if isinstance(charsmap, MetadataArray) else b""  # type: ignore[operator]
    rules = SpaceRules(
        bool(vocabulary.add_space_prefix), gguf.metadata.get(PREFIX + "remove_extra_whitespaces") is True
    )
    try:
        return UnigramEncoder(vocabulary, data, rules)
    except ValueError as error:
        fail(gguf, "precompiled_charsmap", f"a map of characters and scores ({error})")


def _pre_tokenizer(gguf: GgufFile) -> tuple[PreTokenizer, tuple[str, ...]]:
    name = gguf.metadata.get(PREFIX + "pre")
    if isinstance(name, str) and name in PRE_TOKENIZERS:
        return PRE_TOKENIZERS[name], ()
    state = "names no pre-tokenizer" if name is None else f"names the unknown pre-tokenizer {name!r}"
    return DEFAULT, (f"The model file {state}; a default is used and answers may be worse.",)
