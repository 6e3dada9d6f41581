"""What was read again is told where it lies, also behind what was reused."""

from __future__ import annotations

from app.core.explain import explain_lines, spans_json, with_moves
from app.core.records import PhaseTimes, TokenReport, TurnReport
from app.core.spans import ComputedSpan
from engine.messages import ComputedRange, ConversationId, PageBits, ReusedTokens, StateReport

PARTS = (ComputedRange(256, "damaged"), ComputedRange(1, "last sampled"), ComputedRange(19, "new"))
TOKENS = TokenReport(1000, ReusedTokens(disk=724), PARTS, 8)
REPORT = TurnReport(TOKENS, PhaseTimes(), "none", gaps=((128, 256), (384, 512), (980, 1000)))


def test_damage_in_the_middle_is_told_where_it_is() -> None:
    assert REPORT.recomputed() == (ComputedSpan(128, 256, "damaged"), ComputedSpan(384, 512, "damaged"))
    first, second, operations = explain_lines(REPORT)
    assert "128 to 255" in first
    assert "384 to 511" in second
    assert "recomputed 256 tokens" in operations
    assert [(span["start"], span["stop"], span["key"]) for span in spans_json(REPORT)] == [
        (128, 256, "damaged"),
        (384, 512, "damaged"),
    ]
    assert TurnReport.from_json(REPORT.to_json()) == REPORT


def test_reports_of_before_say_nothing_of_gaps() -> None:
    older = REPORT.to_json()
    del older["gaps"]
    assert TurnReport.from_json(older).recomputed() == (ComputedSpan(724, 980, "damaged"),)


def test_the_page_map_knows_what_moves_up() -> None:
    kept, moves = PageBits.MEMORY | PageBits.DISK, PageBits.MOVES
    pages = bytes([kept, kept, 0, 0, 0, 0])
    report = StateReport(
        1, ConversationId("c"), 370, 128, 0, 0, 0, 0, 0, (), None, 1.0, "memory", pages=pages, page_tokens=64
    )
    assert with_moves(report, 0) == pages
    assert list(with_moves(report, 130)) == [kept, kept, moves, moves, moves, 0]
    assert list(with_moves(report, 242)) == [kept, kept, moves, moves, moves, moves]
