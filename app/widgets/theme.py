"""Colours, icons and the style sheet, following the system's light or dark scheme.

Colours come from assets/themes/{light,dark}.json, the sheet from base.qss with `@name` in place of colours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QByteArray, QObject, QSize, Qt, Signal
from PySide6.QtGui import QColor, QGuiApplication, QIcon, QPainter, QPalette, QPixmap
from PySide6.QtWidgets import QApplication

ThemeChoice = Literal["system", "light", "dark"]
ASSETS = Path(__file__).resolve().parents[2] / "assets"
_PALETTE_ROLES = {
    QPalette.ColorRole.Window: "window",
    QPalette.ColorRole.WindowText: "text",
    QPalette.ColorRole.Base: "surface",
    QPalette.ColorRole.AlternateBase: "raised",
    QPalette.ColorRole.Text: "text",
    QPalette.ColorRole.Button: "surface",
    QPalette.ColorRole.ButtonText: "text",
    QPalette.ColorRole.Highlight: "accent",
    QPalette.ColorRole.HighlightedText: "on_accent",
    QPalette.ColorRole.Link: "accent",
    QPalette.ColorRole.PlaceholderText: "faint",
    QPalette.ColorRole.ToolTipBase: "raised",
    QPalette.ColorRole.ToolTipText: "text",
    QPalette.ColorRole.Mid: "line",
}


def load_colors(name: str) -> Mapping[str, str]:
    loaded: Mapping[str, str] = json.loads((ASSETS / "themes" / f"{name}.json").read_text("utf-8"))
    return loaded


def style_sheet(name: str, colors: Mapping[str, str]) -> str:
    """`@scheme`: how the paths of the scheme's small pictures begin: a sheet cannot paint icons in a colour."""
    text = (ASSETS / "themes" / "base.qss").read_text("utf-8")
    text = text.replace("@scheme", f"{(ASSETS / 'themes').as_posix()}/{name}")
    return re.sub(r"@(\w+)", lambda match: colors[match[1]], text)


class Theme(QObject):
    """The look of the application; one per process, passed to whoever draws.

    Signals:
        changed: colours and icons are new; widgets that drew with the old ones draw again.
    """

    changed = Signal()

    def __init__(self, application: QApplication, choice: ThemeChoice = "system") -> None:
        super().__init__(application)
        self._application = application
        self._choice: ThemeChoice = choice
        self._icons: dict[tuple[str, str], QIcon] = {}
        self._name = ""
        self.colors: Mapping[str, str] = {}
        if not application.styleSheet():
            application.setStyle("Fusion")
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._follow)
        self._apply()

    @property
    def is_dark(self) -> bool:
        return self._name == "dark"

    @property
    def choice(self) -> ThemeChoice:
        return self._choice

    def choose(self, choice: ThemeChoice) -> None:
        self._choice = choice
        self._apply()

    def color(self, name: str) -> QColor:
        return QColor(self.colors[name])

    def icon(self, name: str, color: str = "muted") -> QIcon:
        """An icon of assets/icons painted in the named colour; sharp at any device pixel ratio."""
        key = (name, color)
        if key not in self._icons:
            self._icons[key] = self._make_icon(name, color)
        return self._icons[key]

    def pixmap(self, name: str, color: str = "muted", size: int = 16) -> QPixmap:
        ratio = self._application.devicePixelRatio()
        return self.icon(name, color).pixmap(QSize(size, size), ratio)

    def _follow(self) -> None:
        if self._choice == "system":
            self._apply()

    def _apply(self) -> None:
        name = self._resolved()
        if name == self._name:
            return
        self._name = name
        self.colors = load_colors(name)
        self._icons.clear()
        self._application.setPalette(self._palette())
        sheet = style_sheet(name, self.colors)
        if sheet != self._application.styleSheet():
            self._application.setStyleSheet(sheet)
        self.changed.emit()

    def _resolved(self) -> str:
        if self._choice != "system":
            return self._choice
        dark = QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark
        return "dark" if dark else "light"

    def _palette(self) -> QPalette:
        palette = QPalette()
        for role, name in _PALETTE_ROLES.items():
            palette.setColor(role, self.color(name))
        for role in (QPalette.ColorRole.Text, QPalette.ColorRole.WindowText, QPalette.ColorRole.ButtonText):
            palette.setColor(QPalette.ColorGroup.Disabled, role, self.color("faint"))
        return palette

    def _make_icon(self, name: str, color: str) -> QIcon:
        from PySide6.QtSvg import QSvgRenderer

        text = (ASSETS / "icons" / f"{name}.svg").read_text("utf-8")
        renderer = QSvgRenderer(QByteArray(text.replace("currentColor", self.colors[color]).encode()))
        icon = QIcon()
        for size in (16, 20, 24, 32, 48, 64, 128):
            pixmap = QPixmap(size, size)
            pixmap.fill(Qt.GlobalColor.transparent)
            painter = QPainter(pixmap)
            renderer.render(painter)
            painter.end()
            icon.addPixmap(pixmap)
        return icon
