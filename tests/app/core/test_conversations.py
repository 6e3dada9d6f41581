import contextlib
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from app.core.conversations import ConversationStore
from app.core.cuts import Cut
from app.core.errors import UserError
from app.core.exchanges import last_turn
from app.core.records import (
    MessageId,
    PageUse,
    PhaseTimes,
    PlacedPassages,
    Placement,
    StoredCitation,
    StoredRange,
    TokenReport,
    TurnReport,
)
from app.core.titles import UNTITLED, title_from_question
from engine.messages import ComputedRange, ConversationId, LastTurn, ReusedTokens, Tokens

CITATION = StoredCitation(
    2, 7, "a.pdf", (StoredRange(3, 10, 20), StoredRange(4, 0, 5)), ("iv", "v"), "quoted", "exact", 4, 9
)
REPORT = TurnReport(
    TokenReport(120, ReusedTokens(60, 40, 50), (ComputedRange(1, "last sampled"), ComputedRange(19, "new")), 33),
    PhaseTimes(retrieve=1.5, prefill=20.25),
    "whole",
    (PageUse(7, (0, 1, 4), True),),
    "stop",
    10,
    20,
    300.5,
    "a model",
)
PLACEMENT = Placement(
    (PlacedPassages(7, 1, (11, 12, 13)),), (PlacedPassages(8, 4, (40,)),), "be brief", shared_tokens=99
)


def test_messages_come_back_exactly(store: ConversationStore) -> None:
    c = store.create()
    ids = tuple(range(0, 200_000, 7))
    question = store.append(c.id, "user", "Wo? 🙂\n\tHier", Tokens.prompt(ids), placement=PLACEMENT)
    answer = store.append(c.id, "assistant", "", Tokens(), "partial")
    done = replace(answer, text="Da.", tokens=Tokens.generated((5, 2_000_000_000, 0)), state="complete")
    store.finish_answer(done, [CITATION], REPORT)
    assert store.messages(c.id) == (question, replace(done, citations=(CITATION,), report=REPORT))
    assert store.message(answer.id).tokens.roles == (1, 1, 1)


def test_the_first_question_names_the_conversation_unless_the_reader_did(store: ConversationStore) -> None:
    c, named = store.create(), store.create("Mine")
    assert c.title == UNTITLED
    for conversation in (c, named):
        store.append(conversation.id, "user", "How long\nis it?", Tokens())
        store.append(conversation.id, "user", "And this one?", Tokens())
    assert store.get(c.id).title == "How long"
    assert store.get(named.id).title == "Mine"
    assert store.rename(c.id, "  New \n name ").title == "New name"
    with pytest.raises(UserError):
        store.rename(c.id, " \n")


