"""What stands under an answer on the terminal, and the same in JSON."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

from app.cli.ask import answer_json, report
from app.cli.citations import citation_lines, remark_lines
from app.cli.console import Console
from app.cli.session import open_session
from app.core.borne_out import NOT_BORNE_OUT, PAGES_SAY, REPEATS
from app.core.paths import Paths
from app.core.records import Conversation, Message, MessageId, PageUse, PhaseTimes, TokenReport, TurnReport
from app.core.settings import Settings
from engine.messages import ConversationId, Tokens
from tests.app.cli.test_citations import CITED

TALK = Conversation(ConversationId("c"), "Talk", 0.0, 0.0)
RESTS = TurnReport(TokenReport(), PhaseTimes(), "passages", (PageUse(1, (3,), False),))
ANSWER = Message(MessageId(2), TALK.id, "assistant", "Kept.", Tokens(), 0.0, report=RESTS)


def test_json_has_the_numbers_of_the_terminal_and_the_models_own() -> None:
    for text in ("Kept.", "Kept [19]."):
        cited = replace(ANSWER, text=text, citations=(CITED,))
        (citation,) = answer_json(cited, TALK)["citations"]
        line, _ = citation_lines(text, cited.citations)
        assert f"[{citation['marker']}]" in line
        assert citation["passage"] == 19


@pytest.mark.parametrize("cited", [False, True])
def test_an_answer_that_no_passage_bears_out_says_so(
    cited: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGEKEEP_HOME", str(tmp_path / "home"))
    Paths.default().create()
    out = io.StringIO()
    message = replace(ANSWER, citations=(CITED,) if cited else ())
    with open_session(Console(as_json=False, out=out, err=io.StringIO()), Settings()) as session:
        report(session, message, TALK)
    assert (NOT_BORNE_OUT in out.getvalue()) is not cited
    assert PAGES_SAY not in out.getvalue()
    assert answer_json(message, TALK)["not_borne_out"] is not cited


def test_an_answer_on_damaged_state_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGEKEEP_HOME", str(tmp_path / "home"))
    Paths.default().create()
    for doubtful in (0, 5):
        err = io.StringIO()
        message = replace(ANSWER, report=replace(RESTS, doubtful=doubtful))
        with open_session(Console(as_json=False, out=io.StringIO(), err=err), Settings()) as session:
            report(session, message, TALK)
        assert ("This was written on saved state that was found damaged since" in err.getvalue()) is bool(doubtful)
        assert answer_json(message, TALK)["doubtful_tokens"] == doubtful


def test_pages_that_speak_for_themselves_are_told_as_that() -> None:
    rests = replace(RESTS, pages_say=(CITED,))
    heading, line = remark_lines(rests)
    assert heading == f"  {PAGES_SAY}"
    assert line == f"  {CITED.document}, page {CITED.page_labels[0]}: “{CITED.quote}”"
    (quoted,) = answer_json(replace(ANSWER, report=rests), TALK)["pages_say"]
    assert (quoted["quote"], quoted["ranges"][0]["page_index"]) == (CITED.quote, CITED.ranges[0].page_index)
    assert TurnReport.from_json(rests.to_json()) == rests
    assert remark_lines(replace(RESTS, repeats=True)) == [f"  {REPEATS}"]
    assert remark_lines(RESTS) == remark_lines(None) == []
