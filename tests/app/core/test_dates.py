"""A template that shows today's date: no prompt changes at midnight. Real store, library and tokenizer."""

from collections.abc import Iterator
from datetime import date as Date
from datetime import timedelta
from pathlib import Path

import pytest

from app.core.conversations import ConversationStore
from app.core.prompt import history
from app.core.segments import PromptFormat
from engine.chat_format import ChatFormat
from engine.gguf import GgufFile
from engine.messages import Tokens
from engine.tokenizer import Tokenizer
from rag import Library
from tests.app.core.test_planning import Desk, Model
from tests.engine.chat.test_chat_format import LLAMA3, WORDS
from tests.engine.gguf_bytes import ARRAY, I32, STRING
from tests.engine.tiny_model import saved

CONTEXT = 1 << 20  # tokens are bytes here
EVENING, DAY = Date(2031, 2, 3), timedelta(days=1)


@pytest.fixture
def desk(store: ConversationStore, tmp_path: Path) -> Iterator[Desk]:
    keys = {
        "tokenizer.ggml.tokens": (ARRAY, (STRING, WORDS)),
        "tokenizer.ggml.token_type": (ARRAY, (I32, [1] * 256 + [3] * (len(WORDS) - 256))),
        "tokenizer.ggml.merges": None,
        "tokenizer.chat_template": (STRING, LLAMA3),
    }
    with GgufFile.open(saved(tmp_path, keys)) as file:
        tokenizer = Tokenizer.from_gguf(file)
        chat = PromptFormat(ChatFormat.from_gguf(file, tokenizer), tokenizer)
    library = Library(tmp_path / "library")
    yield Desk(store, library, chat, tokenizer.eog_ids, tokenizer.decode, today=EVENING)
    library.close()


def kept(desk: Desk, question: str, mode="auto") -> Tokens:
    """Asks in the desk's conversation as a turn does; the whole prompt."""
    plan = desk.plan(question, CONTEXT, mode)
    desk.keep(plan)
    desk.store.dates.keep(plan.date, [d.id for d in plan.addition.documents], desk.conversation)
    return plan.tokens


def test_a_document_begins_every_conversation_alike_on_any_day(desk: Desk) -> None:
    model = Model(desk.chat, CONTEXT)
    ahead = desk.planner.shared_prefix([desk.document], model)
    desk.today += DAY
    assert desk.planner.shared_prefix([desk.document], model) == ahead, "what was read ahead stays what it is"
    first = kept(desk, "How much?")
    desk.conversation = desk.store.create(documents=(desk.document,)).id
    desk.today += DAY
    second = kept(desk, "Which colour?")
    assert first.ids[: len(ahead)] == second.ids[: len(ahead)] == ahead.ids
    assert "Today: 03 Feb 2031" in desk.decode(second.ids)


def test_a_conversation_keeps_the_date_of_its_first_question(desk: Desk) -> None:
    desk.conversation = desk.store.create().id
    assert "Today: 03 Feb 2031" in desk.decode(kept(desk, "Good evening?").ids)
    desk.today += DAY
    later = kept(desk, "Good night?")
    assert "04 Feb" not in desk.decode(later.ids)
    assert desk.store.get(desk.store.fork(desk.conversation).id).date == EVENING
    gone = [message.id for message in desk.store.messages(desk.conversation)]
    desk.store.cuts.set_aside(desk.conversation, gone, 0, 16)
    assert kept(desk, "Good evening, then?").ids[:40] == later.ids[:40], "asked in other words"


def test_a_conversation_without_whole_documents_begins_with_its_own_day(desk: Desk) -> None:
    desk.planner.shared_prefix([desk.document], Model(desk.chat, CONTEXT))
    desk.today += DAY
    assert "Today: 04 Feb 2031" in desk.decode(kept(desk, "How much?", mode="passages").ids)


def test_a_conversation_of_an_earlier_version_keeps_the_date_it_was_made_with(desk: Desk) -> None:
    desk.keep(desk.plan("How much?", CONTEXT))
    plan = desk.plan("And then?", CONTEXT)
    assert plan.date is None
    assert plan.history == history(desk.store.messages(desk.conversation))


def test_a_document_in_the_place_of_a_purged_one_has_its_own_day(desk: Desk) -> None:
    desk.store.dates.keep(EVENING, (5,))
    desk.store.dates.keep(EVENING + DAY, (5,))
    assert desk.store.dates.of_document(5) == EVENING
    desk.store.dates.forget(5)
    desk.store.dates.keep(EVENING + DAY, (5,))
    assert desk.store.dates.of_document(5) == EVENING + DAY
