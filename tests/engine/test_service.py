"""The engine as the application sees it: real thread, real tiny model, real pages, real store."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from engine.messages import (
    Cancel,
    ComputedRange,
    ConversationId,
    DropState,
    EngineStats,
    Focus,
    ForkState,
    ModelFailed,
    ModelLoaded,
    PrefillProgress,
    Sampling,
    SaveState,
    TokenDelta,
    Tokens,
    TurnFailed,
    TurnId,
)
from engine.store.mapping import can_map
from tests.engine.engine_driver import GREEDY, Driver

DENSE = Path(__file__).parent.parent / "data" / "models" / "type-dense-q4_1.gguf"
LONG = Sampling(temperature=0.0, max_tokens=100_000)


def prompt(count: int, seed: int = 1) -> Tokens:
    return Tokens.prompt(random.Random(seed).choices(range(3, 900), k=count))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dense Q4_1 file with a context of 8,192 tokens instead of 512."""
    data = bytearray(DENSE.read_bytes())
    value = data.index(b"llama.context_length") + len("llama.context_length") + 4  # behind the type of the value
    data[value : value + 4] = (8192).to_bytes(4, "little")
    path = tmp_path_factory.mktemp("model") / "dense.gguf"
    path.write_bytes(data)
    return path


@pytest.fixture
def driver(model: Path, tmp_path: Path) -> Iterator[Driver]:
    with Driver(model, tmp_path / "kv") as driver:
        yield driver


def test_a_turn_goes_from_prompt_to_text(driver: Driver) -> None:
    assert isinstance(driver.loaded, ModelLoaded)
    done = driver.run("t", "c", prompt(300))
    assert len(done.generated) == 12
    assert done.reason == "length"
    assert done.computed == (ComputedRange(300, "new"),)
    deltas = [event for event in driver.events if isinstance(event, TokenDelta)]
    assert "".join(delta.text for delta in deltas) == done.text
    assert sum((delta.ids for delta in deltas), ()) == done.generated.ids
    progress = [event for event in driver.events if isinstance(event, PrefillProgress)]
    assert (progress[-1].done, progress[-1].total) == (300, 300), "what is computed, in the files or not"
    assert all(0 <= event.kept <= event.done for event in progress)


