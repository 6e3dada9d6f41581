"""Restored equals never left: random lives of conversations, each answer compared with a run that never left.

Every answer, greedy or sampled, is asked again of an engine that keeps everything in memory and is never quit, and
(every few answers) of one that computes the whole prompt anew. `PAGEKEEP_SCRIPTS=200` is the long form.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.messages import (
    Cancel,
    ConversationId,
    DropState,
    Focus,
    ForkState,
    PrefillDocument,
    Sampling,
    SaveState,
    StopDocument,
    Tokens,
    TurnId,
)
from tests.engine.engine_driver import Driver
from tests.engine.test_service import model  # noqa: F401  (a fixture)

SCRIPTS = int(os.environ.get("PAGEKEEP_SCRIPTS", "8"))
OPERATIONS = 9
ANSWER = 6
MOST = 1500  # tokens of a conversation
COLD_EVERY = 5
NUMBERS = itertools.count(1)

STEPS = (
    "ask", "ask", "ask", "both", "switch", "quit", "fork", "edit", "regenerate", "trim", "evict", "forget", "cancel",
    "read_ahead",
)  # fmt: skip


@dataclass
class Conversation:
    """`ends`: lengths of the history after each answer; `asked`: of it up to the last question."""

    history: Tokens = field(default_factory=Tokens)
    ends: list[int] = field(default_factory=list)
    asked: int = 0


class Reference:
    """Engines that never left, and the answers they give."""

    def __init__(self, kept: Driver, cold: Driver) -> None:
        self.kept = kept
        self.cold = cold
        self.compared = self.compared_cold = 0

    def check(self, prompt: Tokens, sampling: Sampling, answer: Tokens, name: str) -> None:
        turn = str(next(NUMBERS))
        assert self.kept.run(turn, name, prompt, sampling).generated == answer, "not what a run that never left says"
        self.compared += 1
        if self.compared % COLD_EVERY == 0:
            self.cold.client.send(DropState(ConversationId("cold")))
            assert self.cold.run(turn, "cold", prompt, sampling).generated == answer, "not what a cold run says"
            self.cold.client.send(DropState(ConversationId("cold"), disk=True))
            self.compared_cold += 1


class Life:
    """A script: operations on a real engine with a store, small budgets included. `words`: ids below that are used."""

    words = 900
    document_tokens = (100, 700)
    longest_trim = 200
    steps = STEPS

    def __init__(self, model: Path, store: Path, reference: Reference, seed: int) -> None:  # noqa: F811
        self.model = model
        self.store = store
        self.reference = reference
        self.chance = random.Random(seed)
        self.name = f"s{seed}"
        self.document = self._text(self.chance.randint(*self.document_tokens))
        self.conversations = [Conversation(self.document) for _ in range(3)]
        self.driver = self._open()

    def _open(self) -> Driver:
        return Driver(self.model, self.store, ram_budget_bytes=self.chance.choice((5 << 20, 2 << 30)))

    def run(self) -> None:
        for _ in range(OPERATIONS):
            getattr(self, self.chance.choice(self.steps))(self.chance.randrange(3))
        assert self.driver.client.close(240)

    # --- operations ---

    def ask(self, which: int) -> None:
        mine = self.conversations[which]
        if len(mine.history) > MOST:
            mine.history, mine.ends = self.document, []
        self._answer(which, mine.history + self._text(self.chance.randint(1, 60)))

    def both(self, which: int) -> None:
        """Two questions at once: they share steps, and pages that one of them computes."""
        shared = self._text(self.chance.randint(1, 300))
        prompts = [self.document + shared + self._text(self.chance.randint(1, 20)) for _ in range(2)]
        sampling = self._sampling()
        turns = [str(next(NUMBERS)) for _ in prompts]
        for turn, prompt in zip(turns, prompts, strict=True):
            self.driver.submit(turn, f"{self.name}-both{turn}", prompt, sampling)
        for turn, prompt in zip(turns, prompts, strict=True):
            answer = self.driver.result(turn).generated
            self.reference.check(prompt, sampling, answer, f"{self.name}-both{turn}")

    def switch(self, which: int) -> None:
        self.driver.client.send(Focus(ConversationId(self._id(which)), self.conversations[which].history))
        if self.chance.random() < 0.7:
            self.ask(which)

    def quit(self, which: int) -> None:
        assert self.driver.client.close(240)
        self.driver = self._open()

    def fork(self, which: int) -> None:
        mine, target = self.conversations[which], (which + 1) % 3
        self.conversations[target] = Conversation(mine.history, list(mine.ends), mine.asked)
        self.driver.client.send(ForkState(ConversationId(self._id(which)), ConversationId(self._id(target))))
        self.ask(target)

    def edit(self, which: int) -> None:
        """Another question in the place of an earlier one."""
        mine = self.conversations[which]
        cut = self.chance.choice([len(self.document), *mine.ends[:-1]])
        mine.ends = [end for end in mine.ends if end <= cut]
        mine.history = _first(mine.history, cut)
        self.ask(which)

    def regenerate(self, which: int) -> None:
        mine = self.conversations[which]
        if mine.ends:
            mine.ends.pop()
            self._answer(which, _first(mine.history, mine.asked))

    def trim(self, which: int) -> None:
        mine = self.conversations[which]
        mine.history = _first(mine.history, max(1, len(mine.history) - self.chance.randint(1, self.longest_trim)))
        mine.ends = [end for end in mine.ends if end <= len(mine.history)]
        self.ask(which)

    def evict(self, which: int) -> None:
        self.driver.client.send(SaveState(ConversationId(self._id(which))))
        self.driver.client.send(DropState(ConversationId(self._id(which))))
        self.ask(which)

    def forget(self, which: int) -> None:
        self.driver.client.send(DropState(ConversationId(self._id(which)), disk=True))

    def cancel(self, which: int) -> None:
        mine = self.conversations[which]
        if len(mine.history) > MOST:
            return
        prompt, sampling = mine.history + self._text(9), self._sampling(400)
        turn = str(next(NUMBERS))
        self.driver.submit(turn, self._id(which), prompt, sampling)
        if self.chance.random() < 0.7:
            self.driver.wait_tokens(turn, self.chance.randint(1, 8))
        self.driver.client.send(Cancel(TurnId(turn)))
        answer = self.driver.result(turn).generated
        if len(answer):
            self.reference.check(prompt, self._like(sampling, len(answer)), answer, self._id(which))
            mine.history, mine.asked = prompt + answer, len(prompt)
            mine.ends.append(len(mine.history))

    def read_ahead(self, which: int) -> None:
        name = f"{self.name}-doc"
        self.driver.client.send(PrefillDocument(name, self.document))
        if self.chance.random() < 0.5:
            self.driver.client.send(StopDocument(name))
        self.ask(which)

    # --- within ---

    def _answer(self, which: int, prompt: Tokens) -> None:
        mine, sampling = self.conversations[which], self._sampling()
        answer = self.driver.run(str(next(NUMBERS)), self._id(which), prompt, sampling).generated
        self.reference.check(prompt, sampling, answer, self._id(which))
        mine.history, mine.asked = prompt + answer, len(prompt)
        mine.ends.append(len(mine.history))

    def _sampling(self, tokens: int = ANSWER) -> Sampling:
        greedy = self.chance.random() < 0.5
        return Sampling(temperature=0.0 if greedy else 1.2, seed=self.chance.randrange(1 << 30), max_tokens=tokens)

    def _like(self, sampling: Sampling, tokens: int) -> Sampling:
        return Sampling(temperature=sampling.temperature, seed=sampling.seed, max_tokens=tokens)

    def _text(self, count: int) -> Tokens:
        return Tokens.prompt(self.chance.choices(range(3, self.words), k=count))

    def _id(self, which: int) -> str:
        return f"{self.name}-{which}"


def _first(tokens: Tokens, count: int) -> Tokens:
    return Tokens(tokens.ids[:count], tokens.roles[:count])


@pytest.fixture(scope="module")
def reference(model: Path) -> Iterator[Reference]:  # noqa: F811
    with Driver(model, None) as kept, Driver(model, None) as cold:
        yield Reference(kept, cold)


@pytest.mark.timeout(600 + 10 * SCRIPTS)
def test_every_answer_is_that_of_a_run_that_never_left(model: Path, tmp_path: Path, reference: Reference) -> None:  # noqa: F811
    for seed in range(SCRIPTS):
        life = Life(model, tmp_path / "kv", reference, seed)
        try:
            life.run()
        except BaseException:
            life.driver.client.close(240)
            raise
    assert reference.compared > 3 * SCRIPTS
    print(f"{SCRIPTS} scripts, {reference.compared} answers equal, {reference.compared_cold} of them also cold")
