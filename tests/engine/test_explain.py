"""Why tokens were computed again: reasons, the first difference, and the log of what was done."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.kv.log import FILE_NAME, KvLog, read_log
from engine.messages import (
    Cancel,
    ComputedRange,
    ConversationId,
    DropState,
    FirstDifference,
    ForkState,
    LastTurn,
    PinState,
    PrefillProgress,
    SaveState,
    Tokens,
    TurnId,
)
from engine.store.tools import StoreTools
from tests.engine.engine_driver import Driver
from tests.engine.test_service import model, prompt  # noqa: F401  (model is a fixture)


@pytest.fixture
def driver(model: Path, tmp_path: Path) -> Iterator[Driver]:  # noqa: F811
    with Driver(model, tmp_path / "kv", cache_log="debug") as driver:
        yield driver


def changed(tokens: Tokens, position: int, token: int) -> Tokens:
    return Tokens((*tokens.ids[:position], token, *tokens.ids[position + 1 :]), tokens.roles)


def test_an_edit_is_named_by_the_first_token_that_differs(driver: Driver) -> None:
    text = prompt(700)
    driver.run("1", "c", text)
    edited = driver.run("2", "c", changed(text, 431, 2), history=700)
    expected = FirstDifference(431, text.ids[431], 2, 0, 0)
    assert edited.difference == expected
    assert edited.reused.total == 431
    assert edited.computed == (ComputedRange(269, "edited"),)
    report = driver.state("c", changed(text, 60, 5))
    assert report.difference == FirstDifference(60, text.ids[60], 5, 0, 0)
    assert report.missing == (ComputedRange(640, "edited"),)


def test_a_turn_that_is_stopped_tells_what_it_computed_until_then(model: Path, tmp_path: Path) -> None:  # noqa: F811
    text = prompt(1500)
    with Driver(model, tmp_path / "kv", prefill_chunk=64) as driver:
        driver.run("1", "c", Tokens(text.ids[:300], text.roles[:300]))
        driver.at(
            lambda e: isinstance(e, PrefillProgress) and e.turn == "2" and e.done >= 128,
            lambda: driver.client.send(Cancel(TurnId("2"))),
        )
        driver.submit("2", "c", text, history=311)
        done = driver.result("2")
        told = [e.done for e in driver.events if isinstance(e, PrefillProgress) and e.turn == "2"][-1]
        again = driver.run("3", "c", text, history=311)
    computed = sum(part.tokens for part in done.computed)
    assert 128 <= told == computed < 1200, "it was stopped on the way"
    assert 0 <= done.reused.total + computed - again.reused.total < 256, "whole pages of it are kept"
    assert done.prompt_tokens == 1500
    assert done.gaps == ((done.reused.total, done.reused.total + computed),)


def test_a_token_that_changed_its_role_is_a_difference(driver: Driver) -> None:
    done = driver.run("1", "c", prompt(300))
    retyped = Tokens.prompt([*prompt(300).ids, *done.generated.ids])
    again = driver.run("2", "c", retyped, history=311)
    assert again.difference is not None
    assert (again.difference.position, again.difference.expected_role, again.difference.found_role) == (300, 1, 0)


def test_what_is_new_has_no_difference(driver: Driver) -> None:
    assert driver.run("1", "c", prompt(300)).difference is None
    assert driver.run("2", "c", prompt(300) + prompt(4, 8)).difference is None
    assert driver.run("3", "d", prompt(300, 99)).difference is None, "another text is no edit of this one"


def test_what_other_conversations_say_is_no_edit_of_this_one(model: Path, tmp_path: Path) -> None:  # noqa: F811
    with Driver(model, tmp_path / "kv", cache_log="info") as driver:
        driver.run("1", "c", prompt(40))
        first = driver.run("2", "d", changed(prompt(40), 3, 2))
        history = changed(prompt(40), 3, 2) + first.generated
        second = driver.run("3", "d", history + prompt(4, 8), history=len(history) - 1)
        assert (first.difference, second.difference) == (None, None)
        assert second.reused.total == len(history) - 1
        assert not driver.state("e", prompt(30)).difference, "nothing was kept for it"
        lost = driver.run("4", "e", changed(prompt(40), 20, 5), history=40)
        assert (lost.difference, lost.computed) == (None, (ComputedRange(20, "not in cache"),))
        edited = driver.run("5", "d", changed(prompt(40), 5, 9), history=40)
        assert edited.difference is not None
        assert (edited.difference.position, edited.difference.expected) == (3, 2), "c shares more, but d was edited"
    reused = [entry for entry in read_log(tmp_path / "kv", 100) if entry["operation"] == "reuse"]
    assert [entry["reason"] for entry in reused] == ["new", "new", "new", "not in cache", "edited"]
    assert [entry.get("position") for entry in reused] == [None, None, None, None, 3]


def test_state_of_another_kv_type_is_named(model: Path, tmp_path: Path) -> None:  # noqa: F811
    with Driver(model, tmp_path / "kv") as driver:
        driver.run("1", "c", prompt(60))
    with Driver(model, tmp_path / "kv", kv_type_k="q8", kv_type_v="q8") as driver:
        first = driver.run("2", "c", prompt(60), history=60)
        assert first.computed == (ComputedRange(60, "kept as KV type f16"),)
        assert driver.run("3", "d", prompt(60, 7), history=60).computed == (ComputedRange(60, "not in cache"),)
    with Driver(model, tmp_path / "kv", kv_type_k="q8", kv_type_v="f16") as driver:
        both = driver.run("4", "c", prompt(60), history=60)
        assert both.computed == (ComputedRange(60, "kept as KV type q8"),), "the one that was kept last"


def test_a_damaged_page_is_no_edit(model: Path, tmp_path: Path) -> None:  # noqa: F811
    """The edit lies behind the page that could not be read: reuse did not end for it."""
    text, folder = prompt(700), tmp_path / "kv"
    with Driver(model, folder) as driver:
        driver.run("1", "c", text)
        size = driver.loaded.page_tokens  # type: ignore[union-attr]
    (segment,) = folder.rglob("*.seg")
    with segment.open("r+b") as file:
        file.seek(segment.stat().st_size // 3)
        file.write(bytes(64))
    with Driver(model, folder, cache_log="info") as driver:
        after = driver.run("2", "c", changed(text, 690, 2), history=700)
    assert after.reused.total <= 690 - size
    assert after.computed[0].reason == "damaged"
    assert after.difference is None


def test_a_tail_that_gc_evicted_is_named_with_its_time(model: Path, tmp_path: Path) -> None:  # noqa: F811
    """The end of a conversation is no page of the chain that others would find, so its own length is needed."""
    folder, before = tmp_path / "kv", time.time()
    with Driver(model, folder) as driver:
        done = driver.run("1", "c", prompt(700))
        size = driver.loaded.page_tokens  # type: ignore[union-attr]
        history = len(done.generated) + 699
    with StoreTools(folder) as tools:
        tools.gc(tools.stat().live_bytes - 1)
    with Driver(model, folder) as driver:
        report = driver.state("c", prompt(700) + done.generated, history=history)
        after = driver.run("2", "c", prompt(700) + done.generated + prompt(3, 8), history=history)
    (lost, *rest) = after.computed
    assert (lost.tokens, lost.reason) == (history % size, "evicted by gc")
    assert before < lost.at < time.time()
    assert rest == [ComputedRange(1, "last sampled"), ComputedRange(3, "new")]
    assert report.missing[0] == lost


def test_what_a_turn_that_was_cut_off_had_computed_is_not_new(model: Path, tmp_path: Path) -> None:  # noqa: F811
    with Driver(model, tmp_path / "kv") as driver:
        done = driver.run("1", "c", prompt(300))
        more = prompt(300) + done.generated + prompt(50, 8)
        kept = 299 + len(done.generated)
        cut = driver.run("2", "c", more + prompt(20, 9), history=340, last_turn=LastTurn("cut off"))
        assert cut.reused.total == kept
        assert cut.computed == (ComputedRange(340 - kept, "not saved"), ComputedRange(len(more) + 20 - 340, "new"))
        first = driver.run("3", "d", prompt(90, 5), history=60, last_turn=LastTurn("cut off"))
        assert first.computed == (ComputedRange(60, "not saved"), ComputedRange(30, "new"))
        stopped = driver.run("4", "e", prompt(90, 6), history=60, last_turn=LastTurn("stopped"))
        assert stopped.computed == (ComputedRange(60, "stopped"), ComputedRange(30, "new"))


def test_a_lost_cache_is_not_explained_by_the_last_turn(model: Path, tmp_path: Path) -> None:  # noqa: F811
    with Driver(model, tmp_path / "kv") as driver:
        history = prompt(300) + driver.run("1", "c", prompt(300)).generated
    with Driver(model, tmp_path / "other") as driver:
        asked = history + prompt(5, 8)
        lost = driver.run("2", "c", asked, history=311, last_turn=LastTurn("stopped"))
        assert lost.computed[0] == ComputedRange(311, "not in cache"), "it was saved when it was stopped"
        more = history + prompt(60, 9)
        for name, how in (("d", "stopped"), ("e", "cut off")):
            last = LastTurn(how, began=312)  # type: ignore[arg-type]
            query = changed(more, 0, 3 if name == "d" else 4)
            cut = driver.run(f"in {name}", name, query, history=350, last_turn=last)
            reason = "stopped" if how == "stopped" else "not saved"
            assert cut.computed[:2] == (ComputedRange(312, "not in cache"), ComputedRange(38, reason))


def test_dropped_state_is_named(model: Path, tmp_path: Path) -> None:  # noqa: F811
    with Driver(model, tmp_path / "kv") as driver:
        driver.run("1", "c", prompt(300))
        driver.client.send(DropState(ConversationId("c"), disk=True))
        again = driver.run("2", "c", prompt(300) + prompt(9, 8), history=300)
        assert [part.reason for part in again.computed] == ["dropped", "new"]


def test_the_log_tells_what_was_done(model: Path, tmp_path: Path) -> None:  # noqa: F811
    folder = tmp_path / "kv"
    with Driver(model, folder, cache_log="debug") as driver:
        driver.run("1", "c", prompt(700))
        driver.client.send(ForkState(ConversationId("c"), ConversationId("d")))
        driver.client.send(PinState(ConversationId("d")))
        driver.client.send(SaveState(ConversationId("d")))
        driver.client.send(DropState(ConversationId("c")))
        driver.run("2", "c", changed(prompt(700), 600, 2), history=700)
    entries = read_log(folder, 1000)
    operations = [entry["operation"] for entry in entries]
    assert operations.count("seal") >= 2 * (600 // driver.loaded.page_tokens) - 4  # type: ignore[union-attr]
    assert [entry["operation"] for entry in read_log(folder, 1000, "info", "c")] == [
        "reuse", "save", "drop", "reuse", "save",
    ]  # fmt: skip
    assert operations.count("fork") == 1, "whoever asks for a fork notes what it holds"
    last = read_log(folder, 2, "info")[0]
    assert (last["operation"], last["reason"], last["position"], last["found"]) == ("reuse", "edited", 600, 2)


def test_a_level_leaves_out_what_is_below_it_and_damage_is_stepped_over(tmp_path: Path) -> None:
    log = KvLog(tmp_path, "info")
    for number in range(5):
        log.add("info", "save", conversation="c", tokens=number)
        log.add("debug", "seal", start=number)
    log.flush()
    with (tmp_path / FILE_NAME).open("a") as file:
        file.write('{"at": 1, "level": "in')
    assert [entry["tokens"] for entry in read_log(tmp_path, 3)] == [2, 3, 4]
    assert not read_log(tmp_path, 3, "warn")
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600


def test_the_log_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.kv.log._MOST_BYTES", 2000)
    log = KvLog(tmp_path)
    for number in range(200):
        log.add("info", "save", tokens=number)
        log.flush()
    files = sorted(tmp_path.iterdir())
    assert len(files) == 2
    assert sum(path.stat().st_size for path in files) < 5000
    assert json.dumps(read_log(tmp_path, 1)[0]["tokens"]) == "199"


def test_an_answer_that_goes_on_explains_its_one_token(driver: Driver) -> None:
    """The prompt of "continue" ends in the last sampled token, which alone was never computed."""
    first = driver.run("1", "c", prompt(300))
    text = prompt(300) + first.generated
    more = driver.run("2", "c", text, history=len(text.ids) - 1, last_turn="stopped")
    assert more.computed == (ComputedRange(1, "last sampled"),)
    assert more.reused.total == len(text.ids) - 1


def test_what_the_budget_refused_is_named_told_and_not_counted(model: Path, tmp_path: Path) -> None:  # noqa: F811
    folder, before = tmp_path / "kv", time.time()
    with Driver(model, folder) as driver:
        driver.run("1", "pinned", prompt(700))
        driver.client.send(PinState(ConversationId("pinned")))
        done = driver.run("2", "c", prompt(300, 5))
        kept = len(done.generated) + 299
    more = prompt(300, 5) + done.generated + prompt(40, 8)
    for number in "34":  # each in a process of its own, as far as the store can tell
        with Driver(model, folder, cache_log="info", disk_budget_bytes=20_000) as driver:
            turn = driver.run(number, "c", more, history=kept)
            assert turn.bytes_written == 0
        kept, more = len(more) + len(turn.generated) - 1, more + turn.generated + prompt(5, 9)
    with StoreTools(folder) as tools:
        assert tools.stat().bytes_on_disk > tools.stat().pinned_bytes > 20_000
    with Driver(model, folder) as driver:
        after = driver.run("5", "c", more, history=kept)
    refused = next(part for part in after.computed if part.reason == "refused by the budget")
    assert before < refused.at < time.time()
    assert not any(part.reason in ("not saved", "not in cache") for part in after.computed)
    log = read_log(folder, 100)
    saves = [entry.get("on_disk", True) for entry in log if entry["operation"] == "save"]
    assert saves == [True, True, False, False, True]
    assert all("pinned conversations hold" in entry["why"] for entry in log if entry["operation"] == "notice")
    with Driver(model, folder) as driver:
        more += after.generated
        again = driver.run("6", "c", more + prompt(5, 7), history=len(more) - 1)
    assert again.computed[0].reason == "last sampled", "what was saved since is not refused any more"
