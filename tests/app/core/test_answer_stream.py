"""Reasoning told from the answer while it streams, on the real store."""

from __future__ import annotations

import itertools
import queue
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.core.answers import AnswerStream
from app.core.conversations import ConversationStore
from app.core.events import TurnText
from app.core.reasoning import ReasoningSplit, split_answer
from app.core.records import Message
from engine.messages import ReusedTokens, TokenDelta, Tokens, TurnFinished, TurnId, TurnTimings

TEXT = "<think>\nIs it <b>one</b>?\n</think>\n\nIt is two."


@given(st.lists(st.integers(1, len(TEXT) - 1), max_size=12))
def test_pieces_of_any_size_give_the_same_parts(cuts: list[int]) -> None:
    places = [0, *sorted(set(cuts)), len(TEXT)]
    split = ReasoningSplit(active=True)
    pieces = [p for a, b in itertools.pairwise(places) for p in split.feed(TEXT[a:b])]
    pieces += split.rest()
    for part, wanted in (("reasoning", "\nIs it <b>one</b>?\n"), ("answer", "\n\nIt is two.")):
        assert "".join(text for p, text in pieces if p == part) == wanted


def test_a_model_that_does_not_reason_may_write_the_tags() -> None:
    assert split_answer(TEXT, active=False) == ("", TEXT)


def test_reasoning_cut_off_is_no_answer() -> None:
    assert split_answer("<think>So far", active=True) == ("So far", "")


def stream(store: ConversationStore, answer: Message, seen: list[Any]) -> AnswerStream:
    return AnswerStream(TurnId("t"), answer.conversation, answer, store, seen.append, 3, lambda: None, reasons=True)


def followed(made: AnswerStream, deltas: list[str]) -> None:
    mailbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    where = (made.turn, made.conversation)
    for number, text in enumerate(deltas):
        mailbox.put(TokenDelta(*where, text, (number,)))
    ids = Tokens.generated(tuple(range(len(deltas))))
    mailbox.put(TurnFinished(*where, "stop", "".join(deltas), ids, 3, ReusedTokens(), (), TurnTimings(), 0, 0))
    made.follow(mailbox)


def test_it_is_stored_apart_and_search_does_not_find_it(store: ConversationStore) -> None:
    c = store.create("c")
    answer = store.append(c.id, "assistant", "", Tokens(), "partial")
    seen: list[Any] = []
    made = stream(store, answer, seen)
    followed(made, ["<think>\nA walrus", ", perhaps.", "</think>\n\nIt is ", "two."])
    done = made.so_far("complete")
    store.update_answer(done.id, done.text, done.tokens, done.state, done.reasoning, done.thought_ms)
    kept = store.message(answer.id)
    assert (kept.text, kept.reasoning) == ("It is two.", "A walrus, perhaps.")
    assert kept.thought_ms > 0
    assert [(e.part, e.delta) for e in seen if isinstance(e, TurnText)] == [
        ("reasoning", "A walrus"),
        ("reasoning", ", perhaps."),
        ("answer", "It is "),
        ("answer", "two."),
    ]
    assert not store.search("walrus")
    assert store.search("two")


def test_continued_reasoning_goes_behind_what_was_kept(store: ConversationStore) -> None:
    c = store.create("c")
    kept = store.append(c.id, "assistant", "", Tokens(), "partial")
    answer = Message(kept.id, kept.conversation, "assistant", "", Tokens(), 0.0, reasoning="First", thought_ms=5.0)
    made = stream(store, answer, [])
    followed(made, ["<think> then", " more", "</think>Done."])
    done = made.so_far("complete")
    assert (done.reasoning, done.text) == ("First then more", "Done.")
    assert done.thought_ms >= 5.0
