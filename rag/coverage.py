"""How much of the documents an answer rests on, and what was never looked at."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag.late_patterns import late
from rag.types import DocumentId

# A refusal is said of the documents, the question or oneself; manuals are full of other sentences with "not".
_REFUSALS = (
    r"(?=.*\b(?:(?:the|this|these|those|your|provided|given|supplied|neither|none|no)\s+(?:\w+\s+){0,2}?"
    r"(?:documents?|passages?|texts?|excerpts?|context|question|information|pages?|sections?|sources?|pdfs?)"
    r"|any information|no (?:\w+ )?(?:mention|indication|details?))\b)"
    r".*(?:\b(?:not|no|none|nothing|never|neither|cannot|unable|without)|n['’]t)\b.{0,60}?\b(?:mention(?:ed|s)?|found"
    r"|find|contain(?:ed|s)?|state[ds]?|provide[ds]?|specif(?:y|ied|ies)|information|answer(?:ed)?|given|says?|said"
    r"|describe[ds]?|include[ds]?|present|available|discuss(?:ed|es)?|indication|details?|here)\b",
    r".*\b(?:i|we)(?:\s+\w+)?(?:\s+(?:not|cannot|unable to)|n['’]t|['’]m (?:not|unable to))\s+(?:\w+ ){0,2}?"
    r"(?:find|found|answer|see|know|tell|say|determine)\b",
    # No words about the documents, but none about anything else either: "The price is not given."
    r"(?:(?!\b(?:if|when|unless|where|which|that)\b)[^,]){0,60}\b(?:not|n['’]t) "
    r"(?:mentioned|stated|specified|given|provided|described|discussed|found)\W*$",
    r"(?=.*\b(?:dokument\w*|text|texte?n?|passagen?|abschnitt\w*|auszüg\w*|quellen?|unterlagen|frage|ich|wir"
    r"|informationen|angaben?|hinweise?|antwort)\b)(?=.*\b(?:nicht|nichts|kein\w*)\b)"
    r".*\b(?:erwähn\w*|enth[aä]lt\w*|genannt|nenn\w*|angegeben|steht|stehen|beschr\w*|gefunden|finden?|beantwort\w*"
    r"|entnehmen|hervor|weiß|informationen|angaben?|hinweise?|antwort)\b",
    r"(?=.*(?:\b(?:les?|ces?|cet|cette|la|du|des|aux?|je|nous|aucune?)\b|\b[jl]['’]))(?=.*\b(?:pas|rien|aucune?)\b)"
    r"(?=.*\b(?:documents?|textes?|passages?|extraits?|sources?|question|informations?|je|nous)\b|.*\bj['’])"
    r".*\b(?:mentionn\w*|conti\w+|trouv\w*|indiqu\w*|précis\w*|fourni\w*|répond\w*|réponse|sais|di[ts]|disent"
    r"|informations?|décri\w*)\b",
)
REFUSAL = late("|".join(_REFUSALS), re.IGNORECASE)
DUTY = late(
    r"\b(?:must|should|shall|may|dürfen|darf|müssen|muss|sollen|sollte|soll|doit|doivent|devrait|peut|peuvent)\b",
    re.IGNORECASE,
)
SENTENCE = late(r"[^.!?\n]+[.!?]*")
SHORT_ANSWER = 400  # characters; a longer one has said something before it found something missing


@dataclass(frozen=True)
class Coverage:
    """Pages of one document that were in the context.

    Attributes:
        read: their indices, ascending.
        unreadable: pages nobody can have read, because they are scans or garbled.
    """

    document_id: DocumentId
    document: str
    pages: int
    read: tuple[int, ...]
    unreadable: tuple[int, ...] = ()

    @property
    def unread(self) -> tuple[int, ...]:
        """Pages that could be read and were not."""
        known = {*self.read, *self.unreadable}
        return tuple(page for page in range(self.pages) if page not in known)

    @property
    def whole(self) -> bool:
        return not self.unread


def page_ranges(pages: Sequence[int], labels: Sequence[str]) -> str:
    """Ascending page indices as a reader names them, as "iv, 3–5, 9"."""
    runs: list[list[int]] = []
    for page in pages:
        if runs and runs[-1][-1] == page - 1:
            runs[-1].append(page)
        else:
            runs.append([page])
    return ", ".join(labels[run[0]] if len(run) == 1 else f"{labels[run[0]]}–{labels[run[-1]]}" for run in runs)


def says_not_found(answer: str) -> bool:
    """The answer is mostly that the documents do not say it; told in English, German and French."""
    return len(answer) <= SHORT_ANSWER and any(_refuses(match[0].strip()) for match in SENTENCE.finditer(answer))


def _refuses(sentence: str) -> bool:
    return REFUSAL.match(sentence) is not None and not DUTY.search(sentence)


def not_found_note(covered: Sequence[Coverage]) -> str:
    """What to show under an answer that found nothing; "" when everything was read."""
    read, pages = sum(len(c.read) for c in covered), sum(c.pages for c in covered)
    unreadable = sum(len(c.unreadable) for c in covered)
    parts: list[str] = []
    if any(c.unread for c in covered):
        noun = "page" if pages == 1 else "pages"
        parts.append(f"Not found in the {read:,} of {pages:,} {noun} read.")
    if unreadable:
        noun = "page is a scan or has" if unreadable == 1 else "pages are scans or have"
        parts.append(f"{unreadable:,} {noun} no readable text.")
    return " ".join(parts)
