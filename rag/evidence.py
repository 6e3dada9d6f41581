"""Which part of which passage bears a sentence out: copied, nearly copied, or agreeing in its content words."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import NamedTuple

from rag.sentences import IDEOGRAPH, WORD, Span, sentences
from rag.stop_words import STOP_WORDS
from rag.types import Verdict

COPIED_WORDS = 6
COPIED_CONTENT = 3  # of them that are no stop words
ALTERED_RATIO = 0.75
AGREEMENT = 0.6  # of the weight of the content words
SHARED_WORDS = 3
LEAST_CONTENT = 5  # content words of a sentence that names no passage and no number
SHORT_AGREEMENT = 0.75  # for sentences that share only two, or only one with the passage they are marked with
LOOKED_AT = 8  # passages compared word by word
ENOUGH_ALONE = 0.9  # a sentence with this part of what two give is cited alone
SUFFIX = re.compile(r"(?:ations?|ings?|edly|ed|ies|es|s|ly|e|y)$")
NUMBER = re.compile(r"\d+(?:[.,:/x×-]\d+)*")
ABOUT_ANSWERING = frozenset({"answer", "question", "passag", "text", "follow"})  # stems that say nothing by themselves
SPACE = re.compile(r"\s+")


@dataclass(frozen=True)
class Evidence:
    """`source`: span in the text of passage `number`; `claim`: span in the claim it bears out. `strength`: equal
    words of copies, share of the content words of agreements."""

    number: int
    verdict: Verdict
    source: Span
    claim: Span
    strength: float


@dataclass(frozen=True)
class Words:
    """The words of a text: compared form, span, and (None for stop words) stem."""

    forms: tuple[str, ...]
    spans: tuple[Span, ...]
    stems: tuple[str | None, ...]

    @staticmethod
    def of(text: str) -> Words:
        matches = list(WORD.finditer(text))
        forms = tuple(unicodedata.normalize("NFKC", m[0]).casefold().replace("’", "'") for m in matches)
        return Words(forms, tuple(m.span() for m in matches), tuple(stem(form) for form in forms))


def stem(form: str) -> str | None:
    """A rough stem; None for a stop word."""
    if form in STOP_WORDS or (len(form) == 1 and not form.isdigit() and not IDEOGRAPH.match(form)):
        return None
    return form if len(form) < 5 or form[0].isdigit() else SUFFIX.sub("", form)


class Sentence(NamedTuple):
    span: Span
    stems: frozenset[str]


@dataclass(frozen=True)
class Source:
    text: str

    @cached_property
    def words(self) -> Words:
        return Words.of(self.text)

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(s for s in self.words.stems if s)

    @cached_property
    def sentences(self) -> list[Sentence]:
        return [Sentence(span, content(self.text[slice(*span)])) for span in sentences(self.text)]

    def numbers(self, span: Span) -> set[str]:
        return set(NUMBER.findall(self.text, *span))

    def numbers_near(self, span: Span) -> set[str]:
        """Numbers of the sentences that a span touches: "kept for 90 days" is no quote of "kept for 30 days"."""
        touched = [s.span for s in self.sentences if s.span[0] < span[1] and span[0] < s.span[1]]
        return {number for sentence in touched for number in self.numbers(sentence)}


def content(text: str) -> frozenset[str]:
    return frozenset(s for s in Words.of(text).stems if s)


class Evidences:
    """The passages of a context, ready to be compared with claims."""

    def __init__(self, texts: Mapping[int, str]) -> None:
        self._sources = {number: Source(text) for number, text in texts.items()}
        self._frequency = Counter(s for source in self._sources.values() for s in source.stems)

    def copied(self, claim: str, numbers: Sequence[int]) -> Evidence | None:
        """A part of at least six words that stands in a passage verbatim, else nearly."""
        words = Words.of(claim)
        near = self._nearest(words, numbers)
        runs = [run for number in near for run in self._runs(claim, words, number)]
        altered = [found for number in near if (found := self._altered(words, number))]
        run = max(runs, key=lambda run: (run.verdict == "exact", run.strength), default=None)
        whole = max(altered, key=lambda found: found.strength, default=None)
        # A sentence copied with a word changed is altered, however long the part before or after that word.
        return whole if whole and (run is None or whole.strength > run.strength) else run

    def agreeing(self, claim: str, numbers: Sequence[int], marked: bool = False) -> Evidence | None:
        """The one or two neighbouring sentences that share most of the claim's content words and all its numbers.

        Args:
            marked: the sentence names these passages itself; then it may agree in a single word ("640x480 [4]").
                Without that, less than five content words say too little, unless a number is among them.
        """
        words = Words.of(claim)
        telling = marked or NUMBER.search(claim) or sum(1 for s in words.stems if s) >= LEAST_CONTENT
        if not telling or claim.rstrip().endswith("?"):
            return None
        near = self._nearest(words, numbers)
        found = [
            e for number in near for e in self._agreements(claim, words, number, 1 if marked else SHARED_WORDS - 1)
        ]
        return max(found, key=lambda evidence: evidence.strength, default=None)

    def _weight(self, stems: Iterable[str]) -> float:
        total = len(self._sources)
        return sum(math.log(1.5 + total / (1 + self._frequency[s])) for s in stems)

    def _nearest(self, words: Words, numbers: Sequence[int]) -> list[int]:
        stems = {s for s in words.stems if s}
        weights = {number: self._weight(stems & self._sources[number].stems) for number in numbers}
        ranked = sorted((n for n in numbers if weights[n] > 0), key=lambda n: (-weights[n], n))
        return ranked[:LOOKED_AT]

    def _runs(self, claim: str, words: Words, number: int) -> Iterator[Evidence]:
        source = self._sources[number]
        for first, at, length in common_runs(words.forms, source.words.forms):
            if enough(words.stems[first : first + length]):
                best = longest_verbatim(claim, words, source, first, at, length)
                exact = best is not None and enough(words.stems[best[0] : best[0] + best[2]])
                start, place, size = best if exact and best else (first, at, length)
                span = _cover(source.words, place, size)
                honest = exact and set(NUMBER.findall(claim)) <= source.numbers_near(span)
                verdict: Verdict = "exact" if honest else "altered"
                yield Evidence(number, verdict, span, _cover(words, start, size), size)

    def _altered(self, words: Words, number: int) -> Evidence | None:
        """A sentence of the passage of which most words come in the claim in the same order."""
        source = self._sources[number]
        stems = {s for s in words.stems if s}
        best: Evidence | None = None
        for span, shared in source.sentences:
            if len(shared & stems) < COPIED_CONTENT:
                continue
            theirs = Words.of(source.text[slice(*span)])
            matcher = SequenceMatcher(None, words.forms, theirs.forms, autojunk=False)
            blocks = [block for block in matcher.get_matching_blocks() if block.size]
            equal = sum(block.size for block in blocks)
            if equal >= COPIED_WORDS and matcher.ratio() >= ALTERED_RATIO:
                claim = _cover(words, blocks[0].a, blocks[-1].a + blocks[-1].size - blocks[0].a)
                found = Evidence(number, "altered", span, claim, equal)
                best = found if best is None or found.strength > best.strength else best
        return best

    def _agreements(self, claim: str, words: Words, number: int, least_shared: int) -> Iterator[Evidence]:
        source = self._sources[number]
        stems = {s for s in words.stems if s and s not in ABOUT_ANSWERING}
        whole = self._weight(stems)
        figures = set(NUMBER.findall(claim))
        for span, theirs, factor in windows(source.sentences):
            shared = stems & theirs
            part = self._weight(shared) / whole if whole else 0.0
            least = AGREEMENT if len(shared) >= SHARED_WORDS else SHORT_AGREEMENT
            if len(shared) >= least_shared and part >= least and figures <= source.numbers(span):
                yield Evidence(number, "matched", span, (0, len(claim.rstrip())), part * factor)


def windows(parts: Sequence[Sentence]) -> Iterator[tuple[Span, frozenset[str], float]]:
    """Sentences alone and in neighbouring pairs; pairs count for less."""
    for position, (span, stems) in enumerate(parts):
        yield span, stems, 1.0
        if position + 1 < len(parts):
            following, more = parts[position + 1]
            yield (span[0], following[1]), stems | more, ENOUGH_ALONE


def common_runs(ours: Sequence[str], theirs: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Maximal runs of at least COPIED_WORDS equal words: (start in ours, start in theirs, length)."""
    places: dict[str, list[int]] = {}
    for position, word in enumerate(theirs):
        places.setdefault(word, []).append(position)
    running: dict[int, int] = {}
    for position, word in enumerate([*ours, ""]):
        extended = {at: running.get(at - 1, 0) + 1 for at in places.get(word, ())}
        for at, length in running.items():
            if length >= COPIED_WORDS and at + 1 not in extended:
                yield position - length, at - length + 1, length
        running = extended


def longest_verbatim(
    claim: str, words: Words, source: Source, first: int, at: int, length: int
) -> tuple[int, int, int] | None:
    """The longest part of a run whose characters are the same but for white space; None below COPIED_WORDS."""
    best = (first, at, 0)
    start = 0
    for offset in range(length):
        if not _same(claim, words, first + offset, source, at + offset, 1):
            start = offset + 1
        elif offset > start and not _same(claim, words, first + offset - 1, source, at + offset - 1, 2):
            start = offset
        if offset + 1 - start > best[2]:
            best = (first + start, at + start, offset + 1 - start)
    return best if best[2] >= COPIED_WORDS else None


def _same(claim: str, words: Words, first: int, source: Source, at: int, count: int) -> bool:
    ours = claim[slice(*_cover(words, first, count))]
    theirs = source.text[slice(*_cover(source.words, at, count))]
    return SPACE.sub(" ", ours) == SPACE.sub(" ", theirs)


def _cover(words: Words, first: int, count: int) -> Span:
    return words.spans[first][0], words.spans[first + count - 1][1]


def enough(stems: Sequence[str | None]) -> bool:
    return len(stems) >= COPIED_WORDS and sum(1 for s in stems if s) >= COPIED_CONTENT
