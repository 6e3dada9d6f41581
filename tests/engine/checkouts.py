"""Another checkout of the program as working directory: one without a native module, which nothing may import."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def other_checkout(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("checkout")
    for package in ("engine", "kernels", "rag", "app"):
        (folder / package).mkdir()
        (folder / package / "__init__.py").write_text("raise ImportError('the other checkout')")
    monkeypatch.chdir(folder)
    return folder
