"""Checking an answer against the passages it was made from.

The model is never believed: a marker counts only when its passage is in the context, a quote only when it stands
in the stored text, and page numbers come from the index. Sentences without a marker are matched to passages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from rag.compared import Words
from rag.evidence import Evidence, Evidences, places
from rag.figures import KnownNumbers
from rag.metadata import data_words
from rag.sentences import Span, count_words, sentences
from rag.types import Citation, Passage

if TYPE_CHECKING:
    from rag.library import Library

MARKER = re.compile(r"\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\](?!\()")
QUOTED = re.compile(
    r"(?<!\w)\"(?=\S)([^\"\n]+)(?<=\S)\"(?!\w)|“([^”]{1,2000})”|«([^»]{1,2000})»|„([^“”]{1,2000})[“”]"
    r"|»([^«\n]+)«|「([^」]+)」"
)
QUOTED_WORDS = 3  # fewer are a term
OMISSION = re.compile(r"\[?(?:…|\.\.\.)\]?")
CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`", re.DOTALL)
ENDED = re.compile(r"[.!?…:;。！？][*_\"'”’»)\]\s]*$")
ITEM = re.compile(r"\n[ \t]*(?=(?:[-*•–]|\d{1,3}[.)])[ \t]+\S)")
SPACE = re.compile(r"\s+")
WORD_BEFORE = re.compile(r"\w+[ \t]*\Z")


@dataclass(frozen=True)
class Claim:
    """A sentence of the answer, the numbers it is marked with (and where), and its quotes. `whole`: not cut off."""

    span: Span
    markers: tuple[tuple[int, Span], ...]
    quotes: tuple[Span, ...]
    whole: bool = True


def cite(
    answer: str,
    passages: Sequence[Passage] | Mapping[int, Passage],
    library: Library,
    cut: bool = False,
    question: str = "",
    told: Sequence[str] = (),
) -> list[Citation]:
    """Citations in the order of the answer.

    Args:
        passages: what the prompt held: a sequence for the ids [1], [2] and so on, or a mapping from ids.
        cut: the answer did not come to its end; a last sentence without an end may be copied, but is not
            matched by its content words (with a marker: only by as many as a sentence without one needs).
        question: quotations from it need not stand in a passage.
        told: what else the model was told, as earlier questions: their numbers need not stand in a passage either.

    An answer sentence with no marker gets at most one citation per quote, or one in all; below a threshold of
    agreement none. Invented markers, marked sentences that their passage does not bear out, and quotations of three or
    more words that stand nowhere are "not_found"; so is the first number of a sentence that no passage has. The last
    two have marker 0 where they name no passage.
    """
    numbered = dict(passages) if isinstance(passages, Mapping) else dict(enumerate(passages, 1))
    evidences = Evidences({n: p.text for n, p in numbered.items()}, {n: p.heading for n, p in numbered.items()})
    own = own_numbers(answer, numbered)
    texts = (text for passage in numbered.values() for text in (passage.text, passage.heading))
    numbers = KnownNumbers((question, *told, *_of_files(numbered.values(), library), *texts))
    checker = _Checker(answer, numbered, evidences, library, Words.of(question).forms, own, numbers)
    found = claims(answer, own)
    if cut and found and not ENDED.search(answer, *found[-1].span):
        found[-1] = replace(found[-1], whole=False)
    return [citation for claim in found for citation in checker.check(claim)]


def _of_files(passages: Iterable[Passage], library: Library) -> Iterator[str]:
    """Names, and what the files say of themselves."""
    for document in dict.fromkeys(one.document_id for one in passages):
        found = library.document(document)
        yield from (found.name, data_words(found))


def own_numbers(answer: str, passages: Mapping[int, Passage]) -> frozenset[int]:
    """Where in the answer a number in brackets is none of ours but the documents' own ("Note [4]"): copied together
    with the word before it, or standing there where our passages have no such number."""
    texts = [SPACE.sub(" ", passage.text) for passage in passages.values()]

    def copied(match: re.Match[str]) -> bool:
        if not any(match[0] in text for text in texts):
            return False
        numbers = {int(part) for part in re.split(r"[,;]", match[1])}
        before = WORD_BEFORE.search(answer, 0, match.start())
        together = SPACE.sub(" ", before[0] + match[0]) if before else ""
        return not numbers <= passages.keys() or bool(together and any(together in text for text in texts))

    return frozenset(match.start() for match in MARKER.finditer(answer) if copied(match))


def claims(answer: str, own: frozenset[int] = frozenset()) -> list[Claim]:
    """The answer's sentences; a marker belongs to the sentence it stands in or right behind, at the start of a line
    to the one that follows. `own`: where brackets are no markers."""
    plain = MARKER.sub(lambda match: " " * len(match[0]), answer)
    spans = [item for span in sentences(plain) for item in _items(plain, span)]
    marked: dict[int, list[tuple[int, Span]]] = {}
    for match in MARKER.finditer(answer):
        if match.start() in own:
            continue
        owner = _owner(plain, spans, match)
        numbers = [int(part) for part in re.split(r"[,;]", match[1])]
        marked.setdefault(owner, []).extend((number, match.span()) for number in numbers)
    if not spans:
        return [Claim((0, 0), tuple(marked.get(0, ())), ())] if marked else []
    quotes = list(_quotes(plain))
    return [
        Claim(span, tuple(marked.get(n, ())), tuple(q for q in quotes if span[0] <= q[0] < span[1]))
        for n, span in enumerate(spans)
    ]


def _items(text: str, span: Span) -> Iterator[Span]:
    """The span cut where an item of a list begins."""
    starts = [span[0], *(match.end() for match in ITEM.finditer(text, *span)), span[1]]
    for start, end in pairwise(starts):
        told = text[start:end].rstrip()
        if told:
            yield start, start + len(told)


def _owner(plain: str, spans: Sequence[Span], marker: re.Match[str]) -> int:
    line = plain.rfind("\n", 0, marker.start()) + 1
    following = next((n for n, (start, _) in enumerate(spans) if start >= marker.end()), None)
    if following is not None and not plain[line : spans[following][0]].strip(" \t*-•"):
        return following
    return max((n for n, (start, _) in enumerate(spans) if start <= marker.start()), default=0)


def _quotes(text: str) -> Iterator[Span]:
    """What stands in quotation marks, in parts where words are left out; not in code."""
    prose = CODE.sub(lambda match: " " * len(match[0]), text)
    for match in QUOTED.finditer(prose):
        start, end = match.span(match.lastindex or 0)
        cuts = [start, *(place for gap in OMISSION.finditer(prose, start, end) for place in gap.span()), end]
        parts = zip(cuts[::2], cuts[1::2], strict=True)
        yield from (part for part in parts if count_words(prose[slice(*part)]) >= QUOTED_WORDS)


@dataclass(frozen=True)
class _Checker:
    answer: str
    passages: Mapping[int, Passage]
    evidences: Evidences
    library: Library
    asked: tuple[str, ...]  # words of the question
    own: frozenset[int]  # where brackets are the documents' own
    numbers: KnownNumbers

    def check(self, claim: Claim) -> Iterator[Citation]:
        """What bears it out and what does not; of a claim of which nothing else is false, its first invented number."""
        found = list(self._evidence(claim))
        yield from found
        if all(one.ranges for one in found):
            told = [(one.answer_start, one.answer_start + one.answer_count) for one in found]
            invented = self.numbers.invented(self._blanked, *claim.span)
            numbers = (n for n in invented if not any(start <= n[0] < end for start, end in told))
            yield from (self._not_found(0, number) for number in islice(numbers, 1))

    @cached_property
    def _blanked(self) -> str:
        return self._text((0, len(self.answer)))

    def _evidence(self, claim: Claim) -> Iterator[Citation]:
        known = list(dict.fromkeys(number for number, _ in claim.markers if number in self.passages))
        for number, span in claim.markers:
            if number not in self.passages:
                yield self._not_found(number, span)
        quotes = {span: self._quote(claim, span, known) for span in claim.quotes}
        told = [citation for citation in quotes.values() if citation]
        yield from told
        supported = any(citation.ranges for citation in told)
        text = self._without(claim.span, [span for span, one in quotes.items() if one and not one.ranges])
        for number in known:
            if any(citation.marker == number for citation in told):
                continue
            evidence = self._sentence(claim, text, [number], marked=True)
            supported = supported or bool(evidence)
            yield from evidence or ([self._not_found(number, claim.span)] if claim.whole else [])
        if not supported:
            others = [number for number in self.passages if number not in known]
            yield from self._sentence(claim, text, others, marked=False)

    def _quote(self, claim: Claim, span: Span, known: Sequence[int]) -> Citation | None:
        """Where a quote stands; None for one from the question."""
        text = self._text(span)
        evidence = self.evidences.quoted(text, known)
        evidence = evidence or self.evidences.quoted(text, [n for n in self.passages if n not in known])
        if evidence:
            return self._citation(span[0], evidence)
        if next(places(Words.of(text).forms, self.asked), None) is not None:
            return None
        behind = (number for number, place in claim.markers if number in known and place[0] >= span[1])
        return self._not_found(next(behind, known[0] if known else 0), span)

    def _sentence(self, claim: Claim, text: str, numbers: Sequence[int], marked: bool) -> list[Citation]:
        """What bears the claim out as a whole among the passages."""
        evidence = self.evidences.copied(text, numbers)
        if evidence is None and (marked or claim.whole):
            evidence = self.evidences.agreeing(text, numbers, marked and claim.whole)
        return [self._citation(claim.span[0], evidence)] if evidence else []

    def _without(self, span: Span, parts: Sequence[Span]) -> str:
        """The claim with spaces in the place of quotes that stand nowhere."""
        text, offset = self._text(span), span[0]
        for start, end in parts:
            end = min(end, span[1])
            text = text[: start - offset] + " " * (end - start) + text[end - offset :]
        return text

    def _text(self, span: Span) -> str:
        start, end = span

        def blank(match: re.Match[str]) -> str:
            return match[0] if start + match.start() in self.own else " " * len(match[0])

        return MARKER.sub(blank, self.answer[start:end])

    def _citation(self, offset: int, evidence: Evidence) -> Citation:
        passage = self.passages[evidence.number]
        start, end = evidence.source
        ranges = self.library.ranges(passage, start, end - start)
        first, last = evidence.claim
        return Citation(
            marker=evidence.number,
            document_id=passage.document_id,
            document=self.library.document(passage.document_id).name,
            ranges=ranges,
            page_labels=tuple(self.library.page_label(passage.document_id, r.page_index) for r in ranges),
            quote=SPACE.sub(" ", passage.text[start:end]).strip(),
            verified=evidence.verdict,
            answer_start=offset + first,
            answer_count=last - first,
        )

    def _not_found(self, number: int, span: Span) -> Citation:
        passage = self.passages.get(number)
        document = self.library.document(passage.document_id) if passage else None
        return Citation(
            number,
            document.id if document else None,
            document.name if document else "",
            (),
            (),
            "",
            "not_found",
            span[0],
            span[1] - span[0],
        )
