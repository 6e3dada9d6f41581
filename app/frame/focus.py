"""The way of the Tab key: as one reads the window, whatever the order in which its parts were made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QWidget


def focus_order(regions: Sequence[QWidget]) -> list[QWidget]:
    """What takes the focus by Tab: region by region, in each by rows from the top, a row in reading direction."""
    return [widget for region in regions for widget in _inside(region)]


def move_focus(regions: Sequence[QWidget], forward: bool) -> bool:
    """To the next or previous; from the last to the first. False: there is none."""
    order, here = focus_order(regions), QApplication.focusWidget()
    if not order:
        return False
    step = 1 if forward else -1
    place = order.index(here) + step if here in order else 0 if forward else -1
    reason = Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason
    order[place % len(order)].setFocus(reason)
    return True


def _inside(widget: QWidget) -> Iterator[QWidget]:
    if not widget.isVisible() or not widget.isEnabled():
        return
    if widget.focusProxy() is None and widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
        yield widget
    children = (child for child in widget.children() if isinstance(child, QWidget) and not child.isWindow())
    for row in _rows(child for child in children if child.isVisible()):
        for child in row:
            yield from _inside(child)


def _rows(widgets: Iterable[QWidget]) -> list[list[QWidget]]:
    """By height; what stands beside each other (by more than half of the lower one) is one row."""
    rows: list[list[QWidget]] = []
    for widget in sorted(widgets, key=lambda one: one.y()):
        if rows and _beside(rows[-1][0], widget):
            rows[-1].append(widget)
        else:
            rows.append([widget])
    right_to_left = QApplication.layoutDirection() == Qt.LayoutDirection.RightToLeft
    return [sorted(row, key=lambda one: one.x(), reverse=right_to_left) for row in rows]


def _beside(first: QWidget, second: QWidget) -> bool:
    shared = min(first.geometry().bottom(), second.geometry().bottom()) - max(first.y(), second.y())
    return 2 * shared > min(first.height(), second.height())