def test_a_model_without_turns_stops_where_it_writes_one(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file without a chat template: a base model goes on with the reader's next question."""
    base = tmp_path / "base.gguf"
    data = model.read_bytes().replace(b"tokenizer.chat_template", b"tokenizer.chat_forgotte")
    base.write_bytes(data.replace(b"<|im_start|>", b"<|no_start|>"))
    with Driver(base, tmp_path / "kv") as driver:
        text = driver.run("1", "a", prompt(40)).text
    monkeypatch.setattr("engine.chat_sources._PLAIN_STOPS", (text[6:9],))
    with Driver(base, tmp_path / "kv") as driver:
        done = driver.run("1", "a", prompt(40))
    assert (done.reason, done.text) == ("stop_string", text[: text.index(text[6:9])])


def test_the_next_turn_computes_the_last_sampled_token_and_what_is_new(driver: Driver) -> None:
    first = driver.run("1", "c", prompt(300))
    history = prompt(300) + first.generated
    second = driver.run("2", "c", history + prompt(9, 2), history=len(history) - 1)
    assert second.reused.memory == 311
    assert second.computed == (ComputedRange(1, "last sampled"), ComputedRange(9, "new"))


def test_what_was_kept_gives_the_same_answer_as_computing_it_again(driver: Driver, model: Path, tmp_path: Path) -> None:
    first = driver.run("1", "c", prompt(300))
    tokens = prompt(300) + first.generated + prompt(9, 2)
    warm = driver.run("2", "c", tokens)
    sampled = Sampling(temperature=1.5, seed=4, max_tokens=20)
    warm_sampled = driver.run("3", "c", tokens, sampled)
    with Driver(model, tmp_path / "other") as cold:
        assert cold.run("2", "c", tokens).generated == warm.generated
        assert cold.run("3", "c", tokens, sampled).generated == warm_sampled.generated


def test_a_new_process_goes_on_from_disk(model: Path, tmp_path: Path) -> None:
    with Driver(model, tmp_path / "kv") as driver:
        first = driver.run("1", "c", prompt(700))
        tokens = prompt(700) + first.generated + prompt(5, 3)
        twin = driver.run("2", "d", tokens)
    with Driver(model, tmp_path / "kv") as driver:
        second = driver.run("2", "c", tokens, history=711)
    assert second.reused.disk >= 711
    assert second.reused.memory == 0
    assert second.generated == twin.generated
    assert second.bytes_read > 0


def test_the_same_prompt_again_computes_nothing(driver: Driver) -> None:
    first = driver.run("1", "c", prompt(300))
    again = driver.run("2", "c", prompt(300))
    assert again.computed == ()
    assert again.generated == first.generated


def test_the_same_prompt_in_a_new_process_computes_its_last_token_without_writing(model: Path, tmp_path: Path) -> None:
    with Driver(model, tmp_path / "kv") as driver:
        first = driver.run("1", "c", prompt(300))
    with Driver(model, tmp_path / "kv") as driver:
        again = driver.run("2", "c", prompt(300))
    assert again.computed == (ComputedRange(1, "first token"),)
    assert again.generated == first.generated


def test_two_conversations_on_one_document_compute_it_once(driver: Driver) -> None:
    document = prompt(3000)
    driver.submit("1", "a", document + prompt(5, 2))
    driver.submit("2", "b", document + prompt(7, 3))
    results = [driver.result("1"), driver.result("2")]
    computed = sum(entry.tokens for done in results for entry in done.computed)
    pages = 3000 // driver.loaded.page_tokens * driver.loaded.page_tokens  # type: ignore[union-attr]
    assert computed == 3005 + 3007 - pages


def test_several_conversations_answer_as_they_would_alone(driver: Driver) -> None:
    prompts = {f"c{i}": prompt(90 + 37 * i, i) for i in range(6)}
    for name, tokens in prompts.items():
        driver.submit(name, name, tokens, Sampling(temperature=0.9, seed=7, max_tokens=30))
    together = {name: driver.result(name).generated for name in prompts}
    for name, tokens in prompts.items():
        driver.client.send(DropState(ConversationId(name), disk=True))
        alone = driver.run(f"{name}-alone", name, tokens, Sampling(temperature=0.9, seed=7, max_tokens=30))
        assert alone.generated == together[name]


def test_cancel_keeps_what_was_said_and_the_others_go_on(driver: Driver) -> None:
    driver.at(lambda e: driver.deltas("1") >= 5, lambda: driver.client.send(Cancel(TurnId("1"))))
    driver.submit("1", "a", prompt(100, 3), LONG)
    driver.submit("2", "b", prompt(120, 2), LONG)
    done = driver.result("1")
    assert done.reason == "cancelled"
    assert len(done.generated) >= 5
    before = driver.deltas("2")
    driver.wait_tokens("2", before + 5)
    history = prompt(100, 3) + done.generated
    assert driver.run("3", "a", history + prompt(4, 9), history=len(history) - 1).reused.memory == len(history) - 1
    driver.client.send(Cancel(TurnId("2")))
    driver.result("2")


def test_a_prefill_that_was_stopped_goes_on_where_it_was(driver: Driver) -> None:
    driver.at(
        lambda e: isinstance(e, PrefillProgress) and e.done >= 1000, lambda: driver.client.send(Cancel(TurnId("1")))
    )
    driver.submit("1", "c", prompt(4000))
    stopped = driver.result("1")
    assert stopped.reason == "cancelled"
    assert not stopped.generated.ids
    again = driver.run("2", "c", prompt(4000))
    assert again.reused.memory >= 896


def test_a_prompt_over_the_context_fails_before_anything_is_computed(model: Path, tmp_path: Path) -> None:
    with Driver(model, tmp_path, context=512) as driver:
        driver.submit("1", "c", prompt(600))
        failed = driver.wait(lambda e: isinstance(e, TurnFailed))
        assert isinstance(failed, TurnFailed)
        assert "600" in failed.why
        assert "89" in failed.why


def test_the_context_ends_an_answer_and_keeps_it(model: Path, tmp_path: Path) -> None:
    with Driver(model, tmp_path, context=256) as driver:
        done = driver.run("1", "c", prompt(250), LONG)
        assert done.reason == "context"
        assert len(done.generated) == 6


def test_state_report_and_drop(driver: Driver) -> None:
    done = driver.run("1", "c", prompt(1000))
    history = prompt(1000) + done.generated
    driver.client.send(ForkState(ConversationId("c"), ConversationId("twin")))
    report = driver.state("c", history)
    assert (report.tokens, report.tokens_memory, report.tier) == (1012, 1011, "memory")
    assert report.shared_with == ("twin",)
    driver.client.send(DropState(ConversationId("twin"), disk=True))
    driver.client.send(DropState(ConversationId("c"), disk=True))
    assert driver.state("c", history).tokens_memory == 0
    driver.client.send(SaveState(ConversationId("c")))  # deleting on disk is write-behind, like writing
    report = driver.state("c", history)
    assert (report.tokens_memory, report.tokens_disk_only, report.tier) == (0, 0, "none")


def test_focus_reads_a_conversation_before_it_is_asked(model: Path, tmp_path: Path) -> None:
    with Driver(model, tmp_path / "kv") as driver:
        done = driver.run("1", "c", prompt(700))
    history = prompt(700) + done.generated
    with Driver(model, tmp_path / "kv") as driver:
        assert driver.state("c", history).tier == "disk"
        driver.client.send(Focus(ConversationId("c"), history))
        for _ in range(200):
            if driver.state("c", history).tier == "memory":
                break
        assert driver.state("c", history).tier == "memory"


def test_a_wrong_file_leaves_the_loaded_model_in_place(driver: Driver, tmp_path: Path) -> None:
    wrong = tmp_path / "page.gguf"
    wrong.write_text("<html>not a model</html>")
    driver.load(wrong, None)
    failed = driver.wait(lambda e: isinstance(e, ModelFailed))
    assert isinstance(failed, ModelFailed)
    assert "page.gguf" in failed.what + failed.why
    assert driver.run("t", "c", prompt(20)).reason == "length"


def test_without_a_model_a_turn_fails_with_what_to_do(tmp_path: Path) -> None:
    wrong = tmp_path / "empty.gguf"
    wrong.touch()
    with Driver(wrong, None) as driver:
        driver.submit("1", "c", prompt(20), GREEDY)
        failed = driver.wait(lambda e: isinstance(e, TurnFailed))
        assert isinstance(failed, TurnFailed)
        assert failed.next


def test_quote_tells_what_would_be_reused(driver: Driver) -> None:
    tokens = prompt(300)
    assert driver.client.quote(tokens).new == 300
    driver.run("1", "c", tokens)
    quote = driver.client.quote(tokens + prompt(10, 2))
    assert (quote.reused_memory, quote.new) == (300, 10)
    assert quote.seconds > 0


@pytest.mark.skipif(not can_map(), reason="this system cannot populate a mapping")
def test_what_moved_to_its_file_is_told_and_counts_once(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = driver.client._service.running.cache
    monkeypatch.setattr(cache, "remap", partial(cache.remap, 1))
    done = driver.run("1", "c", prompt(700))
    pages, stride = -(-(700 + len(done.generated)) // driver.loaded.page_tokens), cache.pool.stride
    driver.wait(lambda event: isinstance(event, EngineStats) and event.kv_mapped_bytes == (pages - 1) * stride)
    assert max(e.kv_memory_bytes for e in driver.events if isinstance(e, EngineStats)) <= pages * stride
