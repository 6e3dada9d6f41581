"""Codes of fonts that say nothing of them (encoding and Unicode map are lost), read in the encodings TeX gives them.

Such fonts keep their letters at the usual codes; ligatures and quotes lie among the control codes, and every encoding
has them elsewhere. Which one it is shows in the words that come out: "\\x02rst" is "first" in one of them only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

FF, FI, FL, FFI, FFL = "\ufb00", "\ufb01", "\ufb02", "\ufb03", "\ufb04"
TEX_BASE = {0x02: FI, 0x03: FL, 0x0C: "−", 0x11: "ı", 0x13: FF, 0x14: FFI, 0x15: FFL, 0x1E: "`", 0x1F: "'"}  # 8r
OLD_TEX = {
    0x0B: FF,
    0x0C: FI,
    0x0D: FL,
    0x0E: FFI,
    0x0F: FFL,
    0x10: "ı",
    0x19: "ß",
    0x1A: "æ",
    0x1B: "œ",
    0x1C: "ø",
}  # OT1
CORK = {0x0D: "‚", 0x0E: "‹", 0x0F: "›", 0x10: "“", 0x11: "”", 0x12: "„", 0x13: "«", 0x14: "»", 0x15: "–", 0x16: "—",
        0x19: "ı", 0x1B: FF, 0x1C: FI, 0x1D: FL, 0x1E: FFI, 0x1F: FFL}  # fmt: skip
ENCODINGS: tuple[Mapping[int, str], ...] = (TEX_BASE, OLD_TEX, CORK)
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
BROKEN = re.compile(
    "[a-zA-Z\x00-\x08\x0b\x0c\x0e-\x1f]*[\x00-\x08\x0b\x0c\x0e-\x1f][a-zA-Z\x00-\x08\x0b\x0c\x0e-\x1f]*"
)
_PARTS = """
affect afford beneficial benefit briefly buffer certificat classif coefficient configur confirm conflict define
definit deflat diff differ difficult edifice effect efficien effort fidelity field fifth fifty fight figur file files
filesystem fill film filter final finally financ find finding fine finger finish finite fire firm firmware first fish
fit five fix fixed flag flags flash flat flaw flexib flicker flight float floor flow flows fluid flush fly identif
inflat influen infinit justif magnif modif notif offer office officer official offset often prefix profile profit
qualif reflect rectif satisf scientific sniff specif staff stiff stuff suffer suffic suffix sufficient unif verif
waffle workflow artific significan confident confine coffee off traffic
"""
STARTS = re.compile(rf"(?:un|re|pre|de|over|out|in|non|sub|super|multi)?(?:{'|'.join(_PARTS.split())})", re.IGNORECASE)
SHORT_FORM = re.compile(r"(?:n't|[a-z]'(?:s|re|ve|ll|d|m))$", re.IGNORECASE)


def read_codes(text: str, lost: Sequence[int]) -> tuple[str, int]:
    """The text with one letter (or ligature) for each code that could be read, and how many letters are lost.

    Args:
        lost: places whose codes mean nothing by themselves.
    """
    codes = {place for place in lost if CONTROL.match(text[place])}
    if not codes:
        return text, 0
    words = [text[m.start() : m.end()] for m in BROKEN.finditer(text) if not codes.isdisjoint(range(*m.span()))]
    proofs = [sum(_is_word(word, encoding) for word in words) for encoding in ENCODINGS]
    best = max(range(len(ENCODINGS)), key=proofs.__getitem__)
    encoding = ENCODINGS[best] if proofs[best] and proofs.count(proofs[best]) == 1 else {}
    read = "".join(encoding.get(ord(c), c) if at in codes else c for at, c in enumerate(text))
    return read, sum(ord(text[at]) not in encoding for at in codes)


def _is_word(word: str, encoding: Mapping[int, str]) -> bool:
    if any(ord(c) < 0x20 and ord(c) not in encoding for c in word):
        return False
    read = "".join(encoding.get(ord(c), c) for c in word)
    plain = read.translate({0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl"})
    return STARTS.match(plain) is not None or SHORT_FORM.search(plain) is not None
