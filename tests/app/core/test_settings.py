import json
from dataclasses import replace
from pathlib import Path

import pytest

from app.core.events import Notice
from app.core.settings import Settings, StoredSettings, load_settings, save_settings
from engine.messages import EngineSettings, Sampling

CHANGED = Settings(
    model=Path("/m/a.gguf"),
    known_models=(Path("/m/a.gguf"), Path("/m/b.gguf")),
    engine=EngineSettings(context=4096, kv_type_k="q8"),
    sampling=Sampling(temperature=0.0, stop=("###",)),
    passages=3,
    embedder=Path("/m/meaning"),
    fetch_embedder=False,
)


def test_round_trip(tmp_path: Path) -> None:
    save_settings(tmp_path / "s.json", CHANGED)
    assert load_settings(tmp_path / "s.json") == (CHANGED, None)


def test_missing_file_gives_defaults_without_a_notice(tmp_path: Path) -> None:
    assert load_settings(tmp_path / "s.json") == (Settings(), None)


def test_keys_of_another_version_survive(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"passages": 4, "future": {"deep": [1]}}))
    settings, notice = load_settings(path)
    assert notice is None
    assert settings.passages == 4
    save_settings(path, replace(settings, passages=5))
    assert json.loads(path.read_text())["future"] == {"deep": [1]}


@pytest.mark.parametrize(
    "text",
    ["{not json", "[]", '{"passages": "many"}', '{"engine": {"threads": "two"}}', '{"sampling": 3}', '{"model": 5}'],
)
def test_damaged_file_is_moved_aside_and_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "s.json"
    path.write_text(text)
    settings, notice = load_settings(path)
    assert settings == Settings()
    assert notice is not None
    assert notice.why
    (aside,) = tmp_path.iterdir()
    assert aside.read_text() == text
    assert aside.name in notice.next


def test_whole_numbers_are_fine_where_a_fraction_is_meant(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text('{"sampling": {"temperature": 1}}')
    assert load_settings(path)[0].sampling.temperature == 1.0


def test_a_file_that_is_damaged_later_changes_nothing_and_is_told_once(tmp_path: Path) -> None:
    path, told = tmp_path / "s.json", list[Notice]()
    save_settings(path, CHANGED)
    stored = StoredSettings(path, on_notice=told.append)
    path.write_text("{not json")
    assert [stored.embedder() for _ in range(3)] == [CHANGED.embedder] * 3
    assert stored.current == CHANGED
    (notice,) = told
    assert "those in use stay" in notice.what
    assert (tmp_path / notice.next.split()[-1].rstrip(".")).read_text() == "{not json"
    stored.change(lambda s: replace(s, passages=4))
    assert load_settings(path) == (replace(CHANGED, passages=4), None)


def test_a_change_does_not_lose_what_a_damaged_file_held(tmp_path: Path) -> None:
    path, told = tmp_path / "s.json", list[Notice]()
    save_settings(path, CHANGED)
    stored = StoredSettings(path, on_notice=told.append)
    path.write_text("[]")
    stored.change(lambda s: replace(s, passages=4))
    assert load_settings(path) == (replace(CHANGED, passages=4), None)
    assert len(told) == 1
