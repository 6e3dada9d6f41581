"""Numbers written in words: English, German, French and Spanish up to 99, with their hundreds, thousands and millions.

Left out are the words that mostly mean something else in another of these languages: Spanish "once" and "son", French
"seize" and "sept", "one" and its like.
"""

# ruff: noqa: SIM905 - lists of words are read more easily in one text

from __future__ import annotations

import re
from collections.abc import Iterator

from rag.late_patterns import late

_ENGLISH = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_ENGLISH_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_ENGLISH_NTH = "first second third fourth fifth sixth seventh eighth ninth".split()
_GERMAN = (
    "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn "
    "achtzehn neunzehn"
).split()
_GERMAN_TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()
_FRENCH = (
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit "
    "dix-neuf"
).split()
_FRENCH_TENS = "vingt trente quarante cinquante soixante".split()
_SPANISH = (
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete "
    "dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro veinticinco veintiséis veintisiete "
    "veintiocho veintinueve"
).split()
_SPANISH_TENS = "treinta cuarenta cincuenta sesenta setenta ochenta noventa".split()
_MISLEADING = frozenset("zero one null ein zéro un sept seize cero uno once".split())
SCALES = {
    word: scale
    for scale, words in {
        100: "hundred hundert cent cents cien ciento",
        1000: "thousand tausend mille mil",
        1_000_000: "million millions millionen millón millones",
        1_000_000_000: "billion billions bn milliarde milliarden milliard milliards",
    }.items()
    for word in words.split()
}


def _words() -> Iterator[tuple[str, int]]:
    for simple in (_ENGLISH, _GERMAN, _FRENCH, _SPANISH):
        yield from ((word, number) for number, word in enumerate(simple))
    yield from ((f"{word}th", number) for number, word in enumerate(_ENGLISH) if number in (10, 11, *range(13, 20)))
    yield from (("twelfth", 12), ("dozen", 12), ("dreissig", 30), ("quatre-vingts", 80))
    for number, word in enumerate(_ENGLISH_TENS, 2):
        yield from ((word, 10 * number), (f"{word[:-1]}ieth", 10 * number))
        yield from ((f"{word}-{one}", 10 * number + n) for n, one in enumerate(_ENGLISH[1:10], 1))
        yield from ((f"{word}-{nth}", 10 * number + n) for n, nth in enumerate(_ENGLISH_NTH, 1))
    for number, word in enumerate(_GERMAN_TENS, 2):
        yield (word, 10 * number)
        yield from ((f"{one}und{word}", 10 * number + n) for n, one in enumerate(_GERMAN[1:10], 1))
    for number, word in enumerate(_FRENCH_TENS, 2):
        yield from ((word, 10 * number), (f"{word}-et-un", 10 * number + 1))
        yield from ((f"{word}-{one}", 10 * number + n) for n, one in enumerate(_FRENCH[1:10], 1))
    yield from ((f"soixante-{one}", 60 + n) for n, one in enumerate(_FRENCH[10:], 10))
    yield ("soixante-et-onze", 71)
    yield from ((f"quatre-vingt-{one}", 80 + n) for n, one in enumerate(_FRENCH[1:], 1))
    for number, word in enumerate(_SPANISH_TENS, 3):
        yield (word, 10 * number)
        yield from ((f"{word}-y-{one}", 10 * number + n) for n, one in enumerate(_SPANISH[1:10], 1))


_SINGLE = dict(_words()) | {"eins": 1, "une": 1, "una": 1}
_NUMBERS = {word: number for word, number in _words() if word not in _MISLEADING} | SCALES
WORDS = frozenset(part for word, _ in _words() for part in word.split("-"))  # what a spelled number is made of
_ANY = "|".join(sorted(_NUMBERS, key=len, reverse=True)).replace("-", r"[-‑ ]")
_RUN = late(rf"\b(?:{_ANY})(?:(?:[\s-]+(?:and|und|et|y))?[\s-]+(?:{_ANY}))*\b", re.IGNORECASE)
_WORD = late(rf"\b(?:{_ANY})\b", re.IGNORECASE)
_LETTERS = late(r"[^\W\d_]+")
_FIRST = frozenset(word.split("-")[0] for word in _NUMBERS)  # looked up first: the patterns are slow


def value(word: str) -> int | None:
    """Of a number up to 99 in one word, "twenty-one" too; also of words that mean other things elsewhere."""
    return _SINGLE.get(word.casefold())


def spelled(text: str) -> Iterator[str]:
    """What its number words tell, as digits: each word, and those together that follow one another ("two hundred and
    fifty": 2, 100, 50, 250)."""
    for run in _runs(text):
        values = [_NUMBERS[re.sub(r"[‑ ]", "-", match[0].lower())] for match in _WORD.finditer(run[0])]
        yield from map(str, values)
        if len(values) > 1:
            yield str(_together(values))


def _runs(text: str) -> Iterator[re.Match[str]]:
    end = 0
    for word in _LETTERS.finditer(text):
        if word.start() >= end and word[0].lower() in _FIRST and (run := _RUN.match(text, word.start())):
            end = run.end()
            yield run


def _together(values: list[int]) -> int:
    total = current = 0
    for value in values:
        if value == 100:
            current = max(1, current) * value
        elif value > 100:
            total, current = total + max(1, current) * value, 0
        else:
            current += value
    return total + current
