"""Numbers in brackets: what may follow, token by token, with a small vocabulary of every shape."""

import numpy as np
import pytest

from engine.citation_limit import CitationLimit

TEXTS = ("the", "[", "]", "1", "2", "9", "0", "12", "13", "[1", " [99", "[5]", ",", " 7", "word [3", "2024")


class Words:
    def token_bytes(self, token_id: int, *, special: bool = True) -> bytes:
        return TEXTS[token_id].encode()


@pytest.fixture
def limit() -> CitationLimit:
    return CitationLimit(Words(), len(TEXTS))


def struck(limit: CitationLimit, written: str, count: int) -> set[str]:
    return {TEXTS[token] for token in limit.struck(written, count)}


@pytest.mark.parametrize(
    ("written", "count", "wrong"),
    [
        ("Plain text 20", 12, {" [99"}),
        ("As said [", 12, {" [99", "0", "13", "2024"}),
        ("As said [1", 12, {" [99", "9", "13", "12", "2024"}),
        ("As said [1", 11, {" [99", "2", "9", "12", "13", "2024"}),
        ("As said [2, ", 3, {" [99", "[5]", "9", "0", "12", "13", " 7", "2024"}),
        ("As said [2,", 7, {" [99", "9", "0", "12", "13", "2024"}),
        ("[a link](x) 1", 2, {" [99", "[5]", "word [3"}),
        ("As said [12] in ", 12, {" [99"}),
    ],
)
def test_only_numbers_of_passages_can_be_written(
    limit: CitationLimit, written: str, count: int, wrong: set[str]
) -> None:
    assert struck(limit, written, count) == wrong


def test_words_in_brackets_stay_free(limit: CitationLimit) -> None:
    assert not struck(limit, "array[", 9) & {"the", "]", ","}


def test_logits_are_copied_and_only_the_struck_ones_change(limit: CitationLimit) -> None:
    logits = np.arange(len(TEXTS), dtype=np.float32)
    scores = limit.limited(logits, "See [", 9)
    changed = {TEXTS[i] for i in np.flatnonzero(scores != logits)}
    assert changed == {"0", "12", "13", " [99", "2024"}
    assert logits.tolist() == list(range(len(TEXTS)))
    assert limit.limited(logits, "See", 99) is logits
