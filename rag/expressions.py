"""Questions as expressions of the full-text indexes."""

from __future__ import annotations

import re
import unicodedata

from rag.languages import Stemmer, stop_words
from rag.sentences import IDEOGRAPH

TERM = re.compile(r"\w+(?:[^\w\s]+\w+)*")


def match_expression(query: str, language: str = "") -> str:
    """FTS5 expression: any of the words that are no stop words (any word if all are). A word with marks
    inside, like DEB_GAIN_ROOT_CMD or avr-gcc, is a phrase and must stand as a whole.

    Args:
        language: of the documents, where their words were stemmed before they were indexed (`rag.languages`).
    """
    return " OR ".join(telling_terms(query, language))


def telling_terms(query: str, language: str = "") -> list[str]:
    """The terms of `match_expression`, each an expression by itself."""
    terms = list(dict.fromkeys(TERM.findall(unicodedata.normalize("NFC", query))))
    without = stop_words(language)
    telling = [term for term in terms if term.casefold() not in without] or terms
    return [quoted(term) for term in dict.fromkeys(map(Stemmer(language), telling))]


def part_expression(query: str) -> str:
    """Expression for the trigram index, for writing without spaces: overlapping pieces of three characters."""
    runs = re.findall(rf"{IDEOGRAPH.pattern}{{3,}}", query)
    pieces = [run[n : n + 3] for run in runs for n in range(len(run) - 2)]
    return " OR ".join(quoted(piece) for piece in dict.fromkeys(pieces))


def quoted(term: str) -> str:
    """An FTS5 string."""
    return '"' + term.replace('"', '""') + '"'
