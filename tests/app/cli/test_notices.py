"""A command does not promise what only a process that stays can keep."""

from __future__ import annotations

import errno
import io
from pathlib import Path

import pytest

from app.cli.console import Console
from app.cli.notices import of_command
from app.cli.session import open_session
from app.core.errors import UserError
from app.core.paths import Paths
from engine.kv.notices import Notice
from engine.store.refusals import OverBudget, Refusals


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), OverBudget(10**6, 0), OSError("torn")])
def test_nothing_goes_on_from_the_memory_of_a_command(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Notice] = []
    Refusals(told.append).begin(error)
    (notice,) = told
    shown = of_command(notice.next)
    assert "memory" in notice.next
    assert "memory" not in shown
    assert "read again in the next command" in shown
    monkeypatch.setenv("PAGEKEEP_HOME", str(tmp_path / "home"))
    Paths.default().create()
    err = io.StringIO()
    with open_session(Console(as_json=False, out=io.StringIO(), err=err)) as session:
        session.notice(notice.what, notice.why, notice.next)
    assert shown in err.getvalue()
    assert [one.next for one in session.notices] == [shown]


def test_what_the_window_has_in_preferences_is_named_as_a_command() -> None:
    told = of_command("Raise the memory budget in the preferences, or choose a smaller KV type or model.")
    assert told == "Raise the memory budget (pagekeep cache budget --ram SIZE), or choose a smaller KV type or model."
    out = io.StringIO()
    Console(as_json=True, out=out).error(UserError("No.", "Full.", "Unpin some, or raise the disk budget."))
    assert "raise the disk budget (pagekeep cache budget --disk SIZE)." in out.getvalue()
