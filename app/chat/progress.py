"""The line of a running answer before its first word: what is happening, how far, how long still."""

from __future__ import annotations

from PySide6.QtCore import QElapsedTimer
from PySide6.QtWidgets import QProgressBar, QVBoxLayout, QWidget

from app.chat.words import phase_words
from app.core.events import TurnPhase
from app.widgets.cards import label

FIRST_WORDS = "Looking at the question"  # until a phase is told: the machine may be busy


class PhaseView(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self._text = label(FIRST_WORDS, "muted")
        self._bar = QProgressBar(textVisible=False)
        self._bar.setAccessibleName("Reading progress")
        self._clock = QElapsedTimer()
        self._begun_at = 0
        self._phase = ""
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 2, 0, 6)
        layout.setSpacing(6)
        layout.addWidget(self._text)
        layout.addWidget(self._bar)
        self._bar.setMaximumWidth(420)
        self._bar.hide()

    def show_phase(self, phase: TurnPhase) -> None:
        if phase.phase != self._phase:
            self._phase, self._begun_at = phase.phase, phase.done
            self._clock.start()
        counted = phase.phase in ("reading", "restoring", "surveying") and phase.total > 0
        self._text.setText(phase_words(phase, self._speed(phase) if counted else 0.0))
        self._bar.setVisible(counted)
        if counted:
            self._bar.setRange(0, phase.total)
            self._bar.setValue(phase.done)

    def _speed(self, phase: TurnPhase) -> float:
        if phase.seconds_left and phase.done < phase.total:
            return (phase.total - phase.done) / phase.seconds_left
        elapsed = self._clock.elapsed() / 1000
        return (phase.done - self._begun_at) / elapsed if elapsed > 0.2 else 0.0
