"""One page of preferences. Every change is stored and acts at once; engine settings act when a model loads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import get_args

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QGroupBox,
    QHBoxLayout,
    QPlainTextEdit,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.core.settings import Settings
from app.preferences.fields import Number, choice_field, real_field, stop_strings, whole_field
from app.preferences.rules import TensorRules
from app.services import Services
from app.widgets.cards import button, label
from app.widgets.theme import ThemeChoice
from engine.messages import Reasoning

GB = 10**9
APPLY_DELAY_MS = 300
Changed = Callable[[object], None]


_SAMPLING = (
    Number("Temperature", "temperature", 0, 2, 0.05, hint="0: always the likeliest"),
    Number("Top-k", "top_k", 0, 1000, zero="no limit"),
    Number("Top-p", "top_p", 0.01, 1, 0.01),
    Number("Min-p", "min_p", 0, 1, 0.01),
    Number("Repetition penalty", "repetition_penalty", 0.5, 2, 0.05, hint="1: none"),
    Number("Frequency penalty", "frequency_penalty", -2, 2, 0.1),
    Number("Presence penalty", "presence_penalty", -2, 2, 0.1),
    Number("Seed", "seed", 0, 2**31 - 1, zero="random", hint="0: every answer has its own"),
    Number("Longest answer", "max_tokens", 16, 65536, suffix=" tokens"),
)
_DOCUMENTS = (
    Number("Passages per question", "passages", 1, 50),
    Number(
        "Text per question",
        "passage_tokens",
        0,
        65536,
        suffix=" tokens",
        hint="0: by the model's context",
        zero="automatic",
        least=128,
    ),
    Number("Kept free for answers", "answer_reserve", 128, 65536, suffix=" tokens"),
    Number(
        "Read whole up to",
        "whole_tokens",
        0,
        1 << 20,
        suffix=" tokens",
        hint="0: whatever fits the context",
        zero="automatic",
    ),
)
_ENGINE = (
    Number("Threads", "threads", 0, 512, hint="0: one per physical core", zero="automatic"),
    Number("Context", "context", 0, 1 << 20, suffix=" tokens", hint="0: the model's own", zero="automatic"),
    Number("Batch", "prefill_chunk", 32, 8192, suffix=" tokens", hint="tokens read in one step; more is faster"),
    Number("Micro-batch", "micro_batch", 0, 8192, suffix=" tokens", hint="0: the whole step", zero="automatic"),
)
_KV = (
    ("K state", "kv_type_k", "f16: as computed; q8: half the size, old turns cannot be moved up"),
    ("V state", "kv_type_v", "with another type everything is read again"),
)
_PLACEMENT = (
    Number("Layers on the GPU", "gpu_layers", 0, 1 << 16, zero="none", hint="from the last one up"),
    Number("First layers' experts", "n_cpu_moe", 0, 1 << 16, zero="as placed", hint="so many stay on the CPU"),
)
REASONING: tuple[str, ...] = get_args(Reasoning)
KV_TYPES = ("f16", "bf16", "f32", "q8", "q4")


class PreferencesDialog(QDialog):
    """Signals: theme_chosen (argument: ThemeChoice)."""

    theme_chosen = Signal(str)

    def __init__(self, services: Services, theme: ThemeChoice, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._services = services
        self._settings: Settings = services.workspace.settings
        self.setWindowTitle("Preferences")
        self.resize(620, 640)
        self._reload_hint = label("These act when the model loads again. State is kept, but not across types.", "muted")
        self._apply_timer = QTimer(self, singleShot=True, interval=APPLY_DELAY_MS)
        self._apply_timer.timeout.connect(self._store)
        page = QWidget()
        page.setObjectName("page")
        column = QVBoxLayout(page)
        column.setContentsMargins(20, 12, 20, 12)
        column.setSpacing(12)
        groups = (self._answers, self._documents, self._engine, self._placement, self._budgets)
        for made in (self._look(theme), *(group() for group in groups)):
            column.addWidget(made)
        column.addStretch(1)
        scroll = QScrollArea(widgetResizable=True)
        scroll.setWidget(page)
        close = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        close.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(scroll, 1)
        foot = QHBoxLayout()
        foot.setContentsMargins(20, 8, 20, 12)
        foot.addWidget(close)
        layout.addLayout(foot)

    def done(self, result: int) -> None:
        if self._apply_timer.isActive():
            self._apply_timer.stop()
            self._store()
        super().done(result)

    # --- groups -----------------------------------------------------------------------------------
    def _look(self, theme: ThemeChoice) -> QGroupBox:
        choice = QComboBox()
        for key, name in (("system", "Like the system"), ("light", "Light"), ("dark", "Dark")):
            choice.addItem(name, key)
        choice.setCurrentIndex(choice.findData(theme))
        choice.currentIndexChanged.connect(lambda: self.theme_chosen.emit(choice.currentData()))
        return _group("Look", [("Theme", choice, "")])

    def _answers(self) -> QGroupBox:
        sampling = self._settings.sampling
        group = self._numbers("Answers", sampling, _SAMPLING, self._sampling)
        stop = QPlainTextEdit(tabChangesFocus=True, plainText="\n".join(sampling.stop))
        stop.setFixedHeight(3 * stop.fontMetrics().lineSpacing() + 10)
        change = self._sampling("stop")
        stop.textChanged.connect(lambda: change(stop_strings(stop.toPlainText())))
        _add_row(group.layout(), "Stop where this is written", stop, "one text per line")
        limit = QCheckBox("Only numbers of passages that are there", checked=self._settings.limit_citations)
        limit.setToolTip('After "[" the model can write no number without a passage; words in brackets stay free')
        limit.toggled.connect(self._field("limit_citations"))
        group.layout().addRow(limit)
        return group

    def _documents(self) -> _Group:
        group = self._numbers("Documents", self._settings, _DOCUMENTS, self._field)
        ahead = QCheckBox("Read documents ahead", checked=self._settings.read_ahead)
        ahead.setToolTip("The model reads a new document before you ask. Never on battery.")
        ahead.toggled.connect(self._field("read_ahead"))
        group.layout().addRow(ahead)
        return group

    def _engine(self) -> _Group:
        engine = self._settings.engine
        group = self._numbers("Engine", engine, _ENGINE, self._engine_field)
        form = group.layout()
        for name, field, hint in _KV:
            _add_row(form, name, choice_field(KV_TYPES, getattr(engine, field), self._engine_field(field)), hint)
        reasoning = choice_field(REASONING, engine.reasoning, self._engine_field("reasoning"))
        _add_row(form, "Reasoning", reasoning, "before answers: on or off, or how much, as the model takes it")
        templates = self._templates()
        if len(templates) > 1:
            template = choice_field(templates, engine.chat_template, self._engine_field("chat_template"))
            _add_row(form, "Chat template", template, "those of the model's file")
        drafts = QCheckBox("Draft from earlier text where it pays", checked=engine.speculation)
        drafts.setToolTip("What an answer copies is tried in steps of several words. The words are the same.")
        drafts.toggled.connect(self._engine_field("speculation"))
        form.addRow(drafts)
        row = QHBoxLayout()
        row.addWidget(self._reload_hint, 1)
        row.addWidget(button("Load the model again", self._reload))
        form.addRow(row)
        return group

    def _placement(self) -> _Group:
        """What of a model goes where, as `-ngl`, `--cpu-moe`, `--n-cpu-moe` and `-ot` say it."""
        engine = self._settings.engine
        group = self._numbers("Placement", engine, _PLACEMENT, self._engine_field)
        form = group.layout()
        experts = QCheckBox("All experts stay on the CPU", checked=engine.cpu_moe)
        experts.setToolTip("The rest of each layer goes where it is placed (--cpu-moe)")
        experts.toggled.connect(self._engine_field("cpu_moe"))
        form.addRow(experts)
        rules = TensorRules(engine.tensor_overrides)
        rules.changed.connect(self._engine_field("tensor_overrides"))
        form.addRow("Tensor rules", rules)
        return group

    def _templates(self) -> tuple[str, ...]:
        """Names to choose from, the chosen one among them."""
        loaded = self._services.workspace.loaded
        names = loaded.templates if loaded is not None else ()
        return tuple(dict.fromkeys((*names, self._settings.engine.chat_template)))

    def _budgets(self) -> QGroupBox:
        engine = self._settings.engine

        def budget(name: str) -> Callable[[float], None]:
            return lambda value: self._engine_field(name)(int(value * GB))

        memory = real_field(engine.ram_budget_bytes / GB, 0.1, 4096, 0.5, budget("ram_budget_bytes"), " GB")
        disk = real_field(engine.disk_budget_bytes / GB, 0.1, 65536, 1, budget("disk_budget_bytes"), " GB")
        rows = [
            ("Memory for state", memory, "open conversations are held here; the model comes on top"),
            ("Disk for state", disk, "conversations come back from here"),
        ]
        return _group("Budgets", rows)

    def _numbers(
        self, title: str, record: object, rows: tuple[Number, ...], changer: Callable[[str], Changed]
    ) -> _Group:
        made = []
        for row in rows:
            value, change = getattr(record, row.field), changer(row.field)
            if row.step:
                widget: QWidget = real_field(value, row.low, row.high, row.step, change, row.suffix)
            else:
                widget = whole_field(value, row, change)
            made.append((row.name, widget, row.hint))
        return _group(title, made)

    # --- changes ----------------------------------------------------------------------------------
    def _field(self, name: str) -> Callable[[object], None]:
        def change(value: object) -> None:
            self._settings = replace(self._settings, **{name: value})
            self._apply_timer.start()

        return change

    def _sampling(self, name: str) -> Callable[[object], None]:
        def change(value: object) -> None:
            self._field("sampling")(replace(self._settings.sampling, **{name: value}))

        return change

    def _engine_field(self, name: str) -> Callable[[object], None]:
        def change(value: object) -> None:
            self._field("engine")(replace(self._settings.engine, **{name: value}))

        return change

    def _store(self) -> None:
        new, workspace = self._settings, self._services.workspace
        names = (
            "engine", "sampling", "passages", "passage_tokens", "answer_reserve", "whole_tokens", "read_ahead",
            "limit_citations",
        )  # fmt: skip
        changes = {name: getattr(new, name) for name in names}
        self._services.tasks.write(lambda: workspace.update_settings(**changes))

    def _reload(self) -> None:
        self._apply_timer.stop()
        self._store()
        workspace = self._services.workspace
        self._services.tasks.write(lambda: workspace.load_model())


class _Group(QGroupBox):
    """A titled box whose layout is a form."""

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self._form = QFormLayout(self)
        self._form.setContentsMargins(12, 14, 12, 10)
        self._form.setHorizontalSpacing(18)
        self._form.setVerticalSpacing(8)

    def layout(self) -> QFormLayout:
        return self._form


def _group(title: str, rows: list[tuple[str, QWidget, str]]) -> _Group:
    group = _Group(title)
    for name, widget, hint in rows:
        _add_row(group.layout(), name, widget, hint)
    return group


def _add_row(form: QFormLayout, name: str, widget: QWidget, hint: str) -> None:
    widget.setAccessibleName(name)
    widget.setFixedWidth(150)
    row = QHBoxLayout()
    row.addWidget(widget)
    row.addSpacing(8)
    row.addWidget(label(hint, "muted"), 1)
    title = label(name, wrap=False)
    title.setMinimumWidth(160)
    if not isinstance(widget, QPlainTextEdit):
        widget.ensurePolished()
        title.setMinimumHeight(widget.sizeHint().height())
    form.addRow(title, row)
