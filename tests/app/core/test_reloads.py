"""A larger context, asked for where a conversation is full: for this process, and remembered where that is no less."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.core.reloads import Reloads
from app.core.settings import Settings, StoredSettings, load_settings, save_settings
from engine.messages import ConversationId


@pytest.mark.parametrize(
    ("stored", "given", "kept"),
    [(0, 512, 0), (0, None, 2048), (1024, None, 2048), (1024, 512, 2048), (4096, 512, 4096)],
)
def test_a_larger_context_never_makes_the_remembered_one_smaller(
    tmp_path: Path, stored: int, given: int | None, kept: int
) -> None:
    """`stored` 0: as large as the model allows."""

    def context_of(context: int) -> Settings:
        return replace(Settings(), engine=replace(Settings().engine, context=context))

    path, loads = tmp_path / "settings.json", list[int]()
    save_settings(path, context_of(stored))
    settings = StoredSettings(path, None if given is None else context_of(given))
    handle = SimpleNamespace(info=SimpleNamespace(path=tmp_path))
    host = SimpleNamespace(gate=SimpleNamespace(current=lambda: SimpleNamespace(handle=handle)))
    turns = SimpleNamespace(running=dict)
    reloads = Reloads(
        cast(Any, host), settings, cast(Any, turns), lambda _: loads.append(settings.current.engine.context)
    )
    reloads.enlarge(ConversationId("c"), cast(Any, SimpleNamespace(context=2048)))
    assert loads == [2048]
    assert load_settings(path)[0].engine.context == kept
