"""The language of a question, told by its commonest words."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rag.languages import COMMON, ENGLISH

_ASKING = {
    "english": "what which who whose whom how when where why does do did has have should could would was were much "
    "many there they their my your about between tell give me",
    "german": "was welche welcher welches welchen wer wen wem wie wann wo warum wieso viel viele hat haben kann "
    "darf muss gibt ich mein meine wird lange",
    "french": "quel quelle quels quelles qui quoi comment quand où pourquoi combien est-ce peut doit faut "
    "mon ma mes c'est",
    "dutch": "wat wie hoe waar wanneer waarom hoeveel welke",
    "spanish": "qué cuál cuáles quién quiénes cómo cuándo dónde cuánto cuánta cuántos cuántas hay tiene puedo debe",
}
_WORDS: Mapping[str, frozenset[str]] = {
    language: frozenset(_ASKING.get(language, "").split()) | words
    for language, words in {**COMMON, "english": ENGLISH}.items()
}
_LETTERS = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


def question_language(question: str) -> str:
    """Snowball's name of it ("english" too), where most of its common words are of one language; else ""."""
    words = _LETTERS.findall(question.lower().replace("’", "'"))
    told = {language: sum(word in common for word in words) for language, common in _WORDS.items()}
    most = max(told.values())
    best = [language for language, count in told.items() if count == most]
    return best[0] if most and len(best) == 1 else ""
