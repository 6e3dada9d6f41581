"""Letters without a font are told once, with what to install."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.widgets import fonts
from app.widgets.fonts import MissingFonts, command, has_glyph, missing_words, scripts_of
from app.widgets.toast import Toasts
from tests.app.gui.driver import Driver
from tests.app.gui.pdf_files import long_pages


def test_letters_without_a_font_are_named_by_their_script() -> None:
    assert scripts_of("a漢かハ한अ2 ") == (
        "CJK",
        "DEVANAGARI",
        "DIGIT",
        "HANGUL",
        "HIRAGANA",
        "KATAKANA",
        "LATIN",
        "SPACE",
    )
    assert "Japanese or Korean letters" in missing_words(scripts_of("漢かハ한"))
    assert command(scripts_of("漢")).endswith("install fonts-noto-cjk")
    assert "Devanagari" in missing_words(scripts_of("漢अ"))
    assert command(scripts_of("漢अ")).endswith("install fonts-noto-cjk fonts-noto-core")


def test_it_is_told_once_and_each_letter_is_asked_for_once(qtbot: QtBot) -> None:
    host, asked = QWidget(), []
    qtbot.addWidget(host)

    def shows(letter: str) -> bool:
        asked.append(letter)
        return letter != "漢"

    looking = MissingFonts(toasts := Toasts(host), shows)
    looking.look(["Report 2.pdf", "Отчёт.pdf", "Отчёт, 100 €"])
    assert sorted(asked) == sorted(set("Отчёт"))
    assert toasts._text.text() == ""
    looking.look(["漢字.pdf"])
    assert "apt install fonts-noto-cjk" in toasts._text.text()
    toasts.say("Something else.")
    assert "apt install fonts-noto-cjk" in toasts._text.text(), "nothing takes its place"
    toasts.offer_undo("Deleted.", lambda: None)
    assert toasts._text.text() == "Deleted."
    toasts._action.click()
    assert "apt install fonts-noto-cjk" in toasts._text.text(), "told once only, so it comes back"
    before = len(asked)
    looking.look(["語"])
    assert len(asked) == before


def test_a_document_that_is_named_so_brings_it_up(
    qapp: object, tmp_path: Path, make_pdf: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert has_glyph("a")
    monkeypatch.setattr(fonts, "has_glyph", lambda letter: False)
    driver = Driver(qapp, tmp_path / "home")
    try:
        driver.show()
        driver.desktop.workspace.update_settings(fetch_embedder=False)
        driver.add(make_pdf("年報.pdf", long_pages("orchard", 1)))
        driver.until(lambda: "fonts-noto-cjk" in driver.desktop.toasts._text.text(), "not told")
    finally:
        driver.quit()
