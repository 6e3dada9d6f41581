"""Pages that a reader names by their printed labels: in a question ("page 35") or in a field of its own ("10-20")."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag.late_patterns import late

_DASH = r"(?:-|–|\bto\b|\bthrough\b|\buntil\b)"
_NUMBER = r"(?:[ivxlcdm]+|\d+)\b(?!\.\d)"
_TO = rf"(?:\s*{_DASH}\s*(?:pages?\s+)?{_NUMBER})?"
# Behind a comma or an "and" words as "I" and "did" stand more often than page labels.
_SURE = r"(?:\d+|(?=[ivxl]{2,}\b)(?:xl|l?x{0,3})(?:ix|iv|v?i{0,3}))\b(?!\.\d)"
_NEXT = rf"{_SURE}{_TO}"
# "see page 3, 4 and 5" and "page 3, 4?" are lists; "on page 2, 30 days" and "on page 2, 3 and 30 days" are not.
_END = r"(?=\s*(?:[?!;:)]|\.(?!\d)|$))"
_NO_UNIT = r"(?!\s*[%€$°]|\s+(?:years?|months?|weeks?|days?|hours?|minutes?|seconds?|times|percent|euros?|dollars?)\b)"
_LIST = rf"(?:,\s*{_NEXT})+(?:{_END}|,?\s*(?:&|\band)\s+{_NEXT}{_NO_UNIT})"
_NOT_ME = r"(?!(?-i:I)(?:['’]|\s+(?!(?:to|through|until|and)\b)\w))"  # "the page I mean"; but "page I." and "page i"
PAGES = late(
    r"(?:\b(?<!which )(?<!what )(?=page)|(?=\bpages?\s+(?!i\b)))"  # "on which page i find"
    rf"(?:pages\s+{_NOT_ME}{_NUMBER}{_TO}(?:(?:\s*[,;&]\s*(?:and\s+)?|\s+and\s+){_NEXT})*"
    rf"|page\s+{_NOT_ME}{_NUMBER}{_TO}(?:{_LIST}|(?:,(?=\d)|\s*&\s*|\s+and\s+){_NEXT})*)",
    re.IGNORECASE,
)
# A range in words: what PAGES would take for two pages, or for none. The difference between two pages is about two.
SPELLED = late(
    rf"(?:\b(?<!difference )(?<!differences )(?<!comparison )between\s+(?:the\s+)?pages?|\bpages?\s+between)\s+"
    rf"{_NOT_ME}(?P<low>{_NUMBER})\s*(?:\band\b|{_DASH})\s*(?:(?:pages?\s+){_NOT_ME}(?P<named>{_NUMBER})|(?P<high>{_SURE}))"
    rf"|\bpages?\s+from\s+(?:pages?\s+)?{_NOT_ME}(?P<from>{_NUMBER})\s*{_DASH}\s*(?:pages?\s+)?(?P<to>{_SURE})",
    re.IGNORECASE,
)
# "S. 12" is a page only where German says so: not in "U.S. 10-year yields", not in "the S. 12 bill".
_S = r"(?:(?<=auf )|(?<=siehe )|(?<=vgl\. )|(?<=\()|(?<![.\w])(?=S\.\s*\d+\s*[-–]\s*\d+\b))(?-i:S\.)"
# The same in German, French and Spanish: "auf Seite 12 bis 15", "pages 12 à 15 et 20", "de la página 12 a la 15".
_FOREIGN = {
    rf"(?:seite(?P<plural>n)?|{_S})": (r"bis(?:\s+(?:zur\s+)?seite)?", r"(?:und|sowie)(?:\s+(?:auf\s+)?seite)?"),
    r"page(?P<plural>s)?": (r"(?:jusqu')?(?:à|au)(?:\s+la)?(?:\s+page)?", r"et(?:\s+(?:à\s+)?(?:la\s+)?page)?"),
    r"página(?P<plural>s)?": (r"(?:al?|hasta)(?:\s+la)?(?:\s+página)?", r"[ye](?:\s+(?:en\s+)?(?:la\s+)?página)?"),
}
_WHOLE = (
    r"\d+\b(?!\.\d|,\d|\s*[%€$°]|\s+(?:tage|euro|jahr|mal|prozent|jours|ans|fois|pour cent|días|años|veces|por ciento))"
)


def _foreign(page: str, to: str, also: str) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """All that is named, and what stands for a dash or an "and" in it."""
    between = rf"(?:\s*[-–]\s*|\s+{to}\s+|\s+{also}\s+|(?(plural)\s*,\s*|(?!)))"
    named = rf"\b{page}\s*(?P<pages>\d+\b(?!\.\d)(?:{between}{_WHOLE})*)"
    parts = [late(part, re.IGNORECASE) for part in (named, rf"\s+{to}\s+", rf"\s+{also}\s+|\s*,\s*")]
    return parts[0], parts[1], parts[2]


_FOREIGN_PAGES = tuple(_foreign(page, to, also) for page, (to, also) in _FOREIGN.items())
YEAR = late(r"1[5-9]\d\d|20\d\d")  # "the pages from 1990 to 1995"
SPAN = late(rf"\b(?P<first>[ivxlcdm]+|\d+)\b(?:\s*{_DASH}\s*(?:pages?\s+)?(?P<last>[ivxlcdm]+|\d+)\b)?", re.IGNORECASE)


def may_name_pages(question: str) -> bool:
    """Whether looking for them, which takes the document's labels, is worth it."""
    return re.search(r"page|seite|página|\bS\.", question, re.IGNORECASE) is not None


