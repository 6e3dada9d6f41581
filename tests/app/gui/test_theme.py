"""Both themes: legible text, complete sheets, icons that draw something."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication, QDialogButtonBox, QStyle

from app.widgets.theme import ASSETS, Theme, load_colors, style_sheet

NAMES = ("light", "dark")


def luminance(color: str) -> float:
    """Relative luminance as WCAG 2.2 defines it."""
    parts = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in QColor(color).getRgbF()[:3]]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", ["text", "muted", "accent", "good", "warn", "bad"])
@pytest.mark.parametrize("ground", ["window", "sidebar", "surface", "raised"])
def test_text_is_legible(name: str, text: str, ground: str) -> None:
    colors = load_colors(name)
    assert contrast(colors[text], colors[ground]) >= 4.5


def test_buttons_of_dialogs_have_words_only(theme: Theme) -> None:
    """The style's own pictures are black on every ground."""
    box = QDialogButtonBox(QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Close)
    box.ensurePolished()
    box.show()
    style = box.style()
    assert not style.styleHint(QStyle.StyleHint.SH_DialogButtonBox_ButtonsHaveIcons, None, box)
    assert all(made.icon().isNull() for made in box.buttons())


@pytest.mark.parametrize("name", NAMES)
def test_buttons_cards_and_selection_are_legible(name: str) -> None:
    colors = load_colors(name)
    pairs = [("on_accent", "accent"), ("text", "selected"), ("muted", "selected"), ("text", "bad_soft")]
    pairs += [("text", "warn_soft"), ("text", "accent_soft"), ("accent", "accent_soft"), ("window", "text")]
    assert {
        pair: contrast(colors[pair[0]], colors[pair[1]]) for pair in pairs if contrast(*map(colors.get, pair)) < 4.5
    } == {}


@pytest.mark.parametrize("name", NAMES)
def test_the_sheets_pictures_are_there_in_its_colours(name: str) -> None:
    colors = load_colors(name)
    pictures = [Path(path) for path in re.findall(r'url\("([^"]+)"\)', style_sheet(name, colors))]
    assert len(pictures) > 4
    for picture in pictures:
        assert picture.name.startswith(f"{name}-")
        assert re.search('stroke="(#[^"]+)"', picture.read_text("utf-8"))[1] in colors.values()


@pytest.mark.parametrize("name", NAMES)
def test_sheet_uses_only_known_colours(name: str) -> None:
    assert "@" not in style_sheet(name, load_colors(name))
    assert load_colors("light").keys() == load_colors("dark").keys()


def test_every_icon_draws(qapp: QApplication, theme: Theme) -> None:
    for file in sorted((ASSETS / "icons").glob("*.svg")):
        image = theme.icon(file.stem).pixmap(32, 32).toImage()
        drawn = sum(image.pixelColor(x, y).alpha() > 60 for x in range(32) for y in range(32))
        assert drawn > 12, file.stem


def test_choice_changes_colours_at_once(theme: Theme) -> None:
    before = theme.color("window")
    theme.choose("dark")
    assert theme.is_dark
    assert theme.color("window") != before
    theme.choose("light")
