"""Reasoning on and off in the header: only where the loaded model's template can switch it. A tiny real model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QComboBox, QWidget

from app.preferences.dialog import PreferencesDialog
from tests.app.gui.driver import Driver
from tests.engine.gguf_bytes import STRING
from tests.engine.tiny_model import Changes, saved

PLAIN = "{% for m in messages %}{{ m.role }}>{{ m.content }};{% endfor %}"
SWITCHED = PLAIN + "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}"


def model(folder: Path, template: str) -> Path:
    folder.mkdir()
    keys: Changes = {
        "tokenizer.chat_template": (STRING, template),
        "tokenizer.chat_template.brief": (STRING, PLAIN),
    }
    return saved(folder, keys)


@pytest.fixture
def driver(qapp: QApplication, tmp_path: Path) -> Iterator[Driver]:
    made = Driver(qapp, tmp_path / "home")
    try:
        made.show()
        yield made
    finally:
        made.quit()


def test_it_is_there_where_the_template_can_and_loads_the_model_again(driver: Driver, tmp_path: Path) -> None:
    switch, workspace = driver.window.chat.header.reasoning, driver.desktop.workspace
    assert not switch.isVisible()
    driver.use_model(model(tmp_path / "switched", SWITCHED))
    driver.until(switch.isVisible, "it is not offered")
    assert switch.isChecked(), "left to the template, it reasons"
    loads: list[object] = []
    driver.desktop.bridge.model_loaded.connect(loads.append)
    switch.click()
    driver.until(lambda: loads, "the model is not loaded again")
    assert workspace.settings.engine.reasoning == "off"
    assert workspace.loaded is not None
    assert workspace.loaded.reasoning == "off"
    assert not switch.isChecked()
    assert switch.accessibleName().endswith("off")
    assert workspace.engine.model.chat.segments.assistant_open.endswith("<think></think>")
    driver.use_model(model(tmp_path / "plain", PLAIN))
    driver.until(lambda: not switch.isVisible(), "a model without it has it")


def test_how_much_is_chosen_from_a_menu(driver: Driver, tmp_path: Path) -> None:
    switch, workspace = driver.window.chat.header.reasoning, driver.desktop.workspace
    driver.use_model(model(tmp_path / "effort", PLAIN + "{{ reasoning_effort | default('medium') }}"))
    driver.until(switch.isVisible, "it is not offered")
    assert switch.text() == "Reasoning: auto"
    choices = {action.text(): action for action in switch.menu().actions()}
    assert list(choices) == ["Auto", "Low", "Medium", "High"]
    choices["High"].trigger()
    driver.until(lambda: switch.text() == "Reasoning: high", "not loaded again")
    assert workspace.settings.engine.reasoning == "high"
    assert workspace.engine.model.chat.segments.assistant_open.endswith("high")
    driver.use_model(model(tmp_path / "switched", SWITCHED))
    driver.until(lambda: switch.text() == "Reasoning", "the menu stays")
    assert switch.isChecked()
    assert switch.menu() is None


def test_templates_and_placement_are_preferences(driver: Driver, tmp_path: Path) -> None:
    driver.use_model(model(tmp_path / "switched", SWITCHED))
    workspace = driver.desktop.workspace
    driver.until(lambda: workspace.loaded is not None, "not loaded")
    driver.window.dialogs.preferences()
    dialog = driver.window.dialogs.shown
    assert isinstance(dialog, PreferencesDialog)
    by_name = {widget.accessibleName(): widget for widget in dialog.findChildren(QWidget)}
    template = by_name["Chat template"]
    assert isinstance(template, QComboBox)
    assert [template.itemText(i) for i in range(template.count())] == ["brief", "default"]
    template.setCurrentText("brief")
    by_name["Layers on the GPU"].setValue(3)
    rules = by_name["Tensor rules"]
    rules.setPlainText("exps=nowhere")
    driver.until(lambda: workspace.settings.engine.gpu_layers == 3, "not stored")
    assert workspace.settings.engine.chat_template == "brief"
    assert workspace.settings.engine.tensor_overrides == ()
    assert "Not stored" in rules.parent().hint.text()
    rules.setPlainText("exps=CPU\nattn=GPU0")
    wanted = ("exps=CPU", "attn=GPU0")
    driver.until(lambda: workspace.settings.engine.tensor_overrides == wanted, "not stored")
    dialog.close()
