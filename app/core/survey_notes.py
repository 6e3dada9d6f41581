"""What the notes of a survey say: nothing, a few sentences, or the entries of a list.

Small models repeat lines, are cut in the middle of a word, and say "not here" in many ways; nothing of that is shown
as if it had been found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from rag.coverage import says_not_found
from rag.sentences import sentences

MARKER = re.compile(r"\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\](?!\()")
BEFORE_POINT = re.compile(rf"(?: *{MARKER.pattern})+(?=[.,;:])")
MORE = "…"  # ends a note that was cut
UNUSABLE = "–"  # a note of which the pages bear nothing out
SENTENCE_END = re.compile(r"(?<=[^\s\d][.!?。！？])[\"'”’)\]]*\s+|(?<=[。！？])|\n")
ARTICLE = re.compile(r"^\W*(?:an?|the)\s+", re.IGNORECASE)
SECTION = re.compile(r"^\W*\d+(?:\.\d+){2,}\.?\s+(?=[^\W\d])")  # with less points it may be a measure
NUMBERED = re.compile(r"(?<!\S)\d{1,3}[.)](?=\s|$)")
EMPTY_ITEM = re.compile(r"(?:\n\s*(?:[-*•–]|\d{1,3}[.)]))+\s*$")  # the model stopped before it said anything there
BULLET = re.compile(r"^\s*(?:[-*•–]|\d{1,3}[.)])\s+(?=\S)")
# "The answer to this question is:", also twice
LEAD_IN = re.compile(
    r"^(?:(?:here (?:is|are)|(?:the|this|these)\b[^.:\n]*\b(?:answers?|questions?|passages?|points|summary|list)\b)"
    r"[^.:\n]{0,80}:\s+(?=\S))+",
    re.IGNORECASE,
)
LABEL = re.compile(r"^\s*\[\d{1,4}\][^.!?:…\n]{1,60}…?\s*$")  # "[14] Boxplot": a heading, not a finding
NOTHING = re.compile(r"^\W*(?:(?:[\w’']+\s+){0,5}not here|none|nothing|n/?a|no)\W*$", re.IGNORECASE)
ABOUT_SOURCE = re.compile(
    r"\b(?:passages?|texts?|documents?|sections?|parts?|pages?|excerpts?|context|information|mention|answer|question"
    r"|they|there|it)\b",
    re.IGNORECASE,
)


def renumbered(text: str, first_marker: int, count: int) -> str:
    """Markers 1 to `count` of a part's own numbering as those of the survey; invented ones are left out."""

    def names(match: re.Match[str]) -> str:
        numbers = [int(one) for one in re.split(r"[,;]", match[1])]
        known = [first_marker + n - 1 for n in numbers if 1 <= n <= count]
        return "".join(f"[{n}]" for n in known)

    return MARKER.sub(names, text)


def without_markers(text: str) -> str:
    return MARKER.sub("", BEFORE_POINT.sub("", text))


def says_nothing(note: str) -> bool:
    """None of its sentences says anything but that there is nothing: "must not contain spaces" is a finding."""
    bare = without_markers(note).strip()
    if len(NUMBERED.findall(bare)) > 1:
        bare = NUMBERED.sub("", bare)
    return all(_nothing(sentence) for sentence in SENTENCE_END.split(bare) if sentence)


def _nothing(sentence: str) -> bool:
    if not any(c.isalnum() for c in sentence) or NOTHING.match(NUMBERED.sub("", sentence)):
        return True
    return says_not_found(sentence) and ABOUT_SOURCE.search(sentence) is not None


def tidied(note: str, cut: bool) -> str:
    """The note without repeated lines. One that was `cut` ends with its last whole sentence or line, and MORE."""
    text = EMPTY_ITEM.sub("", LEAD_IN.sub("", note.strip()))
    if cut:
        ends = [match.start() for match in SENTENCE_END.finditer(text)]
        text = f"{text[: ends[-1]].rstrip() if ends else text} {MORE}"
    return "\n".join(_once(text.splitlines()))


def without_labels(note: str) -> str:
    """A summary without lines that only give a passage's number and heading; as it is where it has no others."""
    kept = [line for line in note.splitlines() if not LABEL.match(line)]
    ended = [MORE] if note.endswith(MORE) and kept and not kept[-1].endswith(MORE) else []
    return "\n".join([*kept, *ended]) if any(line.strip() for line in kept) else note


def entries(note: str) -> list[str]:
    """The items of a list; of a note without any, its sentences."""
    whole = note.removesuffix(MORE).strip()
    items = [BULLET.sub("", line).strip() for line in whole.splitlines() if BULLET.match(line)]
    if not items:
        items = told_apart(" ".join(whole.split()))
    return [item for item in items if not item.endswith(":")]  # "These are the fees:"


def told_apart(prose: str) -> list[str]:
    """Its sentences; a single word that ends with a point ("Phys.") goes on in the next."""
    found: list[str] = []
    start = 0
    for first, end in sentences(prose):
        if len(prose[first:end].split()) > 1 or end == len(prose):
            found.append(prose[start:end].strip())
            start = end
    return found


def kept_entries(note: str, prove: Callable[[str], str]) -> str:
    """The entries of a note as `prove` gives them back, "" for one that is not true; UNUSABLE when none is left."""
    if says_nothing(note):
        return note
    found = listed(filter(None, map(prove, entries(without_markers(note)))))
    return (f"{found}\n{MORE}" if note.endswith(MORE) else found) if found else UNUSABLE


def listed(items: Iterable[str]) -> str:
    """Entries in one list, each once."""
    return "\n".join(f"- {item}" for item in _once(items))


def told_words(line: str) -> tuple[str, ...]:
    """Its words, without an article or the number of a section at its beginning."""
    return tuple(re.findall(r"\w+", ARTICLE.sub("", SECTION.sub("", without_markers(line))).casefold()))


def _once(lines: Iterable[str]) -> list[str]:
    """Lines without those whose words were in one before, whatever the number of a section before them; lines without
    letters stay."""
    kept: dict[object, str] = {}
    for number, line in enumerate(lines):
        words = told_words(BULLET.sub("", line))
        kept.setdefault(tuple(words) if any(c.isalpha() for c in "".join(words)) else number, line)
    return list(kept.values())
