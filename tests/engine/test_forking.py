"""A copy of a conversation up to a message has the state of that, not of all."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.messages import ConversationId, DropState, ForkState, SaveState, Tokens
from engine.store.tools import StoreTools
from tests.engine.engine_driver import Driver
from tests.engine.test_beyond_damage import damage
from tests.engine.test_service import model, prompt  # noqa: F401  (model is a fixture)
from tests.engine.test_window_equality import model as windows  # noqa: F401  (a fixture)

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


@pytest.mark.parametrize("tokens", [10, 640, 700, 905])  # in the first page, at its end, in a page, in the tail
def test_a_copy_of_what_is_on_disk_only_has_its_last_page_at_once(
    model: Path,  # noqa: F811
    tmp_path: Path,
    tokens: int,
) -> None:
    with Driver(model, tmp_path) as driver:
        whole = PROMPT + driver.run("1", "c", PROMPT).generated
    beginning = type(whole)(whole.ids[:tokens], whole.roles[:tokens])
    with Driver(model, tmp_path) as driver:
        driver.client.send(ForkState(ConversationId("c"), ConversationId("d"), tokens))
        driver.client.send(SaveState(ConversationId("d")))
        report = driver.state("d", beginning)
        assert (report.tokens_disk_only, report.tokens_unsaved) == (tokens, 0)
        assert kept(tmp_path)["d"] == (tokens, tokens)
        driver.client.send(DropState(ConversationId("c"), disk=True))
    with Driver(model, tmp_path) as driver:
        done = driver.run("2", "d", beginning + prompt(9, 4), history=tokens)
        assert done.reused.disk == tokens, "its tail is its own"
    with Driver(model, None) as other:
        assert other.run("2", "d", beginning + prompt(9, 4)).generated == done.generated


def test_a_copy_whose_last_page_is_damaged_on_disk_has_what_stands_before(
    model: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    with Driver(model, tmp_path) as driver:
        driver.run("1", "c", PROMPT)
        assert driver.loaded is not None
        size = driver.loaded.page_tokens
    damage(tmp_path, 700 // size * size)
    with Driver(model, tmp_path) as driver:
        driver.client.send(ForkState(ConversationId("c"), ConversationId("d"), 700))
        driver.client.send(SaveState(ConversationId("d")))
        driver.state("d", PROMPT)
        assert kept(tmp_path)["d"] == (700 // size * size,) * 2


def test_a_copy_counts_only_what_it_can_go_on_with_where_layers_look_back_a_little(
    windows: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    asked = Tokens.prompt([id % 300 + 3 for id in prompt(2500).ids])
    with Driver(windows, tmp_path) as driver:
        whole = asked + driver.run("1", "c", asked).generated
    for tokens, usable in ((500, 0), (len(whole) - 3, len(whole) - 3)):  # far from the windows that are kept, and there
        beginning = Tokens(whole.ids[:tokens], whole.roles[:tokens])
        with Driver(windows, tmp_path) as driver:
            driver.client.send(ForkState(ConversationId("c"), ConversationId("d"), tokens))
            driver.client.send(SaveState(ConversationId("d")))
            assert driver.state("d", beginning).tokens_disk_only == usable
            count = usable or tokens // driver.loaded.page_tokens * driver.loaded.page_tokens  # type: ignore[union-attr]
            assert kept(tmp_path)["d"] == (count, count)
            more = beginning + Tokens.prompt([5] * 9)
            done = driver.run("2", "d", more, history=tokens)
            assert done.reused.disk == usable
        with Driver(windows, None) as other:
            assert other.run("2", "d", more).generated == done.generated
