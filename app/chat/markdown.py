"""Markdown of an answer as blocks the transcript can show: prose (HTML for rich text), code, tables.

Parsing is CommonMark with tables, strikethrough and dollar mathematics, where a dollar before a digit
stays a dollar. HTML in the text is shown as text. Two citation forms become links `cite:N`: `[N]` written
by the model, where N is a known marker, and the marks that `mark_citations` puts behind the sentences that a
passage supports. A block that would lose characters of its source as Markdown is shown as plain text.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from app.core.records import StoredCitation
from app.core.shown_numbers import BRACKETS, as_numbers, shown_numbers

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_OPEN, _CLOSE = "\ue000", "\ue001"
_MARK = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_CODE_SPAN = re.compile(r"`[^`]+`")
_LIST_MARKS = re.compile(r"^[ \t>]*(?:(?:\d{1,9}[.)]|[-+*])(?:[ \t]+|$))+", re.MULTILINE)


@dataclass(frozen=True)
class Prose:
    html: str


@dataclass(frozen=True)
class Code:
    language: str
    text: str


@dataclass(frozen=True)
class Table:
    html: str


Block = Prose | Code | Table


@dataclass(frozen=True)
class Parsed:
    """`tail_start`: where in the source the last block begins; what lies before it will not change."""

    blocks: tuple[Block, ...]
    tail_start: int


def parse(text: str, markers: Iterable[int] | Mapping[int, int] = ()) -> Parsed:
    """Blocks of `text`; `markers`: the citations that may become links, with the numbers shown for them."""
    groups = list(_groups(_parser().parse(_with_kept_bars(text))))
    known, lines = as_numbers(markers), text.split("\n")
    made = (_block(group, known, _source(group, lines)) for group in groups)
    blocks = tuple(block for block in made if block is not None)
    return Parsed(blocks, _line_offset(text, _first_line(groups[-1])) if groups else 0)


def mark_citations(text: str, citations: Sequence[StoredCitation]) -> str:
    """`text` with a mark behind every supported part whose number the model did not write itself.

    The mark stands exactly where the support ends: what follows it in the sentence is not supported.
    """
    shown = shown_numbers(text, citations)
    marks: dict[int, list[int]] = {}
    for citation in citations:
        end = citation.answer_start + citation.answer_count
        written = f"[{citation.marker}]" in text[citation.answer_start : end + 8]
        if citation.answer_count and not written:
            marks.setdefault(_before_space(text, min(end, len(text))), []).append(citation.marker)
    for place in sorted(marks, reverse=True):
        numbers = "".join(f"{_OPEN}{number}{_CLOSE}" for number in sorted(set(marks[place]), key=shown.__getitem__))
        text = text[:place] + numbers + text[place:]
    return text


def plain(text: str) -> str:
    """Without citation marks, for copying."""
    return _MARK.sub("", text)


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    parser.disable(["image", "reference"])  # a definition of a reference shows nothing
    return parser.use(dollarmath_plugin, allow_space=False, allow_digits=False, double_inline=True)


def _with_kept_bars(text: str) -> str:
    """Bars in the code of a table's cell belong to it, though CommonMark's tables want them escaped: models don't."""
    if "|" not in text or "`" not in text:
        return text
    lines = (_CODE_SPAN.sub(_escaped, line) if line.lstrip().startswith("|") else line for line in text.split("\n"))
    return "\n".join(lines)


def _escaped(code: re.Match[str]) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", code[0])


def _groups(tokens: Sequence[Token]) -> Iterable[list[Token]]:
    """Top-level blocks: tokens from an opening at level 0 to its closing."""
    group: list[Token] = []
    depth = 0
    for token in tokens:
        group.append(token)
        depth += token.nesting
        if depth == 0:
            yield group
            group = []


def _block(group: list[Token], known: Mapping[int, int], source: str) -> Block | None:
    first = group[0]
    if first.type in ("fence", "code_block"):
        return Code(first.info.strip(), _MARK.sub("", first.content).rstrip("\n"))
    if _loses_text(group, source):
        return Prose(_as_typed(source, known))
    rendered = _render(group, known)
    if first.type == "table_open":
        return Table(rendered.replace("<table>", '<table cellspacing="0" cellpadding="6" border="1">'))
    return Prose(rendered) if rendered.strip() else None


def _source(group: list[Token], lines: Sequence[str]) -> str:
    first, after = group[0].map or (0, 0)
    return "\n".join(lines[first:after])


def _as_typed(source: str, known: Mapping[int, int]) -> str:
    shown = html.escape(source.strip("\n"), quote=False)
    return _link_citations(f'<p style="white-space: pre-wrap">{shown}</p>', known)


def _loses_text(group: list[Token], source: str) -> bool:
    """Whether characters of `source` are neither in the rendered text nor in a list's numbers or a link."""
    if group[0].type == "hr":
        return False
    shown = "".join(_shown(group))
    if not shown.strip():
        return bool(source.strip())
    return _hides_numbers(group) or bool(_letters(_LIST_MARKS.sub("", source)) - _letters(shown))


def _shown(tokens: Iterable[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type != "inline":
            yield token.content + token.info
        for child in token.children or ():
            yield child.content
            yield from (unquote(str(value)) for value in child.attrs.values())


def _hides_numbers(tokens: Sequence[Token]) -> bool:
    """Lists that begin inside an item's own marker, as `1. 2. 3.` does: only the innermost number shows."""
    lists = ("ordered_list_open", "bullet_list_open")
    starts = (one for one, after in pairwise(tokens) if after.type in lists)
    return any(token.type == "list_item_open" and token.info for token in starts)


def _letters(text: str) -> Counter[str]:
    return Counter(letter for letter in html.unescape(_MARK.sub("", text)) if letter.isalnum())


def _render(tokens: list[Token], known: Mapping[int, int]) -> str:
    for token in tokens:
        for child in token.children or ():
            _prepare_inline(child)
    rendered: str = _parser().renderer.render(tokens, _parser().options, {})
    return _link_citations(rendered, known)


def _prepare_inline(token: Any) -> None:
    """Mathematics stays in its notation, set apart from the text around it."""
    if token.type in ("math_inline", "math_inline_double"):
        token.type, token.content = "html_inline", f"<i class='math'>{html.escape(token.content.strip())}</i>"


def _link_citations(rendered: str, known: Mapping[int, int]) -> str:
    rendered = _MARK.sub(lambda match: _anchor(int(match[1]), known), rendered)
    if not known:
        return rendered
    pieces = re.split(r"(<code>.*?</code>|<a .*?</a>)", rendered, flags=re.DOTALL)
    return "".join(piece if index % 2 else _link_brackets(piece, known) for index, piece in enumerate(pieces))


def _link_brackets(piece: str, known: Mapping[int, int]) -> str:
    return BRACKETS.sub(lambda m: _anchor(int(m[1]), known) if int(m[1]) in known else m[0], piece)


def _anchor(marker: int, known: Mapping[int, int]) -> str:
    shown = known.get(marker, marker)
    return f'<a class="cite" href="cite:{marker}" title="passage {marker}">&#8239;[{shown}]</a>'


def _before_space(text: str, place: int) -> int:
    while place > 0 and text[place - 1].isspace():
        place -= 1
    return place


def _first_line(group: list[Token]) -> int:
    return group[0].map[0] if group[0].map else 0


def _line_offset(text: str, line: int) -> int:
    offset = 0
    for _ in range(line):
        offset = text.index("\n", offset) + 1
    return offset
