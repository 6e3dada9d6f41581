"""Reading a whole document in parts: which passages go together, and how the notes on them are brought together.

For questions that a few passages cannot answer ("summarise", "list all", "how many", "compare"). The plan is data:
whoever carries it out can stop after any part and go on later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from rag.protocols import TokenCounter
from rag.types import Passage

WHOLE = re.compile(
    r"\b(?:summar(?:y|ies|i[sz]e[ds]?|i[sz]ing)|overview|outline|tl;?dr|main (?:points|ideas|arguments)|key points"
    r"|in total|altogether)\b"
    r"|\b(?:list|name|find|show|give(?: me)?|what are|which are|enumerate)\s+(?:of\s+)?(?:all|every|each)\b"
    r"|\bhow (?:many|often)\b|\bcount\b"
    r"|\bwhat is (?:this|the) (?:document|book|file|paper|text|article|report|manual) about\b"
    r"|\bcompar(?:e|ison|ing)\b|\bdifferences? between\b.*\bchapters?\b",
    re.IGNORECASE,
)

LIST = re.compile(
    r"^\W*(?:please\s+)?(?:list|enumerate)\b"
    r"|\b(?:list|name|find|show|give(?: me)?|what are|which are|enumerate)\s+(?:of\s+)?(?:all|every|each)\b",
    re.IGNORECASE,
)
_TOLD = r"(?:mentioned|listed|named|described|defined|discussed|covered|shown|introduced|distinguished)"
_THINGS = r"(?P<things>[^?.;:,]+?)"
_END = r"\s*[?.!]*\s*$"
COUNTS = (
    re.compile(rf"\bhow many {_THINGS}\s+(?:are|is|were)\s+(?P<rest>(?:there|{_TOLD})\b[^?.;:,]*){_END}", re.I),
    re.compile(rf"\bhow many {_THINGS}\s+do(?:es)?\s+(?P<rest>[^?.;:,]+?)\s+"
               rf"(?:mention|list|name|describe|define|discuss|cover|introduce|distinguish){_END}", re.I),
    re.compile(r"^\W*(?:(?:please|(?:can|could|would|will)\s+you)\s+)*count\s+(?:all|every|each|the)\s+(?:of\s+the\s+)?"
               rf"{_THINGS}(?P<rest>){_END}", re.I),
)  # fmt: skip
# Their number stands in the text: so many of these are said to be, instead of told one by one.
NUMBERED = re.compile(
    r"\b(?:(?:milli|micro|nano)?seconds|minutes|hours|days|nights|weeks|fortnights|months|quarters|years|decades|centuries"
    r"|times|euros?|dollars|pounds|cents|francs|yen|percent|per\s*cent|percentages?|degrees|(?:kilo|centi|milli)?met(?:er|re)s"
    r"|miles|feet|inches|yards|(?:kilo|milli)?grams|tons|tonnes|lit(?:er|re)s|bits|(?:kilo|mega|giga)?bytes|[kmg]b"
    r"|volts|watts|calories|seats|beds|copies|votes)\b",
    re.IGNORECASE,
)
MANY = re.compile(
    r"\b(?:people|persons?|men|women|children|inhabitants|residents|citizens|members|employees|workers|staff|students|pupils"
    r"|teachers|guests|visitors|participants|users|customers|patients|points|words|lines|letters)\b",
    re.IGNORECASE,
)
# What a text tells one by one, wherever it is "there" for.
TOLD_ONE_BY_ONE = re.compile(
    r"\b(?:ways|kinds|types|sorts|forms|categories|methods|options|reasons|arguments|examples|steps|rules|exceptions"
    r"|conditions|requirements|principles|criteria)\b",
    re.IGNORECASE,
)
_PLACE = r"(?:chapter|section|part|appendix|page|document|file|book|paper|text|report|manual|article|edition)s?"
IN_TEXT = re.compile(
    rf"(?:about|concerning|regarding|{_TOLD})\b|(?:in|on)\s+(?:(?:the|this|that|these|those|all|each)\s+)?(?:\w+\s+)?{_PLACE}\b",
    re.IGNORECASE,
)
MORE_ASKED = re.compile(
    r"\b(?:how|what|which|who|whose|when|where|why)\b|\b(?:and|or|but)\s+(?:is|are|do|does)\b", re.IGNORECASE
)
_ASKS = (
    "please can could would will you what which is are was were explain describe give tell show list name find make"
    " write draw me us all every any the a an main key major biggest important essential short brief detailed there"
)
# The whole question is that comparison: of one with more in it everything is read.
_ASKED = rf"^\W*(?:(?:{_ASKS.replace(' ', '|')})\s+)*"
_ONE, _OTHER = r"(?P<one>[^?.;:,]+?)", rf"(?P<other>[^?.;:,]+?){_END}"
SIDES = (
    re.compile(rf"{_ASKED}compare\s+{_ONE}\s+(?:with|to|and|against|versus|vs\.?)\s+{_OTHER}", re.I),
    re.compile(rf"{_ASKED}comparison\s+(?:of|between)\s+{_ONE}\s+(?:with|to|and|versus|vs\.?)\s+{_OTHER}", re.I),
    re.compile(rf"{_ASKED}differences?\s+between\s+{_ONE}\s+and\s+{_OTHER}", re.I),
    re.compile(rf"^\W*{_ONE}\s+(?:versus|vs\.?)\s+{_OTHER}", re.I),
)
# Words of a clause, or of a third side.
NO_SIDE = re.compile(
    r"\b(?:and|or|but|with|to|against|versus|vs|between|than|from|how|what|which|who|whose|when|where|why|if|whether|is|are"
    r"|was|were|be|been|do|does|did|has|have|had|can|could|may|might|must|shall|should|will|would|changed?|say|says|said"
    r"|i|me|my|you|your|he|him|his|she|her|we|us|our|they|their|its)\b",
    re.IGNORECASE,
)
NO_TOPIC = re.compile(
    r"\b(?:chapters?|sections?|parts?|appendix|appendices|pages?|documents?|files?|books?|papers?|texts?|editions?"
    r"|versions?|it|them|each|all|other|others|this|that|these|those)\b|\.pdf\b",
    re.IGNORECASE,
)
SIDE_WORDS = 8
MOST_WORDS = 60  # what is longer asks for more than one thing
FILE_NAME = re.compile(r"\S+\.pdf\b", re.IGNORECASE)
_SUMMARY = """
a about all an and arguments book brief briefly can content contents could document documents dr file files give ideas
in is it its key long main make manual me of outline overview paper pdf please points report short summaries summarise
summarize summary tell text the this tl tldr us what whole write you
"""
SUMMARY_WORDS = frozenset(_SUMMARY.split())


@dataclass(frozen=True)
class Part:
    """Passages `first` to `last` (positions in the sequence planned for, both included), read in one go.

    Attributes:
        title: heading they have in common.
        tokens: what they take.
    """

    title: str
    first: int
    last: int
    tokens: int


class Sized(Protocol):
    """What a plan has to know of a part."""

    @property
    def tokens(self) -> int: ...


PartT = TypeVar("PartT", bound=Sized, covariant=True)


@dataclass(frozen=True)
class ReadingPlan(Generic[PartT]):
    """Attributes:
    parts: in reading order; together they hold every passage once.
    rounds: how notes are joined: each round has groups of positions in the notes of the round before (the first:
        of the parts). The last round has one group. Empty when one part is all there is.
    """

    parts: tuple[PartT, ...]
    rounds: tuple[tuple[tuple[int, ...], ...], ...]

    @property
    def steps(self) -> int:
        """Answers to be generated."""
        return len(self.parts) + sum(len(groups) for groups in self.rounds)

    @property
    def tokens(self) -> int:
        """Tokens of the document that are read."""
        return sum(part.tokens for part in self.parts)


def wants_whole(question: str) -> bool:
    """A few passages cannot answer this question."""
    return WHOLE.search(question) is not None


def wants_list(question: str) -> bool:
    """It asks for entries, which are collected and not told again."""
    return LIST.search(question) is not None


def counted(question: str) -> str:
    """What it has counted, asked for as a list; "" for others, and where the number may stand in the text ("how many
    days may a guest stay", "how many seats are there in the hall")."""
    question = _alone(question)
    match = next((found for count in COUNTS if (found := count.search(question))), None)
    if match is None:
        return ""
    things, rest = match["things"].strip(), match["rest"].strip()
    if NUMBERED.search(things) or MORE_ASKED.search(f"{question[: match.start()]} {rest}"):
        return ""
    if match.re is COUNTS[1]:
        return f"List all {things} of {rest}."
    there = re.match(r"there\b\s*", rest, re.IGNORECASE)
    told = rest[there.end() :] if there else rest and f"that are {rest}"
    if there and not _told_one_by_one(things, told):
        return ""
    return f"List all {things} {told}".rstrip() + "."


def _alone(question: str) -> str:
    """Its words with one space between them; "" where there is more in it than one short question."""
    words = question.split()
    return " ".join(words) if len(words) <= MOST_WORDS else ""


def _told_one_by_one(things: str, where: str) -> bool:
    """What "there is" is told each by itself; in doubt its number is."""
    if IN_TEXT.match(where) or TOLD_ONE_BY_ONE.search(things):
        return True
    return not where and not MANY.search(things)


def collects(question: str) -> bool:
    """Its answer is a list of entries, each from its own place."""
    return wants_list(question) or bool(counted(question))


def compared(question: str) -> tuple[str, str] | None:
    """The two topics that are to be compared; None where it names none, parts of the documents, or more than that:
    then everything has to be read."""
    question = _alone(question)
    match = next((found for sides in SIDES if (found := sides.search(question))), None)
    if match is None:
        return None
    one, other = (re.sub(r"^(?:the|an?)\s+", "", side.strip(), flags=re.I) for side in match.group("one", "other"))
    if any(words.search(side) for words in (NO_TOPIC, NO_SIDE) for side in (one, other)):
        return None
    longest = max(len(one.split()), len(other.split()))
    return (one, other) if longest <= SIDE_WORDS and one.casefold() != other.casefold() else None


def wants_summary(question: str) -> bool:
    """It asks what a document says, about nothing in particular: every part of it has an answer."""
    words = {word.casefold() for word in re.findall(r"\w+", FILE_NAME.sub("document", question))}
    return wants_whole(question) and words <= SUMMARY_WORDS


def reading_plan(passages: Sequence[Passage], budget: int, note: int, count: TokenCounter) -> ReadingPlan[Part]:
    """A plan in which no part and no group of notes is over the budget.

    Args:
        passages: of one document or chapter, in reading order.
        budget: tokens for the text of one step; a single passage that is longer is a part by itself.
        note: tokens a note on a part may take.
    """
    sizes = [count(passage.text) for passage in passages]
    headings = [tuple(passage.heading.split(" > ")) if passage.heading else () for passage in passages]
    spans = list(_packed(_split(headings, sizes, 0, len(passages), 0, budget), sizes, budget))
    parts = tuple(
        Part(" > ".join(_common(headings[first:end])), first, end - 1, sum(sizes[first:end])) for first, end in spans
    )
    return ReadingPlan(parts, tuple(_rounds(len(parts), max(2, budget // max(1, note)))))


Span = tuple[int, int]  # of passages: first, end


def _split(
    headings: Sequence[tuple[str, ...]], sizes: Sequence[int], first: int, end: int, depth: int, budget: int
) -> Iterator[Span]:
    """The span, or its sections of the next level while it is over the budget; passages where there are none."""
    if first == end:
        return
    if sum(sizes[first:end]) <= budget or end - first == 1:
        yield first, end
        return
    if all(len(heading) <= depth for heading in headings[first:end]):
        yield from ((n, n + 1) for n in range(first, end))
        return
    start = first
    for n in range(first + 1, end + 1):
        if n == end or headings[n][: depth + 1] != headings[start][: depth + 1]:
            yield from _split(headings, sizes, start, n, depth + 1, budget)
            start = n


def _packed(spans: Iterator[Span], sizes: Sequence[int], budget: int) -> Iterator[Span]:
    """Neighbours joined as long as they fit together."""
    held: Span | None = None
    for first, end in spans:
        if held is not None and sum(sizes[held[0] : end]) <= budget:
            held = (held[0], end)
            continue
        if held is not None:
            yield held
        held = (first, end)
    if held is not None:
        yield held


def _common(headings: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    shortest = min(headings, key=len)
    same = [all(heading[n] == shortest[n] for heading in headings) for n in range(len(shortest))]
    return shortest[: [*same, False].index(False)]


def _rounds(notes: int, group: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Groups of about equal size until one note is left."""
    while notes > 1:
        groups = -(-notes // group)
        borders = [round(n * notes / groups) for n in range(groups + 1)]
        yield tuple(tuple(range(borders[n], borders[n + 1])) for n in range(groups))
        notes = groups
