"""Words that surround what an answer copies: those that only introduce it, and those that turn what it says."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Set
from itertools import islice

from rag.compared import content
from rag.late_patterns import late
from rag.sentences import WORD, Span

_SAYS = r"(?:says?|said|states?|stated|reads?|explains?|notes?|besagt|sagt|schreibt|dit|indique|précise)"
_TEXT = (
    r"(?:policy|manual|documents?|text|passages?|pages?|section|chapter|guide|handbook|book|article|paper|report"
    r"|specification|standard|rules?|authors?|agreement|contract|law|act|statute|letter|dokument|handbuch|abschnitt"
    r"|vertrag|gesetz|document|manuel|texte|contrat|loi|it)"
)
_LINK = (
    r"(?:yes|so|thus|therefore|hence|also|finally|furthermore|additionally|moreover|in (?:short|summary|conclusion)"
    r"|in other words|in this case|for (?:example|instance)|specifically|note that|ja|kurz|außerdem|oui|donc|en bref)"
)
INTRODUCTION = late(
    rf"\W*(?:{_LINK}\b\W*(?=\w))?"
    rf"(?:(?:according to|as per|laut|gemäß|selon|d['’]après)\b[^.,;:\n]{{1,60}},"
    rf"|(?:as )?(?:(?:the|this|das|der|le|la)\s+)?(?:\w+\s+){{0,3}}{_TEXT}\b(?:\s+\w+){{0,2}}\s+{_SAYS}\b"
    rf"(?:\s+(?:that|dass|que)\b|\s*[,:]))?\W*(?:(?:it|they|es|sie|ils?|elles?)\b\W*)?",
    re.IGNORECASE,
)
TURNS = late(
    r"\b(?:no|not|none|never|nothing|nowhere|neither|nor|cannot|without|unless|except|only|hardly|rarely|false|wrong"
    r"|kein\w*|nicht|nichts|nie|niemals|ohne|nur|außer|pas|jamais|aucune?|sans|sauf|seulement)\b|n['’]t\b",
    re.IGNORECASE,
)
DENIES = late(
    r"\b(?:no|not|never|cannot|neither|nor|rather than|instead of|unlike|as opposed to|kein\w*|nicht|nie|niemals|statt"
    r"|pas|jamais|aucune?|plutôt que|au lieu d[eu])\b|n['’]t\b",
    re.IGNORECASE,
)
# "2.4.3 General Options" and "2.4 Options" say nothing; "2.5 litres of oil" and "2.5 GHz" do.
HEADING = late(r"\s*(?:\d+(?:\.\d+){2,}\.?\s|\d+\.\d+\.?\s+(?=[A-ZÀ-ÞΑ-ΩА-Я][^\W\d_A-Z]{2}))(?:[^.!?]|\.(?=\d))*$")
NAMING = "function|command|option|variable|operator|keyword|method|macro|package|class|environment|parameter"
# What a claim speaks of by name: in code's writing, or with a capital behind the word for what it is.
SUBJECT = late(rf"\b(?:{NAMING})s?\s+[`'\"“]?([A-Z]\w*)|\b(\w*[a-z][A-Z]\w*|\w+_\w+)\b")
DENIED_WORDS = 3  # behind it
CLAUSE = late(r"[.,;:!?()]|[–—]")


def introduced(claim: str) -> int:
    """Where a claim begins behind "The manual says that it" and the like; 0 if that denies what follows."""
    match = INTRODUCTION.match(claim)
    return match.end() if match and match.end() < len(claim) and not TURNS.search(match[0]) else 0


def turned(ours: tuple[str, str], theirs: tuple[str, str]) -> bool:
    """A word like "not" or "only" stands beside a copied part on one side alone.

    Args:
        ours, theirs: the texts before and behind the copied part, in the answer and in the document.
    """
    before = CLAUSE.split(ours[0])[-1], CLAUSE.split(theirs[0])[-1]
    behind = CLAUSE.split(ours[1])[0], CLAUSE.split(theirs[1])[0]
    near = " ".join(before[1].split()[-3:]), " ".join(behind[1].split()[:3])
    return any(_differ(*texts) for texts in ((before[0], before[1], near[0]), (behind[0], behind[1], near[1])))


def denied(text: str) -> list[Span]:
    """Where the few words behind a denial stand."""
    found = []
    for match in DENIES.finditer(text):
        words = [*islice(WORD.finditer(text, match.end()), DENIED_WORDS)]
        found.append((match.end(), words[-1].end() if words else match.end()))
    return found


def opposed(claim: str, source: str, shared: Set[str]) -> bool:
    """One of the two denies, the other does not: a claim with "not", or what the source names only to deny it."""
    if DENIES.search(claim) and not DENIES.search(source):
        return True
    (ours, ours_else), (theirs, theirs_else) = _denied_stems(claim), _denied_stems(source)
    return bool((theirs - theirs_else) & ours_else & shared or (ours - ours_else) & theirs_else & shared)


def _denied_stems(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Those right behind a denial, and all others."""
    spans = denied(text)
    behind = frozenset(s for start, end in spans for s in content(text[start:end]))
    rest = list(text)
    for start, end in spans:
        rest[start:end] = " " * (end - start)
    return behind, content("".join(rest))


def _differ(ours: str, theirs: str, near: str) -> bool:
    """What is far from the copied part in the document may be left out; what the answer adds may not."""
    if TURNS.search(ours):
        return not TURNS.search(theirs)
    return TURNS.search(near) is not None


def subjects(claim: str) -> set[str]:
    """What it speaks of by name, in small letters."""
    return {(match[1] or match[2]).casefold() for match in SUBJECT.finditer(claim)}


def names(text: str, name: str) -> bool:
    """It speaks of that by name, also if the name is broken at the end of a line or stands right behind a number."""
    broken = r"(?:-?\s+)?".join(map(re.escape, name))
    return re.search(rf"(?<![^\W\d]){broken}(?!\w)", unicodedata.normalize("NFKC", text), re.IGNORECASE) is not None