def named_pages(question: str, labels: Sequence[str]) -> list[range] | None:
    """The file pages (from 0) that a question names by their printed labels, as "page 35", "pages 10 to 20 and 35",
    "between page 10 and 20", in their order, with those that touch joined; a number that is no label counts as a file
    page from 1. None where it names none, or one by a number that is not there; years name none, but where there are
    so many pages."""
    spans = [span for named in _named(question, labels) for span in SPAN.finditer(named)]
    found = [(span["first"], _range(span["first"], span["last"], labels)) for span in spans]
    ranges = [pages for _, pages in found if pages is not None]
    if not ranges or any(pages is None and first.isdigit() for first, pages in found):
        return None
    return _joined(ranges)


def listed_pages(text: str, labels: Sequence[str]) -> list[range] | None:
    """All of a list as "iv", "10-20" or "1-2, 9 and 10", in their order, with those that touch joined. None where
    any part of it is not a page or two with a dash between them, or is not there."""
    text = re.sub(r"^pages?\s+", "", text.strip(), flags=re.IGNORECASE)
    ranges = [_part(part, labels) for part in re.split(r"\s*(?:[,;&]|\band\b)\s*", text)]
    return None if None in ranges else _joined([one for one in ranges if one is not None])


def _named(question: str, labels: Sequence[str]) -> list[str]:
    """The words that name pages, ranges with a dash."""

    def dashed(match: re.Match[str]) -> str:
        low, high = (label for label in match.groups() if label)
        are_years = YEAR.fullmatch(low) and YEAR.fullmatch(high) and _range(low, high, labels) is None
        behind = re.match(r"pages?\s+(?:from|between)\s+(?!page)", match[0], re.IGNORECASE)
        return "" if behind and are_years else f"pages {low}–{high}"

    return [match[0] for match in PAGES.finditer(SPELLED.sub(dashed, _in_english(question)))]


def _in_english(question: str) -> str:
    """Pages that are named in German, French or Spanish, as they would be in English; for "page 12" it is the same."""
    for pages, to, also in _FOREIGN_PAGES:
        question = pages.sub(lambda match, to=to, also=also: _translated(match, to, also), question)  # type: ignore[misc]
    return question


def _translated(match: re.Match[str], to: re.Pattern[str], also: re.Pattern[str]) -> str:
    named = also.sub(" and ", to.sub("–", match["pages"]))
    is_english = match[0].casefold().startswith("page") and not re.search(r"[^\W\d]", match["pages"])
    return match[0] if is_english else f"{'page' if named.isdigit() else 'pages'} {named}"


def _joined(ranges: Sequence[range]) -> list[range]:
    joined: list[range] = []
    for pages in sorted(ranges, key=lambda one: one.start):
        if joined and pages.start <= joined[-1].stop:
            joined[-1] = range(joined[-1].start, max(joined[-1].stop, pages.stop))
        else:
            joined.append(pages)
    return joined


def missing_page(question: str, labels: Sequence[str]) -> str | None:
    """The first page that a question names by its number and that is not there; None: all are, or it names none."""
    numbers = (number for named in _named(question, labels) for number in re.findall(r"\d+", named))
    return next((number for number in numbers if _page(number, labels) is None), None)


def _part(text: str, labels: Sequence[str]) -> range | None:
    if (page := _page(text, labels)) is not None:
        return range(page, page + 1)
    match = re.fullmatch(rf"(?P<first>\S+?)\s*{_DASH}\s*(?P<last>\S+)", text, re.IGNORECASE)
    return _range(match["first"], match["last"], labels) if match else None


def _range(first: str, last: str | None, labels: Sequence[str]) -> range | None:
    start = _page(first, labels)
    end = _page(last, labels) if last else start
    return range(min(start, end), max(start, end) + 1) if start is not None and end is not None else None


def _page(name: str, labels: Sequence[str]) -> int | None:
    folded = [label.casefold() for label in labels]
    if name.casefold() in folded:
        return folded.index(name.casefold())
    return int(name) - 1 if name.isdigit() and 0 < int(name) <= len(labels) else None
