"""What can be done with a conversation beside reading it: one short function per action of the menu."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QInputDialog, QMessageBox, QWidget

from app.core.records import Conversation
from app.core.steady import Unsteady, check_steady
from app.services import Services

EXPORTS = ("Markdown (*.md)", "Markdown with reasoning (*.md)")
INSTRUCTIONS = "The model follows these in this conversation, from the next question on:"
Changed = Callable[[Conversation], object]


def edit_instructions(parent: QWidget, services: Services, conversation: Conversation, changed: Changed) -> None:
    """What the model is told before this conversation's questions; acts from the next question on."""
    text = _asked_instructions(parent, conversation.instructions)
    if text is not None and text != conversation.instructions:
        workspace, id = services.workspace, conversation.id
        services.tasks.write(lambda: workspace.chats.set_instructions(id, text, anyway=True), changed)


def _asked_instructions(parent: QWidget, text: str) -> str | None:
    """None: the reader thought better of it. What looks like a clock is kept if the reader says so."""
    while True:
        text, accepted = QInputDialog.getMultiLineText(parent, "Instructions", INSTRUCTIONS, text)
        if not accepted:
            return None
        try:
            check_steady(text)
        except Unsteady as error:
            if not _kept_anyway(parent, error):
                continue
        return text.strip()


def _kept_anyway(parent: QWidget, error: Unsteady) -> bool:
    asked = QMessageBox(QMessageBox.Icon.Warning, "Instructions", error.what, parent=parent)
    asked.setInformativeText(f"{error.why}\n{error.next}")
    asked.addButton("Edit", QMessageBox.ButtonRole.RejectRole)
    keep = asked.addButton("Keep it anyway", QMessageBox.ButtonRole.AcceptRole)
    asked.exec()
    return asked.clickedButton() is keep


def export(parent: QWidget, services: Services, conversation: Conversation) -> None:
    from app.chat.export import file_name, write_markdown

    suggested = str(Path.home() / file_name(conversation.title))
    name, kind = QFileDialog.getSaveFileName(parent, "Export as Markdown", suggested, ";;".join(EXPORTS))
    if not name:
        return
    workspace, path = services.workspace, Path(name)
    reasoning = kind == EXPORTS[1]

    def work() -> None:
        write_markdown(path, conversation, workspace.conversations.messages(conversation.id), reasoning)

    services.tasks.write(work, lambda _: services.toasts.say(f"Written to {path.name}."))
