"""Languages other than English whose words are stemmed: told by their commonest words, stemmed by Snowball.

Hebrew and Persian have no stemmer there; like Arabic's, their words lose their points and vowels, which hardly anybody
types, and Persian's get one form of the letters that keyboards give two of.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from rag.sentences import MARK
from rag.stop_words import STOP_WORDS

LEAST_WORDS = 20
LEAST_SHARE = 0.1  # of a text's words are among the commonest of its language; of another language at most 0.05
PERSIAN_FORMS = str.maketrans("يىك", "ییک")
LETTERS = re.compile(r"[^\W\d_]+")

# By Snowball's name of the language.
COMMON: Mapping[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "arabic": "في من على إلى أن عن ما هذا هذه التي الذي لا كان مع أو هو هي كل ذلك بين كما قد لم إن ثم بعد عند غير",
        "danish": "og i at det er en til af på som de med der den for ikke et kan har ved hvis eller du fra også skal",
        "dutch": "de het een en van in is dat op te zijn voor met die niet aan er om ook als dan maar worden naar",
        "finnish": "ja on ei se että oli hän ovat joka mutta myös kun tai sen voi jos ole niin kuin tämä ovat sekä",
        "french": "le la les de des du et est un une en dans que qui pour pas par sur il au ce ne se avec sont plus ou",
        "german": "der die das und ist in den von zu mit sich des auf für nicht ein eine dem werden als auch wird oder",
        "hebrew": "של את על לא הוא זה כי עם או גם אם היא אל כל אשר אני מה יש הם אבל רק כדי בין לפי אין כן הזה שלא היה",
        "hungarian": "a az és hogy nem is egy van ez meg csak ha vagy mint de el lehet már még kell azt ki volt",
        "italian": "il di che è la e un una per in non con del della le i gli sono da si al come nel più dei alla",
        "norwegian": "og i det er en til av på som de med for ikke et kan har om den eller du fra ved også skal hvis",
        "persian": "و در به از که این را با است برای آن یک می تا بر هم نیز شده شود کرد کند اگر ها یا باید هر شما بود",
        "portuguese": "o a os as de que e do da em um uma para é não com por no na se dos como mais ou ao são",
        "romanian": "și de la în a o pe cu nu este un că din care pentru sau mai se sunt fi prin ce al ale",
        "russian": "и в не на что с по как это к для из от или а но то у за при о если вы так же есть может",
        "spanish": "el la los las de que y en un una es por con para no se del al lo como más su o este son puede",
        "swedish": "och i att det är en som på för av med den till inte om ett kan har de eller du från vid också ska",
        "turkish": "ve bir bu için ile da de olarak daha çok olan gibi en kadar veya ise her değil ne var sonra",
    }.items()
}
_ENGLISH = "the of and to in a is that for it as with on by be are this or from at an not can if which you will"
ENGLISH = frozenset(_ENGLISH.split())

OTHER_LETTERS = frozenset(
    {"arabic", "hebrew", "persian", "russian"}
)  # what stands in Latin letters among them is mostly English


def language_of(texts: Iterable[str]) -> str:
    """Snowball's name of the texts' language; "" for English, for one without a stemmer and where it cannot be told."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(LETTERS.findall(MARK.sub("", text.lower())))
    total = counts.total()
    if total < LEAST_WORDS:
        return ""

    def share(words: frozenset[str]) -> float:
        return sum(counts[word] for word in words) / total

    best = max(COMMON, key=lambda language: share(COMMON[language]))
    return best if share(COMMON[best]) >= max(LEAST_SHARE, share(ENGLISH)) else ""


def stop_words(language: str) -> frozenset[str]:
    """Words of a question that say nothing, for documents of a language."""
    return STOP_WORDS | COMMON.get(language, frozenset())


class Stemmer:
    """Texts with their words' stems in the words' places; signs, digits and gaps stay. Not for several threads.

    Args:
        language: as `language_of` tells it; with "" texts stay as they are (the full-text index stems English).
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self._known: dict[str, str] = {}
        self._stem = _snowball(language) if language else None
        self._stem_latin = _snowball("english") if language in OTHER_LETTERS else self._stem

    def __call__(self, text: str) -> str:
        if self._stem is None:
            return text
        return LETTERS.sub(lambda match: self._stemmed(match[0].lower()), MARK.sub("", text))

    def _stemmed(self, word: str) -> str:
        stem = self._known.get(word)
        if stem is None:
            rule = self._stem_latin if word.isascii() else self._stem
            assert rule is not None
            stem = self._known[word] = rule(word)
        return stem


def _snowball(language: str) -> Callable[[str], str]:
    if language == "hebrew":
        return str
    if language == "persian":
        return lambda word: word.translate(PERSIAN_FORMS)
    import snowballstemmer  # 36 modules, 45 ms

    stem: Callable[[str], str] = snowballstemmer.stemmer(language).stemWord
    return stem
