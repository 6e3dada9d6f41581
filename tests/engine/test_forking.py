"""A copy of a conversation up to a message has the state of that, not of all."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.messages import ConversationId, DropState, ForkState, SaveState
from engine.store.tools import StoreTools
from tests.engine.engine_driver import Driver
from tests.engine.test_service import model, prompt  # noqa: F401  (model is a fixture)

PROMPT = prompt(900, 3)


def kept(folder: Path) -> dict[str, tuple[int, int]]:
    with StoreTools(folder) as tools:
        return {entry.conversation: (entry.tokens, entry.tokens_saved) for entry in tools.ls()}


@pytest.mark.parametrize("tokens", [300, 880, 905])
def test_a_copy_up_to_a_message_counts_its_own_tokens(model: Path, tmp_path: Path, tokens: int) -> None:  # noqa: F811
    with Driver(model, tmp_path) as driver:
        answer = driver.run("1", "c", PROMPT).generated
        whole = PROMPT + answer
        driver.client.send(ForkState(ConversationId("c"), ConversationId("d"), tokens))
        driver.client.send(SaveState(ConversationId("d")))
        report = driver.state("d", type(whole)(whole.ids[:tokens], whole.roles[:tokens]))
        assert (report.tokens_memory, report.tokens_unsaved) == (tokens, 0)
        assert kept(tmp_path)["d"] == (tokens, tokens)
        driver.client.send(DropState(ConversationId("c"), disk=True))
        driver.client.send(SaveState(ConversationId("c")))
        beginning = type(whole)(whole.ids[:tokens], whole.roles[:tokens])
        done = driver.run("2", "d", beginning + prompt(9, 4), history=tokens)
        assert done.reused.memory == tokens, "the copy keeps what it begins with"
    with Driver(model, None) as other:
        assert other.run("2", "d", beginning + prompt(9, 4)).generated == done.generated


def test_of_what_is_on_disk_only_whole_pages_are_taken(model: Path, tmp_path: Path) -> None:  # noqa: F811
    with Driver(model, tmp_path) as driver:
        driver.run("1", "c", PROMPT)
    with Driver(model, tmp_path) as driver:
        assert driver.loaded is not None
        size = driver.loaded.page_tokens
        for name, tokens in (("d", 700), ("e", 10)):
            driver.client.send(ForkState(ConversationId("c"), ConversationId(name), tokens))
            driver.client.send(SaveState(ConversationId(name)))
        driver.state("d", PROMPT)
        found = kept(tmp_path)
        assert found["d"] == (699 // size * size, 699 // size * size)
        assert "e" not in found
