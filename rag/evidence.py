"""Which part of which passage bears a sentence out: copied, nearly copied, or agreeing in its content words.

Exact is what a sentence takes over word for word. Where it does so with nearly all of its words, the few others stand
in the place of the document's ("No package must" for "Every package must"), and it is altered, wherever they stand.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from types import MappingProxyType
from typing import NamedTuple

from rag.compared import Sentence, Source, Words, stem
from rag.figures import NUMBER, numbers, other_unit
from rag.sentences import Span
from rag.types import Verdict
from rag.wording import HEADING, introduced, names, opposed, subjects, turned

COPIED_WORDS = 6
COPIED_CONTENT = 3  # of them that are no stop words
ALTERED_RATIO = 0.75
AGREEMENT = 0.75  # of the weight of the content words; of 15 read by hand, five of five true ones have it
SHARED_WORDS = 3
LEAST_CONTENT = 5  # content words of a sentence that names no passage and no number
TELLING_AGREEMENT = 0.6  # where a number, or two names out of code, are the same
MORE_OF_TWO = 0.1  # of it that two sentences need beyond one: their words may belong to different things
LOOKED_AT = 8  # passages compared word by word
ENOUGH_ALONE = 0.9  # a sentence with this part of what two give is cited alone
# Stems that say nothing by themselves where an answer speaks of itself.
ABOUT_ANSWERING = frozenset({"answer", "question", "passag", "text", "follow", "note"})
ANSWERING = re.compile(r"\banswers?\b", re.IGNORECASE)
SPACE = re.compile(r"\s+")
FEW_PASSAGES = 3  # what stands in fewer is not what all of them are about
NAMED_BEFORE = 1  # sentence: a manual names a function in a line of its own and then says what it does
NAME = re.compile(r"(?=.*[^\W\d_])(?=.*[\d_]).+")  # letters with digits or underscores


@dataclass(frozen=True)
class Evidence:
    """`source`: span in the text of passage `number`; `claim`: span in the claim it bears out. `strength`: equal
    words of copies, share of the content words of agreements."""

    number: int
    verdict: Verdict
    source: Span
    claim: Span
    strength: float


class Run(NamedTuple):
    """Equal words: the first in the claim, the first in the source, how many."""

    first: int
    at: int
    length: int


class Evidences:
    """The passages of a context, ready to be compared with claims. `headings`: what they stand under."""

    def __init__(self, texts: Mapping[int, str], headings: Mapping[int, str] = MappingProxyType({})) -> None:
        self._headings = headings
        self._sources = {number: Source(text) for number, text in texts.items()}
        self._frequency = Counter(s for source in self._sources.values() for s in source.stems)

    def copied(self, claim: str, numbers: Sequence[int]) -> Evidence | None:
        """A part of at least six words that stands in a passage verbatim, else nearly."""
        words = Words.of(claim, introduced(claim))
        near = self._nearest(words, numbers)
        runs = [run for number in near for run in self._runs(claim, words, number)]
        altered = [found for number in near if (found := self._altered(words, number))]
        run = max(runs, key=lambda run: (run.strength, run.verdict == "exact"), default=None)
        whole = max(altered, key=lambda found: found.strength, default=None)
        if run is None or (run.verdict == "exact" and run.strength == len(words.forms)):
            return run or whole
        # A sentence copied with a word changed is altered, however long the part before or after that word.
        return whole if whole and whole.strength >= run.strength else run

    def quoted(self, quote: str, numbers: Sequence[int]) -> Evidence | None:
        """Where all of a quotation stands, however short; a long one may be altered in less than half its words."""
        words = Words.of(quote)
        found = [e for number in numbers for e in self._standing(quote, words, number)]
        best = max(found, key=lambda evidence: evidence.verdict == "exact", default=None)
        if best is None and (near := self.copied(quote, numbers)) and 2 * near.strength > len(words.forms):
            return replace(near, verdict="altered", claim=_extent(words))
        return best

    def _standing(self, quote: str, words: Words, number: int) -> Iterator[Evidence]:
        source, count = self._sources[number], len(words.forms)
        for at in places(words.forms, source.words.forms):
            # In the middle of a sentence its first word is written small.
            cut = 0 if count < 3 or _same(quote, words, 0, source, at, count) else 1
            exact = _same(quote, words, cut, source, at + cut, count - cut)
            cut = cut if exact else 0
            span, ours = _cover(source.words, at + cut, count - cut), _cover(words, cut, count - cut)
            yield Evidence(number, "exact" if exact else "altered", span, ours, count)

    def agreeing(self, claim: str, numbers: Sequence[int], marked: bool = False) -> Evidence | None:
        """The one or two neighbouring sentences that share most of the claim's content words and all its numbers.

        Args:
            marked: the sentence names these passages itself; then it may agree in a single word ("640x480 [4]").
                Without that, less than five content words say too little, unless a number is among them.
        """
        words = Words.of(claim)
        telling = marked or NUMBER.search(claim) or sum(1 for s in words.stems if s) >= LEAST_CONTENT
        figures_alone = not marked and not any(s and not s[0].isdigit() for s in words.stems)
        if not telling or figures_alone or claim.rstrip().endswith("?") or (HEADING.match(claim) and not marked):
            return None
        near = self._nearest(words, numbers)
        found = [
            e for number in near for e in self._agreements(claim, words, number, 1 if marked else SHARED_WORDS - 1)
        ]
        return max(found, key=lambda evidence: evidence.strength, default=None)

    def _goes_without(self, name: str, number: int) -> bool:
        """A passage need not say what it stands under, or what most passages speak of ("in LaTeX")."""
        told = self._frequency[stem(name) or ""]
        return names(self._headings.get(number, ""), name) or (told >= FEW_PASSAGES and 2 * told > len(self._sources))

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
        figures = numbers(claim, words.spans[0][0]) if words.spans else set()
        for run in map(Run._make, common_runs(words.forms, source.words.forms)):
            if not enough(words.stems[run.first : run.first + run.length]):
                continue
            best = longest_verbatim(claim, words, source, *run)
            if best is None or not enough(words.stems[best[0] : best[0] + best[2]]):
                yield Evidence(number, "altered", *_both(words, source, *run), run.length)
            elif not figures <= source.numbers_near(_cover(source.words, best[1], best[2])):
                yield Evidence(number, "altered", *_both(words, source, *best), best[2])
            elif reworded(claim, words, source, run):
                sentence = source.touched(_cover(source.words, run.at, run.length))
                yield Evidence(number, "altered", sentence, _extent(words), run.length)
            else:  # a sentence that goes on from words of one's own begins with a small letter
                whole = run.length == len(words.forms) and best[0] <= 1 and best[0] + best[2] == run.length
                yield Evidence(number, "exact", *_both(words, source, *best), run.length if whole else best[2])

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
                found = Evidence(number, "altered", span, _extent(words), equal)
                best = found if best is None or found.strength > best.strength else best
        return best

    def _agreements(self, claim: str, words: Words, number: int, least_shared: int) -> Iterator[Evidence]:
        source = self._sources[number]
        silent = ABOUT_ANSWERING if ANSWERING.search(claim) else frozenset()
        stems = {s for s in words.stems if s and s not in silent}
        whole = self._weight(stems)
        figures, named = numbers(claim), [name for name in subjects(claim) if not self._goes_without(name, number)]
        refused: list[Span] = []  # sentences that say the opposite: with a neighbour they are no better
        for span, theirs, factor in sorted(windows(source.sentences), key=lambda window: -window[2]):
            if any(start < span[1] and span[0] < end for start, end in refused):
                continue
            shared = stems & theirs
            part = self._weight(shared) / whole if whole else 0.0
            least = TELLING_AGREEMENT if figures or _names_told(shared) else AGREEMENT
            least += MORE_OF_TWO if factor < 1.0 else 0.0
            if len(shared) == 1 and len(theirs) < SHARED_WORDS and not figures:
                continue  # a heading, or a footnote's mark: "Note [4]:"
            few = len(shared - ABOUT_ANSWERING) < least_shared
            if few or part < least or not (least_shared == 1 or shared == stems or _says_more_than_numbers(shared)):
                continue
            beside = source.text_with(span, NAMED_BEFORE)
            if not all(names(beside, name) for name in named):
                continue  # what it says of another thing
            told, there = source.text[slice(*span)], source.numbers(span)
            if not figures <= there:
                refused += [span] if there and figures.isdisjoint(there) else []  # says another number of the same
            elif other_unit(claim, told, stem) or opposed(claim, told, shared):
                refused.append(span)
            else:
                yield Evidence(number, "matched", span, (0, len(claim.rstrip())), part * factor)


def _says_more_than_numbers(shared: Set[str]) -> bool:
    return sum(1 for word in shared if not word[0].isdigit()) > 1 or _names_told(shared)


def _names_told(shared: Iterable[str]) -> bool:
    """Two names out of code or tables ("RANDOM_MAX", "0x7fff"): where both stand, one speaks of the other."""
    return sum(1 for word in shared if NAME.fullmatch(word)) > 1


def reworded(claim: str, words: Words, source: Source, run: Run) -> bool:
    """The words around a copied part turn it, or are too few to be anything but changes of the document's."""
    ours, theirs = _cover(words, run.first, run.length), _cover(source.words, run.at, run.length)
    start, end = source.touched(theirs)
    beside = source.text[start : theirs[0]], source.text[theirs[1] : end]
    if turned((claim[words.spans[0][0] : ours[0]], claim[ours[1] :]), beside):
        return True
    if run.length == len(words.forms):
        return False
    matcher = SequenceMatcher(None, words.forms, Words.of(source.text[start:end]).forms, autojunk=False)
    equal = sum(block.size for block in matcher.get_matching_blocks())
    return equal >= ALTERED_RATIO * len(words.forms)


def windows(parts: Sequence[Sentence]) -> Iterator[tuple[Span, frozenset[str], float]]:
    """Sentences alone and in neighbouring pairs; pairs count for less."""
    for position, (span, stems) in enumerate(parts):
        yield span, stems, 1.0
        if position + 1 < len(parts):
            following, more = parts[position + 1]
            yield (span[0], following[1]), stems | more, ENOUGH_ALONE


def places(ours: Sequence[str], theirs: Sequence[str]) -> Iterator[int]:
    """Where all of `ours` stands in `theirs`."""
    whole = tuple(ours)
    for at in range(len(theirs) - len(whole) + 1 if whole else 0):
        if theirs[at] == whole[0] and tuple(theirs[at : at + len(whole)]) == whole:
            yield at


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


def _both(words: Words, source: Source, first: int, at: int, count: int) -> tuple[Span, Span]:
    return _cover(source.words, at, count), _cover(words, first, count)


def _extent(words: Words) -> Span:
    return words.spans[0][0], words.spans[-1][1]


def enough(stems: Sequence[str | None]) -> bool:
    return len(stems) >= COPIED_WORDS and sum(1 for s in stems if s) >= COPIED_CONTENT
