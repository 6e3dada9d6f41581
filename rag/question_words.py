"""Questions taken apart: their clauses without the words around them, and what readers call a document."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag.late_patterns import late

IRREGULAR = frozenset(
    ("people", "men", "women", "children", "criteria", "phenomena", "data", "media", "mice", "feet", "teeth", "indices")
)
LOOKED_AT = 4000  # characters at each end of what is pasted
MOST_WORDS = 60  # a longer clause is no question but pasted text
_LEAD = (
    r"(?:(?:please|kindly|just|now|so|then|and|also|ok(?:ay)?|hi|hello|hey|briefly|quickly|in total|altogether|overall"
    r"|in (?:short|brief|a nutshell|a few words))\b[\s,]*"
    r"|(?:can|could|would|will) (?:you|we)\s+|i(?:'d| would)? (?:like|love|want|need|wish)(?: you)?(?: to)?\s+"
    r"|(?:tell|show|explain to|say to|remind) (?:me|us)\s+(?=(?:what|which|how|why|the|whether)\b)"
    r"|(?:count|say|find out|work out|determine)\s+(?=how (?:many|often)\b))*"
)
LEAD = late(rf"^\W*{_LEAD}", re.IGNORECASE)
TAIL = late(r"[\s,]*\b(?:please|for (?:me|us)|thanks|thank you|in total|altogether)[\s.!]*$", re.IGNORECASE)
CLAUSE_END = late(
    r"[?!]+|(?<!\btl);+|(?<!\bvs)(?<!\bDr)(?<!\bMr)(?<!\bno)(?<!\be\.g)(?<!\bi\.e)[.:](?=\s|$)|,\s+(?=(?:(?:and|but|then|so|please)\s+)*(?:what|which|how|who|when|where|why|is|are|does|do|can"
    r"|list|name|summari[sz]e|compare|count|give|tell)\b)",
    re.IGNORECASE,
)
_PARTS = "chapter section part appendix page volume paragraph article clause"
_TEXTS = (
    "document file book paper text report manual pdf contract agreement lease policy letter novel story thesis"
    " dissertation study guide handbook essay law act treaty standard specification prospectus brochure transcript"
    " presentation lecture work poem play documentation statement textbook review memo bill proposal tutorial article"
    " whitepaper reference script edition version draft deed will minutes notes slides regulations terms"
)
_ATTRIBUTES = r"(?:(?!(?:of|in|on|and|or|with|from|to|is|are)\b)[\w'-]+\s+){0,2}"
_PERSONS = r"(?:authors?|writers?|editors?|speakers?|narrator)"
PARTS = rf"(?:{'|'.join(_PARTS.split())})s?"
TEXTS = rf"(?:{'|'.join(_TEXTS.split())})s?"
# "the second chapter", "this book", "chapter 3", "appendix B", "policy-2.1.pdf"; below with the pronouns for them
NAMED_DOCUMENT = (
    rf"(?:(?:the|this|that|these|those|my|our|your|each|both|all)\s+{_ATTRIBUTES}(?:{TEXTS}|{PARTS})"
    rf"|{PARTS}\s+(?:\d[\d.]*|[A-Z]\b|[IVX]+\b)|\S+\.pdf)"
)
DOCUMENT = rf"(?:{NAMED_DOCUMENT}|it|this|these)"
TELLER = rf"(?:{DOCUMENT}|(?:the|its|his|her|their)\s+{_ATTRIBUTES}{_PERSONS}|they|he|she)"


def clauses(question: str) -> Iterator[str]:
    """Its clauses with one space between words, without politeness around them; text that is too long to be a
    question is left out."""
    if len(question) > 2 * LOOKED_AT:
        question = f"{question[:LOOKED_AT]};{question[-LOOKED_AT:]}"
    for part in CLAUSE_END.split(question.replace("’", "'")):
        words = part.split()
        if words and len(words) <= MOST_WORDS:
            bare = re.sub(r"^(what|who|where|how)'s\b", r"\1 is", LEAD.sub("", " ".join(words)), flags=re.IGNORECASE)
            yield TAIL.sub("", bare).strip()


def only_clause(question: str) -> str:
    """The clause that is all of the question; "" where there is more in it."""
    found = [clause for clause in clauses(question) if clause]
    return found[0] if len(found) == 1 and len(question.split()) <= MOST_WORDS else ""


def plural(things: str) -> bool:
    """The noun in "kinds of error", "rules about noise" stands for more than one."""
    noun = re.split(r"\s+(?:of|about|in|for|on|to|with|from|that|concerning|regarding)\b", things, maxsplit=1)[0]
    last = noun.split()[-1].casefold() if noun.split() else ""
    return last in IRREGULAR or (last.endswith("s") and not last.endswith(("ss", "us", "is")))