def test_a_name_that_several_ask_for_at_once_is_one_conversation(tmp_path: Path) -> None:
    """As processes do: each with a connection of its own."""
    stores = [ConversationStore(tmp_path / "c.db") for _ in range(4)]
    together, found = threading.Barrier(len(stores)), []

    def ask(store: ConversationStore) -> None:
        together.wait()
        found.append(store.named("River"))

    threads = [threading.Thread(target=ask, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({conversation.id for conversation, _ in found}) == 1
    assert [is_new for _, is_new in found].count(True) == 1
    assert len(stores[0].list()) == 1
    for store in stores:
        store.close()


def test_what_was_computed_is_known_again_when_messages_come_back(store: ConversationStore) -> None:
    c = store.create().id
    turns = [
        store.append(c, role, "x", Tokens.prompt(range(10)), placement=Placement())
        for role in ("user", "assistant") * 3
    ]
    store.set_computed(c, "t", 59)
    moment = store.cuts.set_aside(c, [message.id for message in turns[4:]], 40, 16)
    assert store.computed(c) == ("t", 40)
    store.cuts.bring_back(c, moment, 16)
    assert store.computed(c) == ("t", 59)
    cut = store.cuts.apply(c, Cut(turns[2].id, turns[4].id), 16)
    assert store.computed(c) == ("t", 39)
    store.cuts.take_back_cut(cut)
    assert store.computed(c) == ("t", 59)
    moment = store.cuts.set_aside(c, [turns[5].id], 50, 16)
    store.set_computed(c, "of another model", 0)
    store.cuts.bring_back(c, moment, 16)
    assert store.computed(c) == ("mixed", 0), "all ids are made anew"


def test_moved_ranges_come_back_with_the_messages_behind_them(store: ConversationStore) -> None:
    c = store.create().id
    turns = [store.append(c, role, "x", Tokens.prompt(range(10))) for role in ("user", "assistant") * 3]
    store.set_computed(c, "t", 59)
    store.cuts.apply(c, Cut(turns[2].id, turns[4].id, "shift"), 16)
    moved = store.cuts.moved(c)
    assert moved.shifts
    moment = store.cuts.set_aside(c, [message.id for message in turns[4:]], 10, 16)
    assert not store.cuts.moved(c).shifts
    store.cuts.bring_back(c, moment, 16)
    assert store.cuts.moved(c) == moved


def test_long_titles_are_cut_at_a_word() -> None:
    title = title_from_question("What does the agreement say about documents that nobody has opened for years?")
    assert title == "What does the agreement say about documents that nobody has…"
    assert title_from_question(" \n ") == UNTITLED


def test_documents_keep_their_order_and_date(store: ConversationStore) -> None:
    c = store.create(documents=(9, 4))
    c = store.attach(c.id, 6)
    dates = [d.attached for d in c.documents]
    again = store.attach(c.id, 4)
    assert again.document_ids == (9, 4, 6)
    assert [d.attached for d in again.documents] == dates
    assert store.detach(c.id, 4).document_ids == (9, 6)
    assert [found.id for found in store.using(6)] == [c.id]


def test_trash_restore_purge(store: ConversationStore) -> None:
    c = store.create("a")
    store.append(c.id, "user", "zebra", Tokens())
    with pytest.raises(UserError, match="trash"):
        store.purge(c.id)
    store.trash(c.id)
    assert store.list() == ()
    assert [t.id for t in store.list(trashed=True)] == [c.id]
    assert store.search("zebra") == ()
    store.restore(c.id)
    assert [h.conversation.id for h in store.search("zebra")] == [c.id]
    store.trash(c.id)
    store.purge(c.id)
    assert store.list(trashed=True) == ()
    assert store.search("zebra") == ()
    with pytest.raises(UserError):
        store.get(c.id)


def test_the_list_is_by_last_use(store: ConversationStore) -> None:
    first, second = store.create("first"), store.create("second")
    assert [c.id for c in store.list()] == [second.id, first.id]
    store.append(first.id, "user", "x", Tokens())
    assert [c.id for c in store.list()] == [first.id, second.id]


def test_search_in_titles_and_text(store: ConversationStore) -> None:
    titled, talked = store.create("Öltank prüfen"), store.create("Other")
    message = store.append(talked.id, "user", "The oltank (big) has 3 valves", Tokens())
    hits = store.search("oltank")
    assert [(h.conversation.id, h.message_id) for h in hits] == [(titled.id, None), (talked.id, message.id)]
    assert "\x02Öltank\x03" in hits[0].snippet
    assert [h.message_id for h in store.search("big val")] == [message.id], "the last word is still being typed"
    assert store.search("valves absent") == ()


@pytest.mark.parametrize("query", ['"', "AND", "a*b", "NEAR(", "-x", "text:", "", "   ", "'; DROP TABLE messages"])
def test_search_takes_any_text(store: ConversationStore, query: str) -> None:
    c = store.create("t")
    store.append(c.id, "user", "plain words", Tokens())
    store.search(query)
    assert len(store.search("plain")) == 1


def test_search_follows_changes(store: ConversationStore) -> None:
    c = store.create("t")
    answer = store.append(c.id, "assistant", "", Tokens(), "partial")
    store.update_answer(answer.id, "a giraffe", Tokens.generated((1,)), "partial")
    assert len(store.search("giraffe")) == 1
    store.update_answer(answer.id, "a lion", Tokens.generated((1,)), "partial")
    assert store.search("giraffe") == ()
    store.cuts.set_aside(c.id, [answer.id], 0, 16)
    assert store.search("lion") == ()
    assert store.messages(c.id) == ()
    assert store.superseded_count(c.id) == 1


def test_fork_has_a_history_of_its_own(store: ConversationStore) -> None:
    c = store.create("Talk", documents=(3,))
    store.append(c.id, "user", "q", Tokens.prompt((1, 2)), placement=PLACEMENT)
    store.set_computed(c.id, "tok", 2)
    copy = store.fork(c.id)
    store.append(copy.id, "assistant", "a", Tokens.generated((3,)))
    assert [m.text for m in store.messages(c.id)] == ["q"]
    assert [(m.text, m.tokens.ids) for m in store.messages(copy.id)] == [("q", (1, 2)), ("a", (3,))]
    assert store.messages(copy.id)[0].placement == PLACEMENT
    assert store.computed(copy.id) == ("tok", 2)
    assert store.get(copy.id).document_ids == (3,)
    assert store.get(copy.id).title == "Fork of Talk"
    assert store.fork(copy.id).title == "Fork 2 of Talk"
    assert store.fork(c.id).title == "Fork 3 of Talk"


@pytest.mark.parametrize("older", ["Talk (fork)", "Talk (fork 2)", "Talk (fork) (fork)", "Fork of Talk (fork)"])
def test_a_fork_that_an_older_version_named_gives_its_ending_up(store: ConversationStore, older: str) -> None:
    assert store.get(store.fork(store.create(older).id).id).title == "Fork of Talk"


def test_a_crash_keeps_the_partial_answer(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    store = ConversationStore(path)
    c = store.create()
    answer = store.append(c.id, "assistant", "", Tokens(), "partial")
    store.set_computed(c.id, "tok", 2)
    store.update_answer(answer.id, "half an ans", Tokens.generated((4, 5, 6)), "partial", computed=5)
    store.update_answer(answer.id, "half an ans", Tokens.generated((4, 5, 6)), "partial", computed=4)
    reopened = ConversationStore(path)  # the first one was never closed
    (found,) = reopened.messages(c.id)
    assert (found.text, found.tokens.ids, found.state) == ("half an ans", (4, 5, 6), "partial")
    assert reopened.computed(c.id) == ("tok", 5)
    assert last_turn(reopened.messages(c.id)) == LastTurn("cut off")
    reopened.update_answer(answer.id, "half an ans", Tokens.generated((4, 5, 6)), "complete")
    assert last_turn(reopened.messages(c.id)) == LastTurn()
    reopened.append(c.id, "user", "why?", Tokens.prompt((7, 8)))
    stopped = reopened.append(c.id, "assistant", "", Tokens(), "cancelled")
    assert last_turn(reopened.messages(c.id)) == LastTurn("stopped", 3)
    reopened.update_answer(stopped.id, "so", Tokens.generated((9,)), "cancelled")
    assert last_turn(reopened.messages(c.id)) == LastTurn("stopped", 3)
    reopened.close()
    store.close()


def test_many_threads(store: ConversationStore) -> None:
    c = store.create()

    def write(thread: int) -> None:
        for i in range(20):
            store.append(c.id, "user", f"{thread} {i}", Tokens.prompt((thread, i)))

    threads = [threading.Thread(target=write, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    messages = store.messages(c.id)
    assert len(messages) == 120
    assert all(m.text == f"{m.tokens.ids[0]} {m.tokens.ids[1]}" for m in messages)


def test_unknown_ids_are_told(store: ConversationStore) -> None:
    for use in (store.get, store.trash, store.fork):
        with pytest.raises(UserError, match="not there"):
            use(ConversationId("nobody"))
    with pytest.raises(UserError):
        store.message(MessageId(99))


def test_two_processes_never_give_one_name_twice(tmp_path: Path) -> None:
    stores = [ConversationStore(tmp_path / "c.db") for _ in range(2)]
    sources = [store.create(f"source {number}").id for number, store in enumerate(stores)]
    given: list[str] = []

    def name(store: ConversationStore, source: ConversationId, title: str, at_once: threading.Barrier) -> None:
        at_once.wait(60)
        with contextlib.suppress(UserError):
            given.append(
                store.fork(source, title).title if title.startswith("f") else store.rename(source, title).title
            )

    for number in range(10):
        for title in (f"fork {number}", f"renamed {number}"):
            at_once = threading.Barrier(2)
            threads = [
                threading.Thread(target=name, args=(store, source, title, at_once))
                for store, source in zip(stores, sources, strict=True)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
    titles = [c.title for c in stores[0].list()]
    assert sorted(titles) == sorted(set(titles))
    assert len(given) == len(set(given)) == 20
    for store in stores:
        store.close()
