"""`pagekeep chat`: what is said of an answer that was cut short, of a copy, and of what moves up."""

from __future__ import annotations

import io
from contextlib import closing
from dataclasses import replace

import pytest

from app.cli.chat import _tell_price
from app.cli.console import Console
from app.core.conversations import ConversationStore
from app.core.revisions import Revised
from engine.messages import ConversationId, Tokens

SHIFTED = Revised(ConversationId("c"), 2, 80, behind=1173, again=698, seconds=2.0, approximate=True, moved=475)


def words(revised: Revised) -> str:
    out = io.StringIO()
    _tell_price(Console(as_json=False, out=out, err=io.StringIO()), revised)
    return out.getvalue()


def test_what_moves_up_and_what_is_read_again_are_told_apart() -> None:
    assert "475 of the 1,173 tokens behind move up (approximate), 698 tokens will be read again, about 2.0 s" in words(
        SHIFTED
    )
    whole = words(replace(SHIFTED, again=1, moved=1172))
    assert "1,172 of the 1,173 tokens behind move up" in whole
    assert "read again" not in whole
    none = words(replace(SHIFTED, again=1173, moved=0))
    assert "1,173 tokens will be read again" in none
    assert "nothing of what stands behind is moved up" in none
    assert "nothing is read again" in words(replace(SHIFTED, again=1, moved=0)), "its exact state is kept"


@pytest.mark.parametrize(("text", "told"), [("", "cut short with its process before its first word."), ("Yes", "cut")])
def test_an_answer_that_was_cut_short_says_so_and_how_it_goes_on(pagekeep, text: str, told: str) -> None:
    (pagekeep.home / "data").mkdir(parents=True)
    with closing(ConversationStore(pagekeep.home / "data" / "conversations.db")) as store:
        talk = store.create("K").id
        store.append(talk, "user", "What?", Tokens.prompt(range(5)))
        store.append(talk, "assistant", text, Tokens.generated(range(len(text))), "partial")
        with store.lease(talk):
            assert "--resume" not in pagekeep("chat", "show", "K").out, "it is being written"
        shown = pagekeep("chat", "show", "K").out
        assert f"The last answer was {told}" in shown
        assert "pagekeep ask --conversation 'K' --resume" in shown
        assert "nothing is read again" not in pagekeep("chat", "fork", "K").out, "nobody has looked"
        store.append(talk, "user", "And?", Tokens.prompt(range(5)))
        later = pagekeep("chat", "show", "K").out
        assert "--resume" not in later
        assert ("(cut short with its process before its first word)" in later) == (not text)
