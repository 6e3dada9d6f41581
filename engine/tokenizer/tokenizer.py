"""Tokenizer: text to token ids and back, exactly as the model was trained, from the GGUF file alone."""

from __future__ import annotations

from collections.abc import Iterable

from engine.gguf import GgufFile
from engine.tokenizer.kinds import Kind, read_kind
from engine.tokenizer.special import partition
from engine.tokenizer.spm import byte_of
from engine.tokenizer.vocabulary import TokenType, Vocabulary

_SPECIAL = (TokenType.UNKNOWN, TokenType.CONTROL)
_MOST_KNOWN = 4096


class Tokenizer:
    """Immutable after construction; every method may be called from any thread.

    Attributes:
        vocabulary: number of tokens; bos, eos: ids or None; eog_ids: ids that end a generation.
        add_bos: whether a prompt begins with bos. warnings: sentences for the reader.
    """

    def __init__(self, vocabulary: Vocabulary, kind: Kind) -> None:
        self.vocabulary = len(vocabulary.texts)
        self.bos, self.eos, self.eog_ids = vocabulary.bos, vocabulary.eos, vocabulary.eog
        wants_bos = kind.add_bos if vocabulary.add_bos is None else vocabulary.add_bos
        self.add_bos = wants_bos and vocabulary.bos is not None
        self.warnings = kind.warnings
        self._texts, self._types = vocabulary.texts, vocabulary.types
        self._known: dict[tuple[int, bool], bytes] = {}  # what answers are made of: the next step waits for it
        self._user_defined = vocabulary.special((TokenType.USER_DEFINED,))
        self._all_special = vocabulary.special((*_SPECIAL, TokenType.USER_DEFINED))
        self._encoder = kind.encoder
        self._to_bytes = kind.to_bytes

    @staticmethod
    def from_gguf(gguf: GgufFile) -> Tokenizer:
        """UnsupportedModel: a kind of tokenizer that is not known; ModelFileError: a broken vocabulary."""
        return Tokenizer(*read_kind(gguf))

    def encode(self, text: str, *, special: bool = False, continues: bool = False) -> list[int]:
        """Ids of `text`, bos not added. Control tokens are recognised only with `special` (template text,
        never a reader's); user-defined tokens always, they are words of the vocabulary. `continues`: plain text
        stands before it, so that vocabularies which begin a text with a space do not."""
        ids: list[int] = []
        for piece in partition(_without_surrogates(text), self._all_special if special else self._user_defined):
            if isinstance(piece, int):
                ids.append(piece)
            else:
                ids.extend(self._encoder.encode(piece, continues=continues))
            continues = not isinstance(piece, int)
        return ids

    def decode(self, ids: Iterable[int], *, special: bool = True) -> str:
        """Text of `ids`; broken UTF-8 becomes U+FFFD. Without `special`, control tokens are left out."""
        return b"".join(self.token_bytes(i, special=special) for i in ids).decode("utf-8", "replace")

    def token_bytes(self, token_id: int, *, special: bool = True) -> bytes:
        """The bytes a token adds to the text; empty for unused tokens. IndexError beyond the vocabulary."""
        known = self._known.get((token_id, special))
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[token_id, special] = self._find_bytes(token_id, special)
        return known

    def _find_bytes(self, token_id: int, special: bool) -> bytes:
        if not 0 <= token_id < self.vocabulary:
            raise IndexError(f"token id {token_id} is outside the vocabulary of {self.vocabulary}")
        kind, text = self._types[token_id], self._texts[token_id]
        if kind == TokenType.NORMAL:
            return self._to_bytes(text)
        if kind in _SPECIAL:
            return text.encode() if special else b""
        if kind == TokenType.BYTE:
            return byte_of(text)
        return text.encode() if kind == TokenType.USER_DEFINED else b""

    def is_control(self, token_id: int) -> bool:
        """True for tokens that are no text: control and unknown tokens."""
        return self._types[token_id] in _SPECIAL

    def token_id(self, text: str) -> int | None:
        """The id of the token with exactly this text, as it stands in the vocabulary."""
        return self._encoder.id_of(text)

    def token_text(self, token_id: int) -> str:
        """The entry as it stands in the vocabulary (byte characters not decoded)."""
        return self._texts[token_id]


def _without_surrogates(text: str) -> str:
    """Lone surrogates cannot be encoded: they become U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
