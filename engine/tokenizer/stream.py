"""TokenStream: the text of generated tokens as it grows, never with half a character."""

from __future__ import annotations

import codecs

from engine.tokenizer.tokenizer import Tokenizer


class TokenStream:
    """Bytes of an unfinished UTF-8 character are kept back until the tokens that complete it arrive.

    Control tokens add no text unless `special`.
    """

    def __init__(self, tokenizer: Tokenizer, *, special: bool = False) -> None:
        self._tokenizer = tokenizer
        self._special = special
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._begun = False  # a character may be

    def push(self, token_id: int) -> str:
        """The characters that became complete with this token; often empty in the middle of one."""
        added = self._tokenizer.token_bytes(token_id, special=self._special)
        if not self._begun and added.isascii():
            return added.decode("ascii")
        text = self._decoder.decode(added)
        self._begun = bool(self._decoder.getstate()[0])
        return text

    def flush(self) -> str:
        """The end of the text: U+FFFD for bytes still kept back, else nothing. The stream starts afresh."""
        rest = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        self._begun = False
        return rest
