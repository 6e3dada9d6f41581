"""Questions that compare: the two topics they name, or that there are more, or parts of documents."""

from __future__ import annotations

import re

from rag import question_foreign as foreign
from rag.late_patterns import late
from rag.question_words import NAMED_DOCUMENT, clauses, only_clause

_ASKS = (
    "what which is are was were explain describe give tell show list name find make write draw me us all every any the"
    " a an main key major biggest most important essential short brief detailed there some compare and contrast discuss"
)
# The whole clause is that comparison: of one with more in it everything is read.
_ASKED = rf"^(?:(?:{_ASKS.replace(' ', '|')})\s+)*"
_SUBJECT = r"(?P<one>(?!(?:i|you|we|one|he|she|they|it)\b)[^?.;:,]+?)"
_ONE, _OTHER = r"(?P<one>[^?.;:,]+?)", r"(?P<other>[^?.;:,]+?)$"
_BETWEEN = r"(?:\s+(?:are|is)(?:\s+there)?)?\s+between"
_WITH = r"(?:with|to|against|versus|vs\.?)"
_TWO = r"(?P<other>[^?.;:,]+?)"
_APART = r"(?:\s+(?:from|with|to) (?:each other|one another))?"
_NO_VERSUS = r"(?!(?:what|who|which|when|where|why|how|is|are|does|do|did)\b)"
_HOW = r"^(?:(?:how|in (?:what|which) (?:ways?|respects?)|to what extent)\s+)"
SIDES = (
    late(rf"{_ASKED}(?:compare|contrast)\s+{_ONE}\s+(?:and|{_WITH})\s+{_OTHER}", re.I),
    late(rf"{_ASKED}(?:comparison|contrast)\s+(?:of|between)\s+{_ONE}\s+(?:and|{_WITH})\s+{_OTHER}", re.I),
    late(rf"{_ASKED}(?:differences?|distinctions?|similarit(?:y|ies)){_BETWEEN}\s+{_ONE}\s+and\s+{_OTHER}", re.I),
    late(rf"{_HOW}do(?:es)?\s+{_SUBJECT}\s+compare\s+{_WITH}\s+{_OTHER}", re.I),
    late(rf"{_HOW}do(?:es)?\s+{_SUBJECT}\s+differ\s+from\s+(?!each other|one another){_OTHER}", re.I),
    late(rf"{_HOW}do\s+{_SUBJECT}\s+and\s+{_TWO}\s+(?:compare|differ){_APART}$", re.I),
    late(rf"{_HOW}(?:is|are)\s+{_SUBJECT}\s+(?:different|distinct)\s+from\s+{_OTHER}", re.I),
    late(rf"{_HOW}(?:similar|different|alike)\s+are\s+{_SUBJECT}\s+and\s+{_TWO}{_APART}$", re.I),
    late(rf"^what\s+(?:distinguishes|separates|sets)\s+{_ONE}\s+(?:apart\s+)?from\s+{_OTHER}", re.I),
    late(rf"^what\s+do\s+{_SUBJECT}\s+and\s+{_TWO}\s+have\s+in\s+common$", re.I),
    late(rf"^{_NO_VERSUS}{_ONE}\s+(?:versus|vs\.?)\s+{_OTHER}", re.I),
)  # fmt: skip
_THESE = r"(?:the|these|those|both|all|two|three|my|our|your)"
TOGETHER = late(
    rf"^(?:compare|contrast)\s+\S|{_ASKED}comparison\s+(?:of|between)\s"
    rf"|{_ASKED}(?:differences?|similarit(?:y|ies)){_BETWEEN}\s"
    rf"|{_HOW}do\s+{_THESE}\b.*\b(?:compare|differ)\b|{_HOW}do(?:es)?\s+{NAMED_DOCUMENT}\b.*\s(?:compare|differ)\b"
    rf"|^what\s+(?:has\s+|have\s+)?(?:been\s+)?changed\s+(?:between|from|since)\b.*\b(?:versions?|editions?|drafts?)\b",
    re.IGNORECASE,
)
# Words of a clause, or of a third side.
NO_SIDE = late(
    r"\b(?:and|or|but|with|to|against|versus|vs|between|than|from|how|what|which|who|whose|when|where|why|if|whether|is|are"
    r"|was|were|be|been|do|does|did|has|have|had|can|could|may|might|must|shall|should|will(?=\s+\w)|would|changed?|say"
    r"|says|said|i|me|my|you|your|he|him|his|she|her|we|us|our|they|their|its)\b",
    re.IGNORECASE,
)
NO_TOPIC = late(
    r"\b(?:chapters?|sections?|parts?|appendix|appendices|pages?|documents?|files?|books?|papers?|texts?|editions?"
    r"|versions?|drafts?|it|them|each|all|other|others|ones?|this|that|these|those)\b|\.pdf\b",
    re.IGNORECASE,
)
SIDE_WORDS = 8


def compared(question: str) -> tuple[str, str] | None:
    """The two topics that are to be compared; None where it names none, parts of the documents, or more than that:
    then everything has to be read."""
    return _sides(only_clause(question))


def compares_all(question: str) -> bool:
    """It is a comparison of documents, their parts, or of more than two topics."""
    return any(
        (TOGETHER.search(clause) or foreign.compares(clause)) and not _sides(clause) for clause in clauses(question)
    )


def _sides(clause: str) -> tuple[str, str] | None:
    match = next((found for sides in SIDES if (found := sides.search(clause))), None)
    if match is None:
        return foreign.sides(clause)
    one, other = (re.sub(r"^(?:the|an?)\s+", "", side.strip(), flags=re.I) for side in match.group("one", "other"))
    if any(words.search(side) for words in (NO_TOPIC, NO_SIDE) for side in (one, other)):
        return None
    longest = max(len(one.split()), len(other.split()))
    return (one, other) if longest <= SIDE_WORDS and one.casefold() != other.casefold() else None
