"""The printable characters that stand for bytes in byte-level BPE vocabularies (GPT-2, Radford et al. 2019).

Printable Latin-1 bytes stand for themselves; the other 68 bytes, ascending, are U+0100 and on.
"""

from __future__ import annotations

from types import MappingProxyType


def _characters() -> tuple[str, ...]:
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    shown = {byte: chr(byte) for byte in printable} | {b: chr(0x100 + i) for i, b in enumerate(others)}
    return tuple(shown[byte] for byte in range(256))


BYTE_TO_CHARACTER = _characters()
CHARACTER_TO_BYTE = MappingProxyType({character: byte for byte, character in enumerate(BYTE_TO_CHARACTER)})


def to_bytes(token: str) -> bytes:
    """The bytes of a vocabulary entry; characters outside the map stand for their own UTF-8."""
    try:
        return bytes([CHARACTER_TO_BYTE[character] for character in token])
    except KeyError:
        return b"".join(_one(character) for character in token)


def _one(character: str) -> bytes:
    byte = CHARACTER_TO_BYTE.get(character)
    return character.encode() if byte is None else bytes([byte])
