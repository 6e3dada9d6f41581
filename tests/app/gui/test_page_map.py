"""The page map of the cache panel: every page in words and colours, and only what is seen is painted."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QColor
from pytestqt.qtbot import QtBot

from app.cache_panel.page_map import COLORS, MapArea
from app.services import Services
from app.widgets.theme import load_colors
from engine.messages import PageBits, StateReport
from tests.app.gui.test_panels import STATE


def mapped(pages: list[int], size: int = 64) -> StateReport:
    return replace(STATE, pages=bytes(pages), page_tokens=size, tokens=len(pages) * size - 10)


def test_the_page_map_tells_every_page_and_paints_only_what_is_seen(qtbot: QtBot, services: Services) -> None:
    area = MapArea(services.theme)
    qtbot.addWidget(area)
    area.resize(300, 200)
    area.show()
    both, disk = PageBits.MEMORY | PageBits.DISK, PageBits.DISK
    shared, moved, tail = both | PageBits.SHARED, both | PageBits.SHIFTED, both | PageBits.TAIL
    area.show_pages(mapped([shared, shared, shared, both, disk, PageBits.MOVES, 0, tail]))
    assert "1 approximate, 1 must be read" in area.map.accessibleName()
    assert area.map.words_at(QPoint(5 * 14 + 5, 5)).startswith("Tokens 320–383: kept; moves up to here with the next")
    area.show_pages(mapped([shared, shared, shared, both, disk, moved, 0, tail]))
    words = [area.map.words_at(QPoint(n * 14 + 5, 5)) for n in range(8)]
    assert words[0] == "Tokens 0–63: shared, in memory and on disk"
    assert words[4] == "Tokens 256–319: own, on disk"
    assert words[5].startswith("Tokens 320–383: approximate (moved up")
    assert words[6] == "Tokens 384–447: must be read"
    assert words[7] == "Tokens 448–501: the unfinished end, in memory and on disk"
    assert area.map.words_at(QPoint(5, 100)) == ""
    painted: list[int] = []
    area.map._paint_cell = lambda painter, cell, bits: painted.append(cell.y())
    area.show_pages(mapped([both] * 5000))
    area.grab()
    assert 0 < len(set(painted)) < 30, "rows that are scrolled away cost nothing"


@pytest.mark.parametrize("name", ["light", "dark"])
def test_the_colours_of_the_page_map_can_be_told_apart_and_none_is_that_of_the_disk(name: str) -> None:
    colors = load_colors(name)
    rgb = [QColor(colors[color]).getRgb()[:3] for color in (*COLORS.values(), "bar_decode")]
    assert min(math.dist(one, other) for one, other in itertools.combinations(rgb, 2)) > 40
