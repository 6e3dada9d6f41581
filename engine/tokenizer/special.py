"""Special tokens are cut out of text before BPE: longest text first, each over all pieces left so far."""

from __future__ import annotations

from collections.abc import Iterable

Piece = str | int


def partition(text: str, special: Iterable[tuple[str, int]]) -> list[Piece]:
    """Text pieces and ids of special tokens, in order. `special`: (text, id), longest first."""
    pieces: list[Piece] = [text] if text else []
    for token, token_id in special:
        if token in text:
            pieces = [part for piece in pieces for part in _cut(piece, token, token_id)]
    return pieces


def _cut(piece: Piece, token: str, token_id: int) -> Iterable[Piece]:
    if isinstance(piece, int):
        yield piece
        return
    before, *rest = piece.split(token)
    if before:
        yield before
    for part in rest:
        yield token_id
        if part:
            yield part
