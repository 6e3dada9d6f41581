"""Checking an answer against the passages it was made from.

The model is never believed: a marker counts only when its passage is in the context, a quote only when it stands
in the stored text, and page numbers come from the index. Sentences without a marker are matched to passages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rag.evidence import Evidence, Evidences
from rag.sentences import Span, sentences
from rag.types import Citation, Passage

if TYPE_CHECKING:
    from rag.library import Library

MARKER = re.compile(r"\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\](?!\()")
QUOTED = re.compile(r"\"([^\"\n]{12,})\"|“([^”]{12,})”|«([^»]{12,})»|„([^“”]{12,})[“”]")
ENDED = re.compile(r"[.!?…:;。！？][*_\"'”’»)\]\s]*$")
SPACE = re.compile(r"\s+")


@dataclass(frozen=True)
class Claim:
    """A sentence of the answer, the numbers it is marked with (and where), and its quotes. `whole`: not cut off."""

    span: Span
    markers: tuple[tuple[int, Span], ...]
    quotes: tuple[Span, ...]
    whole: bool = True


def cite(
    answer: str, passages: Sequence[Passage] | Mapping[int, Passage], library: Library, cut: bool = False
) -> list[Citation]:
    """Citations in the order of the answer.

    Args:
        passages: what the prompt held: a sequence for the ids [1], [2] and so on, or a mapping from ids.
        cut: the answer did not come to its end; a last sentence without an end may be copied, but is not
            matched by its content words (with a marker: only by as many as a sentence without one needs).

    An answer sentence with no marker gets at most one citation per quote, or one in all; below a threshold of
    agreement none. Invented markers, and marked sentences that their passage does not bear out, are "not_found".
    """
    numbered = dict(passages) if isinstance(passages, Mapping) else dict(enumerate(passages, 1))
    evidences = Evidences({number: passage.text for number, passage in numbered.items()})
    checker = _Checker(answer, numbered, evidences, library)
    found = claims(answer)
    if cut and found and not ENDED.search(answer, *found[-1].span):
        found[-1] = replace(found[-1], whole=False)
    return [citation for claim in found for citation in checker.check(claim)]


def claims(answer: str) -> list[Claim]:
    """The answer's sentences; a marker belongs to the sentence it stands in or right behind, at the start of a line
    to the one that follows."""
    plain = MARKER.sub(lambda match: " " * len(match[0]), answer)
    spans = sentences(plain)
    marked: dict[int, list[tuple[int, Span]]] = {}
    for match in MARKER.finditer(answer):
        owner = _owner(plain, spans, match)
        numbers = [int(part) for part in re.split(r"[,;]", match[1])]
        marked.setdefault(owner, []).extend((number, match.span()) for number in numbers)
    if not spans:
        return [Claim((0, 0), tuple(marked.get(0, ())), ())] if marked else []
    return [Claim(span, tuple(marked.get(n, ())), _quotes(plain, span)) for n, span in enumerate(spans)]


def _owner(plain: str, spans: Sequence[Span], marker: re.Match[str]) -> int:
    line = plain.rfind("\n", 0, marker.start()) + 1
    following = next((n for n, (start, _) in enumerate(spans) if start >= marker.end()), None)
    if following is not None and not plain[line : spans[following][0]].strip(" \t*-•"):
        return following
    return max((n for n, (start, _) in enumerate(spans) if start <= marker.start()), default=0)


def _quotes(text: str, span: Span) -> tuple[Span, ...]:
    found = QUOTED.finditer(text, *span)
    return tuple(match.span(match.lastindex or 0) for match in found)


@dataclass(frozen=True)
class _Checker:
    answer: str
    passages: Mapping[int, Passage]
    evidences: Evidences
    library: Library

    def check(self, claim: Claim) -> Iterator[Citation]:
        known = list(dict.fromkeys(number for number, _ in claim.markers if number in self.passages))
        for number, span in claim.markers:
            if number not in self.passages:
                yield self._not_found(number, span)
        supported = False
        for number in known:
            evidence = self._best(claim, [number], marked=True)
            supported = supported or bool(evidence)
            yield from evidence or ([self._not_found(number, claim.span)] if claim.whole else [])
        if not supported:
            yield from self._best(claim, [number for number in self.passages if number not in known], marked=False)

    def _best(self, claim: Claim, numbers: Sequence[int], marked: bool) -> list[Citation]:
        """What bears the claim out among the passages: its quotes, else the sentence as a whole."""
        quoted = [(span, self.evidences.copied(self._text(span), numbers)) for span in claim.quotes]
        found = [self._citation(span[0], evidence) for span, evidence in quoted if evidence]
        if found:
            return found
        text = self._text(claim.span)
        evidence = self.evidences.copied(text, numbers)
        if evidence is None and (marked or claim.whole):
            evidence = self.evidences.agreeing(text, numbers, marked and claim.whole)
        return [self._citation(claim.span[0], evidence)] if evidence else []

    def _text(self, span: Span) -> str:
        start, end = span
        return MARKER.sub(lambda match: " " * len(match[0]), self.answer[start:end])

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
