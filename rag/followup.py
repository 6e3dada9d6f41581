"""Questions that lean on what was asked before, made complete for the search."""

from __future__ import annotations

import re

from rag.late_patterns import late
from rag.sentences import WORD
from rag.stop_words import STOP_WORDS

LEANS = late(
    r"^[\s¿¡]*(?:and|but|so|also|then|ok|okay|what about|how about|why|why not|how so|really|which ones?"
    r"|what else|anything else|are you sure|for example|such as|more|go on|continue|explain"
    r"|und|aber|auch|dann|was ist mit|wie (?:ist|steht) es mit|warum|wieso|weshalb|wirklich|noch mehr|weiter|erkläre?"
    r"|et|mais|donc|alors|aussi|pourquoi|qu'en est-il|quoi d'autre|vraiment|explique[rz]?"
    r"|y|pero|entonces|también|por qué|qué más|de verdad|sigue|continúa|explica)\b",
    re.IGNORECASE,
)
POINTS_BACK = late(
    r"\b(?:it|its|they|them|their|theirs|this|that|these|those|he|she|him|his|her|there|former|latter|same|other"
    r"|others|one|ones|above|first|second|third|last|both"
    # "es", "das", "la", "son" are not among them: in one of these languages they are an article or "is".
    r"|ihn|ihm|ihre?[mnrs]?|diese[mnrs]?|jene[mnrs]?|davon|dazu|dafür|dagegen|darüber|darin|damit|dort|beide[mnrs]?"
    r"|letztere[mnrs]?|erstere[mnrs]?|celui|celle|ceux|celles|cela|ça|cette|ces|leurs?|dernière?|ella|ellos|ellas|eso|esos"
    r"|esas?|estos|estas?|sus?|allí|mism[oa]s?|otr[oa]s?|últim[oa]s?)\b",
    re.IGNORECASE,
)
FEW_WORDS = 4  # telling words; a question with more stands for itself even when it says "it"


def complete(question: str, previous: str | None) -> str:
    """What to search for: the question, with the telling words of the one before when it cannot stand alone.

    A follow-up begins with "and", "why" and the like or points back ("it", "the second one") and has few telling
    words of its own. Words that both have are not repeated, so that what is new keeps its weight.
    """
    if not previous or not leans(question):
        return question
    own = {word.casefold() for word in WORD.findall(question)}
    carried = [word for word in telling(previous) if word.casefold() not in own]
    return " ".join([question.strip(), *dict.fromkeys(carried)])


def leans(question: str) -> bool:
    """The question needs the one before it to be understood."""
    few = len(telling(question)) <= FEW_WORDS
    if not telling(question):
        return True
    return few and bool(LEANS.search(question) or POINTS_BACK.search(question))


def telling(text: str) -> list[str]:
    """Words that are no stop words, in their order."""
    return [word for word in WORD.findall(text) if word.casefold() not in STOP_WORDS and not _pointer(word)]


def _pointer(word: str) -> bool:
    return POINTS_BACK.fullmatch(word) is not None
