"""What the chat says about reports, phases and pages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.chat.overflow import way_words
from app.chat.words import page_words, phase_words, reused_words, source_words, state_words
from app.core.events import TurnPhase
from app.core.records import (
    Message,
    MessageId,
    PhaseTimes,
    StoredCitation,
    StoredRange,
    TokenReport,
    TurnReport,
)
from app.core.shown_numbers import printed_numbers, renumbered, shown_numbers
from app.widgets.format import about, ago, breakable, duration
from engine.messages import ConversationId, ReusedTokens, Tokens, TurnId
from engine.overflow import OverflowOption


def cited(pages: tuple[int, ...], labels: tuple[str, ...]) -> StoredCitation:
    ranges = tuple(StoredRange(page, 0, 4) for page in pages)
    return StoredCitation(1, 1, "a.pdf", ranges, labels, "", "exact")


@pytest.mark.parametrize(
    ("pages", "labels", "words"),
    [
        ((11,), ("12",), "p. 12"),
        ((3,), ("iv",), "p. iv (file page 4)"),
        ((11, 12), ("12", "13"), "pp. 12–13"),
        ((16, 17), ("5", "6"), "pp. 5–6 (file pages 17–18)"),
        ((2,), ("",), "p. 3"),
        ((), (), ""),
    ],
)
def test_printed_label_and_file_page(pages: tuple[int, ...], labels: tuple[str, ...], words: str) -> None:
    assert page_words(cited(pages, labels)) == words


def test_invented_marker_is_said_to_be_one() -> None:
    assert "no such passage" in source_words(replace(cited((), ()), document=""), 1)
    assert source_words(replace(cited((), ()), document="a.pdf"), 1) == "[1]  a.pdf does not say this"


def test_names_of_files_break_between_their_parts() -> None:
    parts = [breakable(name).split("\u200b") for name in ("made-zero-pages.pdf is no PDF", "a" * 20, "very_long_name")]
    assert parts == [["made-zero-pages.", "pdf is no PDF"], ["a" * 16, "a" * 4], ["very_", "long_", "name"]]


@pytest.mark.parametrize("text", ["", "Half"])
def test_kept_text_is_only_claimed_where_there_is_some(text: str) -> None:
    message = Message(MessageId(1), ConversationId("c"), "assistant", text, Tokens(), 0.0, "cancelled")
    assert ("text so far is kept" in state_words(message)) == bool(text)


def test_citations_count_in_the_order_of_appearance() -> None:
    text = "One [17]. Two. Three [4], again [17]."
    marked = replace(cited((1,), ("2",)), marker=9, answer_start=10, answer_count=3)
    others = [replace(marked, marker=marker, answer_count=0) for marker in (4, 17)]
    assert shown_numbers(text, [*others, marked]) == {17: 1, 9: 2, 4: 3}
    assert printed_numbers(text, [*others, marked]) == {17: 17, 9: 1, 4: 4}
    assert printed_numbers("One. Two of them. Three.", [marked]) == {9: 1}
    assert printed_numbers("One [1, 3]. Two of them.", [marked]) == {9: 2}
    assert renumbered(text, [*others, marked]) == "One [1]. Two. Three [3], again [1]."


def test_reading_shows_percent_rate_and_time_left() -> None:
    phase = TurnPhase(TurnId("t"), ConversationId("c"), "reading", 1200, 4800, 12.0)
    assert phase_words(phase, 300.0) == "Reading: 25 %, 1,200 of 4,800 tokens, 300 tok/s, ~12 s left"


def test_reused_tokens_name_their_tiers() -> None:
    def report(memory: int, disk: int) -> TurnReport:
        return TurnReport(TokenReport(100, ReusedTokens(memory, disk)), PhaseTimes(), "none")

    assert reused_words(report(0, 0)) == "nothing reused"
    assert reused_words(report(5, 0)) == "5 tokens reused (memory)"
    assert reused_words(report(4, 1200)) == "1,204 tokens reused (4 memory, 1,200 disk)"


def test_numbers_as_the_reader_sees_them() -> None:
    assert [duration(s) for s in (0.31, 4.24, 48, 128, 120, 3900)] == [
        "310 ms", "4.2 s", "48 s", "2 min 8 s", "2 min", "1 h 5 min",
    ]  # fmt: skip
    assert [about(s) for s in (0.2, 48, 300, 9000)] == ["under 1 s", "~48 s", "~5 min", "~2.5 h"]
    assert [ago(1000, 1000 + d) for d in (5, 61, 7200, 90000)] == [
        "just now", "1 minute ago", "2 hours ago", "1 day ago",
    ]  # fmt: skip


def test_prices_of_short_ways_out_can_be_told_apart() -> None:
    ways = [OverflowOption("recompute", (0, 10), 1, 100, 90, seconds, True) for seconds in (0.53, 0.25, 2.4)]
    told = [way_words(way, rate_known=True).split(", ")[-1] for way in ways]
    assert told == ["~530 ms. Exact.", "~250 ms. Exact.", "~2.4 s. Exact."]
