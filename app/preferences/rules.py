"""The field for rules of placement: one per line, checked as they are typed."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPlainTextEdit, QVBoxLayout, QWidget

from app.preferences.fields import stop_strings
from app.widgets.cards import label, set_role

HINT = "REGEX=DEVICE, one per line, as exps=CPU; the first that fits decides. This version computes on the CPU: a plan"
HINT += " acts where a device is there (pagekeep model plan)."


class TensorRules(QWidget):
    """Signals: changed (rules that can be read; argument: tuple of them)."""

    changed = Signal(object)

    def __init__(self, rules: Sequence[str]) -> None:
        super().__init__()
        self.editor = QPlainTextEdit(tabChangesFocus=True, plainText="\n".join(rules))
        self.editor.setFixedHeight(3 * self.editor.fontMetrics().lineSpacing() + 10)
        self.editor.setAccessibleName("Tensor rules")
        self.hint = label(HINT, "muted")
        self.editor.textChanged.connect(self._check)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.editor)
        column.addWidget(self.hint)

    def _check(self) -> None:
        from engine.errors import EngineError
        from engine.placement_options import parse_options

        rules = stop_strings(self.editor.toPlainText())
        try:
            parse_options(rules)
        except EngineError as error:
            self.hint.setText(f"Not stored: {error.what} {error.why}")
            set_role(self.hint, "warn")
            return
        self.hint.setText(HINT)
        set_role(self.hint, "muted")
        self.changed.emit(rules)
