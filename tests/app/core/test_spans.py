"""What was read again is told where it lies, also behind what was reused."""

from __future__ import annotations

from dataclasses import replace

from app.core.explain import explain_lines, last_computed, spans_json, with_moves
from app.core.records import Message, MessageId, PhaseTimes, TokenReport, TurnReport
from app.core.spans import ComputedSpan
from engine.messages import ComputedRange, ConversationId, PageBits, ReusedTokens, StateReport, Tokens

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


def test_a_survey_or_a_catalogue_s_answer_is_not_when_the_state_was_computed_last() -> None:
    def answer(created: float, tokens: Tokens, report: TurnReport | None = None) -> Message:
        return Message(MessageId(int(created)), ConversationId("c"), "assistant", "", tokens, created, report=report)

    some = Tokens.generated([1, 2])
    asked = replace(answer(9.0, some), role="user")
    surveyed = answer(3.0, some, replace(REPORT, mode="survey"))
    assert last_computed([answer(1.0, some, REPORT), answer(2.0, some), surveyed, answer(4.0, Tokens()), asked]) == 2.0
    assert last_computed([surveyed, asked]) == 0.0
