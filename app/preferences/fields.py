"""Fields of the preferences: whole and real numbers, choices, and numbers whose 0 is a word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtWidgets import QComboBox, QDoubleSpinBox, QSpinBox

BESIDE = 5  # pixels between a field's edge and its text, which the sheet does not keep


@dataclass(frozen=True)
class Number:
    """One preference that is a number. `step` 0: a whole number.

    `zero` is shown for 0, which then means that; values between 0 and `least` are rounded up to `least`.
    """

    name: str
    field: str
    low: float
    high: float
    step: float = 0.0
    suffix: str = ""
    hint: str = ""
    zero: str = ""
    least: int = 1


def stop_strings(text: str) -> tuple[str, ...]:
    """One per line, blanks at its ends included; empty lines say nothing."""
    return tuple(line for line in text.split("\n") if line.strip())


class WholeField(QSpinBox):
    """0 is a word; one step away from it is the least number."""

    def __init__(self, row: Number) -> None:
        super().__init__(minimum=int(row.low), maximum=int(row.high), groupSeparatorShown=True)
        self._least = row.least if row.zero else int(row.low)
        self.setSpecialValueText(row.zero)
        self.setSuffix(row.suffix)
        self.setKeyboardTracking(False)
        self.lineEdit().setTextMargins(BESIDE, 0, 0, 0)

    def stepBy(self, steps: int) -> None:
        target = self.value() + steps
        if 0 < target < self._least:
            target = self._least if steps > 0 else 0
        self.setValue(target)

    def valueFromText(self, text: str) -> int:
        value = super().valueFromText(text)
        return self._least if 0 < value < self._least else value


def whole_field(value: int, row: Number, changed: Callable[[int], None]) -> QSpinBox:
    made = WholeField(row)
    made.setValue(value)
    made.valueChanged.connect(changed)
    return made


def real_field(
    value: float, low: float, high: float, step: float, changed: Callable[[float], None], suffix: str = ""
) -> QDoubleSpinBox:
    made = QDoubleSpinBox(minimum=low, maximum=high, singleStep=step, decimals=2, suffix=suffix)
    made.setValue(value)
    made.setKeyboardTracking(False)
    made.lineEdit().setTextMargins(BESIDE, 0, 0, 0)
    made.valueChanged.connect(lambda new: changed(round(new, 4)))
    return made


def choice_field(values: tuple[str, ...], value: str, changed: Callable[[str], None]) -> QComboBox:
    made = QComboBox()
    made.addItems(list(values))
    made.setCurrentText(value)
    made.currentTextChanged.connect(changed)
    return made
