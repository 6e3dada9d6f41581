"""Random lives of a few conversations: asked, edited, forked, evicted, dropped, left and come back to."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.errors import EngineError
from engine.kv.layout import PageLayout
from engine.messages import Tokens
from engine.store.tools import StoreTools
from tests.engine.kv.small import PAGE, append, check_rows, small_layout
from tests.engine.store.opened import Opened, restore, tokens_of

LAYOUT: PageLayout = small_layout(windows=(1,))
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "ask", "edit", "fork", "evict", "drop", "forget", "reopen", "gc", "look"]),
        st.integers(0, 3),
        st.integers(0, 3 * PAGE),
    ),
    min_size=1,
    max_size=25,
)


class Life:
    """Runs steps on a real cache over a real store, and keeps the token lists beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.histories: dict[str, Tokens] = {}
        self.opened = self._open()

    def _open(self) -> Opened:
        return Opened(self.folder, LAYOUT, ram_budget=30 * 4096, disk_budget=80 * 8192)

    def run(self, step: str, which: int, amount: int) -> None:
        getattr(self, step)(f"c{which}", amount)

    def ask(self, name: str, amount: int) -> None:
        """A turn: what is there is restored, the rest computed; all rows must be those of the whole list."""
        history = self.histories.get(name, tokens_of(range(2 * PAGE + 3)))
        if len(history) + amount > 20 * PAGE:
            return
        whole = history + tokens_of((amount + i) % 5 for i in range(amount))
        sequence = restore(self.opened.cache, self.opened.cache.match(whole))
        check_rows(sequence)
        done = sequence.num_tokens
        append(sequence, Tokens(whole.ids[done:], whole.roles[done:]))
        self.opened.cache.save(name, sequence)
        check_rows(sequence)
        sequence.release()
        self.histories[name] = whole

    def edit(self, name: str, amount: int) -> None:
        old = self.histories.get(name, Tokens())
        cut = max(0, len(old) - amount)
        self.histories[name] = Tokens(old.ids[:cut], old.roles[:cut]) + tokens_of([90 + amount])
        self.ask(name, 1)

    def fork(self, name: str, amount: int) -> None:
        if name in self.histories:
            self.opened.cache.fork(name, f"c{amount % 4}")
            self.histories[f"c{amount % 4}"] = self.histories[name]

    def evict(self, name: str, amount: int) -> None:
        self.opened.cache.evict(amount * 4096)

    def drop(self, name: str, amount: int) -> None:
        self.opened.cache.drop(name)

    def forget(self, name: str, amount: int) -> None:
        self.opened.cache.drop(name, disk=True)
        self.histories.pop(name, None)

    def reopen(self, name: str, amount: int) -> None:
        self.opened.__exit__()
        self.opened = self._open()
        for history in self.histories.values():
            found = self.opened.cache.match(history)
            assert found.memory_tokens == 0

    def gc(self, name: str, amount: int) -> None:
        with StoreTools(self.folder) as tools:
            tools.gc(amount * 8192 * 4)

    def look(self, name: str, amount: int) -> None:
        history = self.histories.get(name, Tokens())
        assert self.opened.cache.flush(240)  # or what is written between the two looks is in one of them only
        report = self.opened.cache.report(name, history)
        assert report.tokens_memory + report.tokens_disk_only <= report.tokens == len(history)
        assert report.tokens_unsaved <= report.tokens_memory
        assert self.opened.cache.peek(history) == (report.tokens_memory, report.tokens_disk_only)

    def end(self) -> None:
        self.opened.__exit__()
        with StoreTools(self.folder) as tools:
            assert not tools.verify().damaged


@settings(max_examples=40, deadline=None)
@given(STEPS)
@example([("edit", 0, 0), ("drop", 0, 0), ("look", 0, 0)])  # a tail on disk alone, of a list that had no page
def test_no_life_leads_to_a_wrong_row(steps: list[tuple[str, int, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        life = Life(Path(folder) / "store")
        try:
            for step in steps:
                life.run(*step)
        except EngineError:
            life.opened.__exit__()
            raise
        life.end()
