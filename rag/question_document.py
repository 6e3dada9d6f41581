"""Questions about a document as such (who wrote it, what it is called, from when it is): its first pages answer them,
whose words such a question has not."""

from __future__ import annotations

import re

from rag import question_document_foreign as foreign
from rag.late_patterns import late
from rag.question_words import DOCUMENT, NAMED_DOCUMENT, clauses

_MAKERS = (
    r"(?:co-?)?(?:authors?|writers?|editors?|creators?|publishers?|translators?|maintainers?|contributors?"
    r"|copyright\s+holders?)"
)
_MADE = (
    r"(?:written|published|made|created|compiled|prepared|issued|released|printed|edited|translated|updated|revised"
    r"|last\s+(?:updated|revised|modified|changed)|dated|typeset|copyrighted|licen[cs]ed)"
)
_DATA = (
    rf"(?:(?:full\s+|exact\s+|sub-?)?titles?|(?:names?\s+of\s+(?:the\s+)?)?{_MAKERS}(?:'s?\s+names?)?|(?:publication|release|issue)\s+date|publisher"
    r"|date(?:\s+of\s+(?:publication|release|issue))?|year(?:\s+of\s+publication)?|edition|version|revision|isbn|doi|licen[cs]e"
    r"|copyright|journal|institution|affiliations?|document\s+number)"
)
_ITS = rf"(?:\s+(?:of|for|to)\s+{DOCUMENT})?"
TELL = late(r"^(?:tell|show)\s+(?:me|us)\s+", re.IGNORECASE)
ABOUT_DOCUMENT = late(
    rf"^who\s+(?:is|are|was|were)\s+(?:the|its)\s+{_MAKERS}{_ITS}$"
    rf"|^who\s+(?:wrote|has\s+written|edited|published|made|created|translated|maintains|compiled|prepared|issued|released|authored)"
    rf"\s+{DOCUMENT}$"
    rf"|^(?:by\s+whom|when|where|in\s+(?:what|which)\s+year)\s+(?:is|was|were|has)\s+{DOCUMENT}\s+(?:been\s+)?{_MADE}$"
    rf"|^(?:by\s+)?whom?\s+(?:is|was|were)\s+{DOCUMENT}\s+{_MADE}(?:\s+by)?$"
    rf"|^{DOCUMENT}\s+(?:is|was)\s+{_MADE}\s+(?:by\s+whom?|when|where)$"
    rf"|^when\s+did\s+{DOCUMENT}\s+(?:appear|come\s+out)$"
    rf"|^how\s+(?:old|recent|up\s*-?to\s*-?date)\s+is\s+{DOCUMENT}$|^is\s+{DOCUMENT}\s+up\s*-?to\s*-?date$"
    rf"|^(?:what|which)\s+(?:is|are|was|were)\s+(?:the|its)\s+{_DATA}{_ITS}$"
    rf"|^(?:what|which)\s+{_DATA}\s+(?:is|has|does)\s+{DOCUMENT}(?:\s+(?:have|from|under))?$"
    rf"|^(?:what|how)\s+is\s+{DOCUMENT}\s+(?:called|titled|named|entitled)$"
    rf"|^(?:what|which)\s+(?:kind|sort|type)\s+of\s+(?:an?\s+)?[\w-]+\s+is\s+{DOCUMENT}$"
    rf"|^what\s+(?:is|are)\s+(?:this|{NAMED_DOCUMENT})$|^(?:what|which)\s+(?:document|file|book|paper|manual|report|pdf)\s+is\s+(?:this|it)$",
    re.IGNORECASE,
)


def asks_about_document(question: str) -> bool:
    """It asks for the author, title, date, publisher or kind of a document; in English, German, French or Spanish."""
    asked = list(clauses(question))
    english = any(ABOUT_DOCUMENT.match(TELL.sub("", clause)) for clause in asked)
    return english or any(foreign.asks_about_document(clause) for clause in asked)
