"""What can be done with a conversation beside reading it: one short function per action of the menu."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QInputDialog, QWidget

from app.core.errors import UserError
from app.core.records import Conversation
from app.core.steady import check_steady
from app.services import Services

EXPORTS = ("Markdown (*.md)", "Markdown with reasoning (*.md)")
INSTRUCTIONS = "The model follows these in this conversation, from the next question on:"
Changed = Callable[[Conversation], object]


def edit_instructions(
    parent: QWidget, services: Services, conversation: Conversation, changed: Changed
) -> None:
    """What the model is told before this conversation's questions; acts from the next question on."""
    text = _asked_instructions(parent, conversation.instructions)
    if text is not None and text != conversation.instructions:
        workspace, id = services.workspace, conversation.id
        services.tasks.write(lambda: workspace.chats.set_instructions(id, text), changed)


def _asked_instructions(parent: QWidget, text: str) -> str | None:
    """None: the reader thought better of it. What cannot be taken stays in the field, with the reason above it."""
    told = ""
    while True:
        text, accepted = QInputDialog.getMultiLineText(parent, "Instructions", f"{told}{INSTRUCTIONS}", text)
        if not accepted:
            return None
        try:
            check_steady(text)
        except UserError as error:
            told = f"{error.what} {error.why}\n{error.next}\n\n"
        else:
            return text.strip()


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
