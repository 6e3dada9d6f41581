"""WordPiece for embedders, quick: the words of a document come again and again."""

from __future__ import annotations

from collections.abc import Sequence

from engine.tokenizer.spm import SPACE
from engine.tokenizer.vocabulary import Vocabulary
from engine.tokenizer.wpm import WordPieceEncoder

_LONGEST_WORD = 100  # characters; longer ones are unknown, as in BERT's tokenizer
_KEPT_WORDS = 50_000
_MARKS = (("[CLS]", "[SEP]", "[UNK]"), ("<s>", "</s>", "<unk>"))


class WordPieces:
    """Token ids of texts with the marks of begin and end; such marks in a text are text.

    ValueError: the vocabulary lacks them.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        found = [marks for marks in _MARKS if all(mark in vocabulary.ids for mark in marks)]
        if not found:
            raise ValueError("no [CLS], [SEP] and [UNK]")
        self.begin, self.end = (vocabulary.ids[mark] for mark in found[0][:2])
        self._encoder = WordPieceEncoder(vocabulary, _LONGEST_WORD)
        self._known: dict[str, tuple[int, ...]] = {}

    def encode(self, text: str, longest: int) -> list[int]:
        """At most `longest` ids, marks included; what is beyond is cut off."""
        ids = [self.begin]
        for word in text.split():
            ids += self._word(word)
            if len(ids) >= longest:
                break
        return [*ids[: longest - 1], self.end]

    def _word(self, word: str) -> tuple[int, ...]:
        known = self._known.get(word)
        if known is None:
            if len(self._known) >= _KEPT_WORDS:
                self._known = {}
            known = self._known[word] = tuple(self._encoder.encode(word))
        return known


def from_lines(lines: Sequence[str]) -> Vocabulary:
    """The vocabulary of a vocab.txt: "##" marks tokens inside a word there, in GGUF files the others are marked."""
    texts = [_marked(line) for line in lines]
    ids = {text: number for number, text in enumerate(texts)}
    return Vocabulary(texts, [1] * len(texts), ids, [], None, None, frozenset(), None, False, unknown=ids.get("[UNK]"))


def _marked(text: str) -> str:
    if text.startswith("##") and len(text) > 2:
        return text[2:]
    return text if text.startswith("[") and text.endswith("]") and len(text) > 2 else SPACE + text
