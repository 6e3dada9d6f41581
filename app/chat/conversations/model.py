"""Conversations as rows: newest first, or as the hits of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, Qt

from app.core.explain import must_be_read, to_be_moved
from app.core.records import Conversation, SearchHit
from app.widgets.format import about, ago
from app.widgets.rows import FACE, RowFace
from engine.messages import ConversationId, StateReport

_TIER = {
    "memory": ("state-memory", "good", "in memory"),
    "disk": ("state-disk", "accent", "on disk"),
    "none": ("state-none", "muted", "must be read"),
}


@dataclass(frozen=True)
class Row:
    conversation: Conversation
    state: StateReport | None = None
    phase: str = ""
    snippet: str = ""


def face(row: Row) -> RowFace:
    title = row.conversation.title
    icon, color, words = _state(row.state)
    if row.phase:
        words = row.phase
    detail = row.snippet or words or ago(row.conversation.updated)
    return RowFace(title, detail, icon, color, "accent" if row.phase else "muted", busy=bool(row.phase))


def _state(state: StateReport | None) -> tuple[str, str, str]:
    """Icon, colour and words for where the KV state lives."""
    if state is None or not state.tokens:
        return "chat", "faint", ""
    tier = "memory" if state.tier == "none" and to_be_moved(state) else state.tier
    icon, color, words = _TIER[tier]
    missing = must_be_read(state)
    if tier == "none" and state.rebuild_seconds > 0:
        words = f"{words}, {about(state.rebuild_seconds)}"
    elif missing > state.tokens // 10 and state.rebuild_seconds > 0:
        wait = about(state.rebuild_seconds * missing / state.tokens)
        if missing > state.tokens // 2:
            icon, color, _ = _TIER["none"]
            return icon, color, f"must be read, {wait}"
        words = f"{words}, {wait} to read"
    return icon, color, words


class ConversationModel(QAbstractListModel):
    """Rows are replaced, never changed; ids find them again."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[Row] = []
        self._states: dict[ConversationId, StateReport] = {}
        self._phases: dict[ConversationId, str] = {}

    # --- Qt ---------------------------------------------------------------------------------------
    def rowCount(self, parent: QModelIndex | QPersistentModelIndex | None = None) -> int:
        return len(self._rows)

    def data(self, index: QModelIndex | QPersistentModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row = self._rows[index.row()]
        if role == FACE:
            return face(row)
        if role == Qt.ItemDataRole.DisplayRole:
            return row.conversation.title
        if role == Qt.ItemDataRole.AccessibleTextRole:
            shown = face(row)
            return f"{shown.title}, {shown.detail}"
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"{row.conversation.title}\nlast used {ago(row.conversation.updated)}"
        return None

    # --- content ----------------------------------------------------------------------------------
    def show_list(self, conversations: Sequence[Conversation]) -> None:
        self._reset([self._row(conversation) for conversation in conversations])

    def show_hits(self, hits: Sequence[SearchHit]) -> None:
        marks = str.maketrans("", "", "\x02\x03")
        rows = [replace(self._row(hit.conversation), snippet=_told(hit, hit.snippet.translate(marks))) for hit in hits]
        self._reset(list({row.conversation.id: row for row in reversed(rows)}.values())[::-1])

    def put(self, conversation: Conversation) -> None:
        """A conversation is new or changed; in the trash it leaves the list."""
        place = self.place(conversation.id)
        if conversation.trashed is not None:
            self.remove(conversation.id)
        elif place is None:
            self.beginInsertRows(QModelIndex(), 0, 0)
            self._rows.insert(0, self._row(conversation))
            self.endInsertRows()
        else:
            self._rows[place] = replace(self._rows[place], conversation=conversation)
            self._changed(place)

    def raise_to_top(self, conversation: ConversationId) -> None:
        place = self.place(conversation)
        if place:
            self.beginMoveRows(QModelIndex(), place, place, QModelIndex(), 0)
            self._rows.insert(0, self._rows.pop(place))
            self.endMoveRows()

    def remove(self, conversation: ConversationId) -> None:
        place = self.place(conversation)
        if place is not None:
            self.beginRemoveRows(QModelIndex(), place, place)
            del self._rows[place]
            self.endRemoveRows()

    def set_state(self, state: StateReport) -> None:
        self._states[state.conversation] = state
        self._replace(state.conversation, state=state)

    def set_phase(self, conversation: ConversationId, phase: str) -> None:
        """What its running turn does; empty when none runs."""
        self._phases[conversation] = phase
        self._replace(conversation, phase=phase)

    # --- look-up ----------------------------------------------------------------------------------
    def place(self, conversation: ConversationId | None) -> int | None:
        ids = (number for number, row in enumerate(self._rows) if row.conversation.id == conversation)
        return next(ids, None)

    def at(self, place: int) -> Conversation | None:
        return self._rows[place].conversation if 0 <= place < len(self._rows) else None

    def state(self, conversation: ConversationId) -> StateReport | None:
        return self._states.get(conversation)

    def all(self) -> list[Conversation]:
        return [row.conversation for row in self._rows]

    def _row(self, conversation: Conversation) -> Row:
        return Row(conversation, self._states.get(conversation.id), self._phases.get(conversation.id, ""))

    def _replace(self, conversation: ConversationId, **changes: object) -> None:
        place = self.place(conversation)
        if place is not None:
            self._rows[place] = replace(self._rows[place], **changes)
            self._changed(place)

    def _reset(self, rows: list[Row]) -> None:
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    def _changed(self, place: int) -> None:
        self.dataChanged.emit(self.index(place), self.index(place))


def _told(hit: SearchHit, snippet: str) -> str:
    """Found in the title, which stands above it already, there is nothing to add."""
    return "" if hit.message_id is None else snippet
