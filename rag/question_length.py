"""Questions that say themselves how long or of what form their answer is to be."""

from __future__ import annotations

import re

from rag.late_patterns import late
from rag.question_kinds import wants_whole

SAYS_LENGTH = late(
    r"\b(?:details?|detailed|explain|describe|elaborate|steps?|step[- ]by[- ]step|list|table|bullet\w*|essay|write"
    r"|draft|translate|paragraphs?|(?:\w+\s+)?(?:sentences?|words)\s+(?:long|at most)|in\s+\w+\s+(?:sentences?|words)"
    r"|give\s+(?:me\s+)?(?:an?\s+|some\s+|\w+\s+)?examples?|long(?:er)?\s+answer|at length|briefly|in short"
    r"|ausführlich|erklär\w*|beschreib\w*|schritte?n?|liste|tabelle|schreib\w*|übersetz\w*"
    r"|détails?|détaillé\w*|expli\w*|décri\w*|étapes?|tableau|écri\w*|tradui\w*"
    r"|detalles?|explica\w*|describ\w*|pasos?|lista|tabla|escrib\w*|traduc\w*)\b",
    re.IGNORECASE,
)


def says_length(question: str) -> bool:
    """It asks for details, a list, steps, an explanation, or for all of a document; in four languages."""
    return SAYS_LENGTH.search(question) is not None or wants_whole(question)
