"""Questions about the shelf itself, answered from the catalogue: a model that sees a few passages believes that
they are all there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag import question_foreign as foreign
from rag.late_patterns import late
from rag.metadata import data_words
from rag.page_names import missing_page
from rag.scope import Chapter
from rag.types import Document

FILES = frozenset(("file", "files", "document", "documents", "pdf", "pdfs", "book", "books"))
PARTS = frozenset(("chapter", "section", "part"))
CHAPTERS = frozenset(("chapters", "sections", "parts", "contents", "outline"))
PAGES = frozenset(("page", "pages", "long"))
DATA = frozenset(("title", "titles", "author", "authors", "date", "dates"))
ASKING = frozenset(("how", "many", "which", "what", "list", "show", "name", "number", "count"))
_FILLER = """
article brochure contract guide handbook manual paper presentation report text textbook thesis
a all an and any are attached available been can conversation chat contain contained contains do does each every from
give got had has have here i in is it its library loaded me much my of off on open please see shelf tell that the
their them there these they this to uploaded us we with you your table
"""
FILLER = frozenset(_FILLER.split())
WORD = late(r"\w+")
_DETERMINERS = (
    "a all an any are attached available every loaded me my of our please the their there these uploaded us your"
)
_BETWEEN = f"(?: (?:{_DETERMINERS.replace(' ', '|')}))*"
_ASKED = "(?:how many|which|what(?: is)?|list|name|show|number|count)"
_NOUN = "(?:files|documents|pdfs|books|chapters|sections|parts|pages|outline|table of contents)"
# "which files", "list all the chapters", "how many files and chapters"; not "what is in the files"
LISTED = late(
    rf"\b{_ASKED}{_BETWEEN} (?P<nouns>{_NOUN}(?: and{_BETWEEN} {_NOUN})*)\b"
    r"|\b(?P<contents>(?:list|show)(?: me)?(?: the)? contents)\b"
)
# "list the titles and authors of all documents"; of one document its text tells more than the file says of itself
_DATA = rf"(?:{'|'.join(sorted(DATA, key=len, reverse=True))})"
DATA_LISTED = late(
    rf"\b{_ASKED}{_BETWEEN} {_DATA}(?: and{_BETWEEN} {_DATA})* of{_BETWEEN} (?:files|documents|pdfs|books)\b"
    rf"|\b{_ASKED}{_BETWEEN} (?:files|documents|pdfs|books) (?:with|and) (?:their|the) {_DATA}"
    rf"(?: and{_BETWEEN} {_DATA})*$"
)
NAMED = late(
    r"\bname of (?:this|that|the|my) (?:file|document|pdf|book)\b|\bwhich (?:file|document|pdf|book) is"
    r" (?:attached|available|loaded|open|uploaded)\b"
)
LENGTH = late(r"\bhow long (?:is|are)\b")
COUNTED = late(r"\b(?:how many|number|count)\b")
MOST_LISTED = 60


@dataclass(frozen=True)
class Entry:
    """A document with the chapters of its outline."""

    document: Document
    chapters: tuple[Chapter, ...] = ()


def subjects(question: str, names: Sequence[str]) -> tuple[str, ...]:
    """What of the catalogue a question asks for: "files", "chapters", "pages"; nothing when it asks for what stands
    in the documents, as "what is in this file" does. Every word has to belong to such a question, or to a document's
    name; and something has to be counted or listed."""
    words = [word.casefold() for word in WORD.findall(question)]
    known = {part.casefold() for name in names for part in WORD.findall(name)}
    if (
        not set(words) <= ASKING | FILLER | FILES | PARTS | CHAPTERS | PAGES | DATA | known
        or set(words) & PARTS - known
    ):
        return foreign.catalogue(question, known)
    text = " ".join(words)
    if set(words) & DATA - known:
        return ("files",) if DATA_LISTED.search(text) else ()
    nouns = set(WORD.findall(" ".join(found["nouns"] or "contents" for found in LISTED.finditer(text))))
    asked: dict[str, object] = {"files": nouns & FILES or NAMED.search(text), "chapters": nouns & CHAPTERS}
    length = LENGTH.search(text) and set(words) & (FILES | known)
    asked["pages"] = length or (nouns & PAGES and COUNTED.search(text))
    return tuple(name for name, found in asked.items() if found)


def answer(question: str, entries: Sequence[Entry]) -> str | None:
    """The answer as text with one line per item, or None when the catalogue does not have it."""
    asked = subjects(question, [entry.document.name for entry in entries])
    if not asked or not entries:
        return None
    meant = _named(question, entries) or list(entries)
    told = []
    if "files" in asked:
        told.append(_files(entries))
    elif "pages" in asked:
        told.append("\n".join(_pages(entry.document) for entry in meant))
    if "chapters" in asked:
        told.append("\n".join(_chapters(entry) for entry in meant))
    return "\n\n".join(told)


def no_such_page(question: str, labels: Sequence[tuple[str, Sequence[str]]]) -> str | None:
    """What to say where a question names a page that none of the documents has; None: one has it, or none is named.

    Args:
        labels: names of the documents and the printed labels of their pages; none of one that is not read yet.
    """
    missing = [missing_page(question, pages) if pages else None for _, pages in labels]
    if not missing or None in missing:
        return None
    lines = [f"There is no page {missing[0]}.", *(_labelled(name, pages) for name, pages in labels)]
    return "\n".join(lines if len(labels) == 1 else [lines[0], *(f"- {line}" for line in lines[1:])])


def _labelled(name: str, labels: Sequence[str]) -> str:
    if len(labels) < 2:
        return f"{name} has {_page_count(len(labels))}."
    return f"{name} has {_page_count(len(labels))}, {labels[0]} to {labels[-1]}."


def _page_count(count: int) -> str:
    return f"{count:,} {'page' if count == 1 else 'pages'}"


def _named(question: str, entries: Sequence[Entry]) -> list[Entry]:
    """Entries whose name (without its ending) the question has."""
    folded = question.casefold()
    return [entry for entry in entries if entry.document.name.casefold().removesuffix(".pdf") in folded]


def _files(entries: Sequence[Entry]) -> str:
    count = len(entries)
    lines = ["There is 1 document:" if count == 1 else f"There are {count} documents:"]
    return "\n".join([*lines, *(f"- {_described(entry.document)}" for entry in entries)])


def _described(document: Document) -> str:
    """`manual.pdf: 120 pages; title “Manual”, author “A. Writer”`."""
    return "; ".join(filter(None, (_pages(document), data_words(document))))


def _pages(document: Document) -> str:
    unread = len(document.unreadable_pages)
    note = f", {unread:,} of them could not be read" if unread else ""
    return f"{document.name}: {_page_count(document.pages)}{note}"


def _chapters(entry: Entry) -> str:
    top = [chapter for chapter in entry.chapters if chapter.level == 0]
    if not top:
        return f"{entry.document.name} has no outline, so its chapters are not known."
    noun = "chapter" if len(top) == 1 else "chapters"
    lines = [f"{entry.document.name} has {len(top)} {noun} in its outline:"]
    lines += [f"- {chapter.title}" for chapter in top[:MOST_LISTED]]
    return "\n".join(lines if len(top) <= MOST_LISTED else [*lines, f"- and {len(top) - MOST_LISTED} more"])
