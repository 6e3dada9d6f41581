"""Markdown of answers: what becomes a block, a link, a formula, and what stays text."""

from __future__ import annotations

import html
import random
import re

import pytest

from app.chat.markdown import Code, Prose, Table, mark_citations, parse
from app.chat.stream import BlockStream
from app.core.lookups import StoredRange
from app.core.records import StoredCitation

SAMPLE = """# Title

Costs $12 and $13, energy $E = mc^2$, **bold** [1] and `a[1]`.

- one
- two
  - inner

    paragraph of the inner item

```python
def f(x):
    return x [1]
```

| a | b |
|---|---|
| 1 | 2 |

<b>not bold</b> [2]
"""


def citation(marker: int, start: int = 0, count: int = 0) -> StoredCitation:
    ranges = (StoredRange(0, 0, 5),)
    return StoredCitation(marker, 1, "a.pdf", ranges, ("1",), "quote", "exact", start, count)


def test_blocks_have_their_kinds() -> None:
    kinds = [type(block) for block in parse(SAMPLE).blocks]
    assert kinds == [Prose, Prose, Prose, Code, Table, Prose]


def test_money_stays_text_and_formulas_stand_apart() -> None:
    text = parse(SAMPLE).blocks[1].html
    assert "$12 and $13" in text
    assert "<i class='math'>E = mc^2</i>" in text


def test_html_is_shown_not_obeyed() -> None:
    assert "&lt;b&gt;not bold" in parse(SAMPLE).blocks[-1].html


def test_known_markers_become_links_outside_code() -> None:
    text = parse(SAMPLE, [1]).blocks[1].html
    assert text.count('href="cite:1"') == 1
    assert "<code>a[1]</code>" in text
    assert "cite:" not in parse(SAMPLE, [1]).blocks[-1].html
    assert parse(SAMPLE, [1]).blocks[3].text.endswith("return x [1]")


def test_supported_sentence_without_a_number_gets_one() -> None:
    text = "First sentence. Second sentence."
    marked = parse(mark_citations(text, [citation(3, 0, 15)])).blocks[0].html
    assert marked.index("cite:3") < marked.index("Second")


def test_number_the_model_wrote_is_not_doubled() -> None:
    text = "First sentence [3]. Second."
    assert mark_citations(text, [citation(3, 0, 19)]) == text


def test_streamed_blocks_equal_those_of_the_whole_text() -> None:
    chance = random.Random(7)
    for _ in range(40):
        stream, blocks, rest = BlockStream("", [1]), [], SAMPLE
        while rest:
            cut = chance.randint(1, 17)
            change = stream.append(rest[:cut])
            blocks[change.first :] = change.blocks
            rest = rest[cut:]
        assert tuple(blocks) == parse(SAMPLE, [1]).blocks


def test_only_the_tail_of_a_long_answer_is_parsed_again() -> None:
    stream = BlockStream()
    stream.append("\n\n".join(f"paragraph {number}" for number in range(500)))
    change = stream.append(" grows")
    assert change.first == 499
    assert len(change.blocks) == 1


def test_mark_claims_no_more_than_was_checked() -> None:
    text = "It is kept in the trash for 90 days."
    assert mark_citations(text, [citation(3, 0, 28)]) == "It is kept in the trash for\ue0003\ue001 90 days."


@pytest.mark.parametrize(
    "answer",
    [
        "1. 1. 1. 2. 3. ",
        "- 1. 2. kept",
        "#",
        "> ",
        "-",
        "[1]: https://example.org",
        "[](https://example.org)",
        "| a | b |\n|---|---|\n| 1 | 2 | third |",
        "```python title=seven\nx\n```",
        "``` words behind the fence",
        "1. one\n2. 1. two\n\nAfter &amp; foo**bar**baz \\_x",
    ],
)
def test_no_text_of_an_answer_disappears(answer: str) -> None:
    """Every letter and digit is shown, and something is shown wherever the answer is not blank."""
    blocks = parse(answer).blocks
    shown = [f"{b.language} {b.text}" if isinstance(b, Code) else _visible(b.html) for b in blocks]
    missing = [letter for letter in html.unescape(answer) if letter.isalnum() and letter not in "".join(shown)]
    assert shown
    assert all(part.strip() for part in shown)
    assert not missing


def test_lists_stay_lists() -> None:
    for answer in ("1. one\n2. two\n   - inner", "- one\n- "):
        assert parse(answer).blocks[0].html.startswith(("<ol>", "<ul>"))


def _visible(rendered: str) -> str:
    """Text, list numbers and addresses of links, as a reader can get at them."""
    numbers = re.sub(r"<ol>.*</ol>", lambda m: "".join(map(str, range(1, 1 + m[0].count("<li>")))) + m[0], rendered)
    addresses = re.sub(r'<a href="([^"]*)">', r"\1", numbers)
    return html.unescape(re.sub(r"<[^>]+>", "", addresses))


def test_a_bar_in_code_belongs_to_its_cell() -> None:
    answer = "| Name | Means |\n|---|---|\n| `ice|class` | one of both |\n\nAnd `a|b` outside."
    table, prose = parse(answer).blocks
    assert isinstance(table, Table)
    assert "<code>ice|class</code>" in table.html
    assert "<code>a|b</code>" in prose.html
