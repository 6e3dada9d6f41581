"""Export keeps questions, answers and where they stand in the documents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from app.chat.export import as_markdown, file_name, write_markdown
from app.core.borne_out import PAGES_SAY
from app.core.lookups import StoredRange
from app.core.records import Conversation, Message, MessageId, PhaseTimes, StoredCitation, TokenReport, TurnReport
from engine.messages import ConversationId, Tokens

HERE = Conversation(ConversationId("c"), "Trash: how long?", 0.0, 0.0)
CITED = StoredCitation(2, 1, "book.pdf", (StoredRange(3, 0, 4),), ("iv",), "thirty days", "exact")
MESSAGES = (
    Message(MessageId(1), HERE.id, "user", "How\nlong?", Tokens(), 0.0),
    Message(MessageId(2), HERE.id, "assistant", "Thirty days [2].", Tokens(), 0.0, "cancelled", (CITED, CITED)),
)
EXPECTED = """# Trash: how long?

> How
> long?

Thirty days [1].

*Stopped. The text so far is kept.*

- [1]  book.pdf, p. iv (file page 4) (quoted exactly): “thirty days”
"""


def test_markdown_names_every_source_once() -> None:
    assert as_markdown(HERE, MESSAGES) == EXPECTED


def test_pages_that_pagekeep_quotes_stand_below_the_answer_as_that() -> None:
    report = TurnReport(TokenReport(), PhaseTimes(), "passages", pages_say=(CITED,))
    text = as_markdown(HERE, [replace(MESSAGES[1], citations=(), state="complete", report=report)])
    assert text.endswith(f"\n*{PAGES_SAY}*\n\n- book.pdf, p. iv (file page 4): “thirty days”\n")


def test_file_is_written_whole_under_a_safe_name(tmp_path: Path) -> None:
    assert file_name("Trash: how/long?") == "Trash how long.md"
    assert file_name("???") == "conversation.md"
    write_markdown(tmp_path / "a.md", HERE, MESSAGES)
    assert (tmp_path / "a.md").read_text() == EXPECTED
