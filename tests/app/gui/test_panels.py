"""Cache and timing panels: numbers and bars that say what a report says.

Over 300 lines: both panels show the same reports.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import get_args

import pytest
from PySide6.QtCore import QRect
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.cache_panel.account import account_lines, memory_parts
from app.cache_panel.numbers import dropped_words, headline, turn_words, values
from app.cache_panel.numbers import token_parts as state_parts
from app.cache_panel.panel import CachePanel
from app.chat.words import report_line
from app.core.explain import explain_lines, place_words, reason_key, reason_words, reuse_words
from app.core.log_words import log_words
from app.core.records import Difference, Message, MessageId, PageUse, PhaseTimes, TokenReport, TurnReport
from app.core.spans import Operation
from app.services import Services
from app.timing_panel.numbers import as_json, lines, time_parts, token_parts, total_ms
from app.timing_panel.panel import TimingPanel, TurnCard
from app.widgets.bars import StackBar, segments
from app.widgets.flow import FlowLayout
from engine.messages import (
    ComputedRange,
    ConversationId,
    EngineStats,
    FinishReason,
    ReusedTokens,
    StateReport,
    Tokens,
    document_state,
)

HERE = ConversationId("c")
STATE = StateReport(
    request=1,
    conversation=HERE,
    tokens=10_000,
    tokens_memory=6_000,
    tokens_disk_only=3_000,
    tokens_unsaved=12,
    bytes_memory=150 << 20,
    bytes_disk=200 << 20,
    bytes_shared=90 << 20,
    shared_with=(ConversationId("d"),),
    last_saved=None,
    rebuild_seconds=50.0,
    tier="memory",
)
REPORT = TurnReport(
    TokenReport(1000, ReusedTokens(200, 700, 640), (ComputedRange(1, "last sampled"), ComputedRange(99, "new")), 50),
    PhaseTimes(queue=5, restore=40, prefill=400, first_token=450, decode=980, save=3),
    "passages",
    (PageUse(1, (3, 4), False), PageUse(2, (9,), False)),
    "stop",
    saved_ms=3600,
)


def test_segments_are_in_proportion_and_fill_the_width() -> None:
    widths = segments([1, 0, 9999, 5000], 300)
    assert sum(widths) == pytest.approx(300)
    assert widths[:2] == [1, 0], "it can be seen, and no more"
    assert widths[2:] == pytest.approx([200, 100], abs=1.1)
    assert segments([0, 0], 300) == [0, 0]


def test_nothing_is_called_restored_where_nothing_was() -> None:
    def named(report: TurnReport) -> set[str]:
        return {part.name for part in time_parts(report)} | {name.lower() for name, _ in lines(report)}

    fresh = replace(REPORT, tokens=replace(REPORT.tokens, reused=ReusedTokens(0, 0, 0)))
    fresh = replace(fresh, timings_ms=replace(REPORT.timings_ms, restore=1.0))
    assert "restore" not in named(fresh)
    assert "restore" in named(replace(fresh, bytes_read=4096)), "read, and of no use"
    assert "restore" in named(REPORT)


def test_a_turn_that_is_there_is_not_called_none() -> None:
    answer = Message(MessageId(2), HERE, "assistant", "Half", Tokens(), 0.0, "partial")
    assert turn_words(None) == "No turn yet."
    assert "not come to its end" in turn_words(answer)
    assert "ended before" in turn_words(replace(answer, state="failed"))
    assert "900 of 1,000 tokens reused" in turn_words(replace(answer, report=REPORT))


def test_cache_numbers() -> None:
    shown = values(STATE)
    assert shown["Must be read"] == "1,000"
    assert shown["Shared"] == "94.4 MB with 1 other conversation"
    assert shown["Last saved"] == "never"
    assert shown["Not saved yet"] == "12"
    refused = replace(STATE, refused="The disk is full.")
    assert values(refused)["Not saved yet"] == "12: refused. The disk is full."
    assert headline(STATE) == "1,000 tokens must be read on return, ~5 s."
    kept = replace(STATE, tokens_memory=10_000, tokens_disk_only=0)
    assert headline(kept) == "Everything is in memory. Nothing will be read again."
    on_disk = replace(kept, tokens_memory=0, tokens_disk_only=10_000)
    assert headline(on_disk) == "Everything is kept; all of it comes back from disk. Nothing will be read again."
    partly = replace(kept, tokens_memory=9_000, tokens_disk_only=1_000)
    assert headline(partly) == "Everything is kept; part of it comes back from disk. Nothing will be read again."
    sampled = replace(kept, tokens_memory=9_999)
    assert headline(sampled) == headline(kept)
    assert values(sampled)["Must be read"] == "nothing"
    assert values(sampled)["Tokens"] == "10,000, the last one sampled has no state yet"
    for state in (STATE, kept, sampled):
        assert sum(part.value for part in state_parts(state)) == state.tokens, "no part of the bar is without a name"


def test_what_moves_up_is_not_said_to_be_read() -> None:
    parts = (ComputedRange(900, "to be moved up"), ComputedRange(99, "turns removed"), ComputedRange(1, "last sampled"))
    state = replace(STATE, missing=parts)
    moves = "what stands behind the removed turns moves up with the next question (approximate)."
    assert headline(state) == f"100 tokens must be read; {moves}"
    assert values(state)["Must be read"] == "99 tokens: turns removed"
    moved = replace(STATE, tokens_memory=STATE.tokens_memory + 99, missing=(parts[0], parts[2]))
    assert headline(moved) == f"Nothing must be read; {moves}"
    assert values(moved)["Must be read"] == "nothing"


def test_a_document_read_ahead_is_no_other_conversation() -> None:
    ahead, both = document_state("3"), document_state("3+7")
    assert values(replace(STATE, shared_with=(ahead,)))["Shared"] == "94.4 MB with the document read ahead"
    mixed = replace(STATE, shared_with=(ConversationId("d"), ConversationId("e"), ahead, both))
    assert values(mixed)["Shared"].endswith("with 2 other conversations and the documents read ahead")
    assert values(replace(STATE, shared_with=()))["Shared"] == "with none"


def test_what_must_be_read_is_told_with_the_reason() -> None:
    lost = ComputedRange(117, "evicted by gc", time.mktime((2026, 11, 30, 8, 44, 0, 0, 0, -1)))
    parts = (lost, ComputedRange(16, "not saved"), ComputedRange(1, "last sampled"))
    assert values(replace(STATE, missing=parts))["Must be read"] == (
        "117 tokens: evicted by gc at 2026-11-30 08:44 to meet the disk budget; "
        "16 tokens: not saved before the process ended"
    )
    damaged = ComputedRange(1, "damaged")
    assert reason_words(damaged) == "damaged on disk"
    assert reason_key("kept as KV type f16") == "other_kv_type"


def test_dropping_claims_no_more_than_happened(services: Services, qtbot: QtBot) -> None:
    shared = replace(STATE, tokens_memory=3_584, tokens_disk_only=189)
    assert "3,584 tokens are shared with 1 other conversation and stay in memory." in dropped_words(shared, False)
    assert "3,773 tokens are shared" in dropped_words(shared, True)
    freed = replace(STATE, tokens_memory=0, tokens_disk_only=3_773, shared_with=())
    assert dropped_words(freed, False) == "Memory freed. The state comes back from disk."
    assert "stays" in dropped_words(replace(freed, tokens_disk_only=0), True)
    panel = CachePanel(services)
    qtbot.addWidget(panel)
    panel.show_conversation(HERE)
    panel._await_report(7, False)
    panel.show_state(replace(freed, request=6))
    assert not services.toasts.accessibleName()
    panel.show_state(replace(shared, request=7))
    assert "3,584 tokens" in services.toasts.accessibleName()


def test_cache_panel_shows_only_its_conversation(services: Services, qtbot: QtBot) -> None:
    panel = CachePanel(services)
    qtbot.addWidget(panel)
    panel.show_conversation(HERE)
    panel.show_state(replace(STATE, conversation=ConversationId("other")))
    assert panel._stack.currentIndex() == 0
    panel.show_state(STATE)
    assert panel._stack.currentIndex() == 1
    assert panel._values["Tokens"].text() == "10,000"
    with qtbot.waitSignal(panel.fork_wanted):
        panel.fork_wanted.emit()


def test_bars_add_up_to_the_report() -> None:
    assert sum(part.value for part in token_parts(REPORT)) == REPORT.tokens.prompt
    assert total_ms(REPORT) == 5 + 40 + 400 + 980 + 3
    assert [part.name for part in time_parts(REPORT)] == ["queue", "restore", "prefill", "decode", "save"]


def test_a_stopped_turn_tells_what_it_read() -> None:
    computed = (ComputedRange(384, "new"),)
    read = replace(REPORT.tokens, prompt=1818, reused=ReusedTokens(), computed=computed, generated=0)
    stopped = replace(REPORT, tokens=read, timings_ms=PhaseTimes(prefill=2000), finish_reason="cancelled")
    shown = dict(lines(stopped))
    assert shown["Prefill"] == "384 tokens, 192 tok/s"
    assert report_line(stopped) == "nothing reused, 384 computed, 1,434 not read"
    assert reuse_words(stopped).endswith("384 computed; 1,434 tokens not read: it was stopped.")
    assert sum(part.value for part in token_parts(stopped)) == 1818


def test_lines_name_rates_reuse_and_pages() -> None:
    shown = dict(lines(REPORT))
    assert shown["Prefill"] == "100 tokens, 250 tok/s"
    assert shown["Decode"] == "50 tokens, 50 tok/s"
    assert shown["Reading avoided"] == "3.6 s"
    assert shown["Documents"] == "3 pages in passages"
    assert shown["Ended"] == "by itself"


def test_every_way_an_answer_ends_has_words() -> None:
    told = {reason: dict(lines(replace(REPORT, finish_reason=reason)))["Ended"] for reason in get_args(FinishReason)}
    assert all(told[reason] not in (reason, reason.replace("_", " ")) for reason in told), told


def test_terms_of_the_timing_panel_are_explained(services: Services, qtbot: QtBot) -> None:
    card = TurnCard(services.theme, 1, "Question", turn(1)[1], REPORT)
    qtbot.addWidget(card)
    tips = {text.text(): text.toolTip() for text in card.findChildren(QLabel)}
    assert "read" in tips["Prefill"]
    assert "wrote" in tips["Decode"]
    times = card.findChildren(StackBar)[0]
    assert "prefill 400 ms: the model reads what is new" in times.toolTip()
    assert times.accessibleName().count(":") == 0, "spoken without the explanations"


def turn(number: int) -> list[Message]:
    question = Message(MessageId(2 * number), HERE, "user", f"Question {number}", Tokens(), 0.0)
    answer = Message(MessageId(2 * number + 1), HERE, "assistant", "Answer", Tokens(), 0.0, report=REPORT)
    return [question, answer]


def test_json_holds_numbers_and_no_text() -> None:
    text = as_json(turn(1))
    (entry,) = json.loads(text)
    assert entry["report"]["tokens"]["reused"]["disk"] == 700
    assert "Question" not in text
    assert "Answer" not in text


def test_timing_cards_newest_first_and_only_while_visible(services: Services, qtbot: QtBot) -> None:
    panel = TimingPanel(services)
    qtbot.addWidget(panel)
    panel.resize(420, 600)
    panel.show_conversation(HERE, [message for number in range(30) for message in turn(number)])
    assert panel.findChildren(TurnCard) == []
    panel.show()
    cards = panel.findChildren(TurnCard)
    assert len(cards) == 12
    assert cards[0].accessibleName().startswith("Turn 30")
    panel.add_question(turn(30)[0])
    panel.add(turn(30)[1])
    shown = [panel._cards.itemAt(place).widget() for place in range(12)]
    assert shown[0].accessibleName().startswith("Turn 31")


def test_operations_are_told_apart_from_the_prefill_they_cause() -> None:
    tokens = TokenReport(1000, ReusedTokens(100, 0), (ComputedRange(812, "turns removed"), ComputedRange(88, "new")), 5)
    done = (Operation("trim", 0.2, 40), Operation("undo", 0.3), Operation("take_out", 0.61, 80))
    report = TurnReport(tokens, PhaseTimes(remove=0.42, prefill=1330.0), "none", operations=done)
    shown = dict(lines(report))
    before = "trimmed 40 tokens 0.2 ms, undone 0.3 ms, took out 80 tokens 0.6 ms"
    assert shown["Operations"] == f"{before}, moved up 0.4 ms, recomputed 812 tokens 1.2 s"
    assert f"Operations: {shown['Operations']}." in explain_lines(report)
    assert TurnReport.from_json(json.loads(json.dumps(report.to_json()))) == report
    assert shown["Read again (turns removed)"] == "tokens 100–911"
    found = Difference(100, 3, 2, "user", 4, " long", " deep")
    shown = dict(lines(replace(report, difference=found, approximate=True)))
    assert shown["First difference"] == "message 2 (question), token 5: “ long” → “ deep”"
    behind, before = replace(found, index=1805, head=1804), replace(found, index=1803, head=1804)
    assert place_words(behind) == "message 2 (question), token 2", "within the question, whatever stands before it"
    assert place_words(before) == "message 2 (what stands before the question), token 1,804"
    assert shown["Operations"].endswith("approximate")
    assert "Operations" not in dict(lines(TurnReport(TokenReport(), PhaseTimes(), "none")))
    assert "Drafted ahead" not in shown
    drafted = replace(report, tokens=replace(tokens, drafted=62, accepted=48))
    assert dict(lines(drafted))["Drafted ahead"] == "62 tokens from earlier text, 48 right"
    assert TurnReport.from_json(drafted.to_json()) == drafted


def test_the_account_of_memory_and_the_checks() -> None:
    sizes = {"kv_reserved_bytes": 128_000_000, "index_bytes": 1_000_000, "written_bytes": 5_000_000}
    budgets = {"ram_budget_bytes": 2_000_000_000, "disk_budget_bytes": 20_000_000_000}
    stats = EngineStats(90_000_000, 100_000_000, 300_000_000, 0, 0, 0.0, 0.0, **sizes, **budgets)
    lines = dict(account_lines(stats))
    assert lines["State in memory"] == "100 MB of 2.00 GB"
    assert lines["Checks"] == "no page was computed again yet"
    assert dict(account_lines(replace(stats, pages_checked=3)))["Checks"] == "3 pages computed again, all equal"
    wrong = dict(account_lines(replace(stats, pages_checked=3, pages_wrong=1)))["Checks"]
    assert wrong == "3 pages computed again, 1 page wrong and dropped"
    assert [part.value // 1_000_000 for part in memory_parts(stats)] == [90, 100, 0, 28, 1, 0]
    assert lines["Memory in all"].startswith("219"), "the parts add up to the whole"
    mapped = replace(stats, kv_mapped_bytes=40_000_000)
    assert dict(account_lines(mapped))["State in memory"].endswith(", 40.0 MB of it straight from files")
    assert [part.value // 1_000_000 for part in memory_parts(mapped)] == [90, 60, 40, 68, 1, 0]
    counted = replace(mapped, anonymous_bytes=200_000_000)  # by the system: state and free buffers are a part of it
    assert [part.value // 1_000_000 for part in memory_parts(counted)] == [90, 60, 40, 68, 1, 71]


def test_the_log_in_words() -> None:
    entry = {"at": 0, "operation": "reuse", "level": "info", "tokens": 1200, "disk": 1100, "bytes_read": 84_100_000}
    assert log_words(entry) == "reuse     1,100 of 1,200 tokens (0 memory, 1,100 disk), 84.1 MB read"
    new, edited = {**entry, "reason": "new"}, {**entry, "reason": "edited"}
    assert log_words(new).endswith(", the rest is new")
    assert log_words(edited).endswith(", the rest: other tokens were kept here")
    cut = log_words({**edited, "cut": 100, "position": 1100, "expected": 33, "found": 36})
    assert cut.endswith("read, 100 tokens read again: other tokens were kept here, from token 1,100 on")
    edited = log_words({"operation": "reuse", "tokens": 1861, "disk": 1851, "cut": 72, "reason": "edited"})
    assert "10 tokens read again" in edited, "more was kept behind the edited question, and is not there any more"
    saved = {"operation": "save", "level": "info", "tokens": 1830, "state_bytes": 42_163_200, "bytes": 900_000}
    assert log_words(saved) == "save      1,830 tokens, 42.2 MB in memory, 900 kB new on disk"
    assert log_words({**saved, "on_disk": False}) == "save      1,830 tokens, 42.2 MB in memory, not on disk"
    assert log_words({"operation": "canary", "equal": False, "start": 64}) == "canary    not equal, start 64"
    told = {"operation": "notice", "level": "warn", "what": "Not saved.", "why": "The disk is full.", "next": ""}
    assert log_words(told) == "notice    Not saved. The disk is full."


def test_what_is_hidden_takes_no_room_in_a_row(qtbot: QtBot) -> None:
    box = QWidget()
    qtbot.addWidget(box)
    flow, labels = FlowLayout(box, 12), [QLabel(text) for text in ("own", "shared", "end")]
    for shown in labels:
        flow.addWidget(shown)
    box.show()
    labels[0].hide()
    flow.setGeometry(QRect(0, 0, 300, 20))
    assert labels[1].x() == 0
    assert labels[2].x() == labels[1].width() + 12
