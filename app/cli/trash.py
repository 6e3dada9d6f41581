"""`pagekeep trash`: what was deleted, back again or gone for good."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.cli.cache_text import table
from app.cli.console import Console
from app.cli.session import Session, open_session
from app.core.errors import UserError
from app.core.naming import SHORT_ID, conversation_called
from app.core.records import Conversation
from app.core.workspace import Workspace
from engine.messages import ConversationId
from rag.sizes import plural

if TYPE_CHECKING:
    from rag import Document


@dataclass(frozen=True)
class Trash:
    """Latest first; documents in the order in which they came into the library."""

    conversations: tuple[Conversation, ...]
    documents: tuple[Document, ...]

    @staticmethod
    def of(workspace: Workspace) -> Trash:
        documents = (d for d in workspace.library.documents(include_trashed=True) if d.state == "trashed")
        return Trash(workspace.conversations.list(trashed=True), tuple(documents))

    def only(self, names: list[str]) -> Trash:
        """What is named: a conversation's title or id before a document's name. UserError: a name is not there."""
        found = dict.fromkeys(map(self._named, names))
        return Trash(
            tuple(one for one in found if isinstance(one, Conversation)),
            tuple(one for one in found if not isinstance(one, Conversation)),
        )

    def _named(self, name: str) -> Conversation | Document:
        conversation = conversation_called(self.conversations, name)
        named = (d for d in self.documents if d.name == name)
        document = next(named, None) or next((d for d in self.documents if name in d.other_names), None)
        if (found := conversation or document) is None:
            why = f"Nothing in it is called {name!r}."
            raise UserError("That is not in the trash.", why, "See 'pagekeep trash ls'.")
        return found

    def each(self, conversation: Callable[[ConversationId], object], document: Callable[[int], object]) -> None:
        for one in self.conversations:
            conversation(one.id)
        for other in self.documents:
            document(int(other.id))

    def as_json(self) -> dict[str, Any]:
        return {
            "conversations": [{"id": c.id, "title": c.title, "trashed": c.trashed} for c in self.conversations],
            "documents": [{"document": d.name, "pages": d.pages} for d in self.documents],
        }


def run(options: Namespace, console: Console) -> None:
    with open_session(console) as session:
        ACTIONS[options.action](session, console, options)


def _ls(session: Session, console: Console, options: Namespace) -> None:
    trash = Trash.of(session.workspace)
    console.result(trash.as_json())
    rows = [(c.id[:SHORT_ID], c.title, "conversation") for c in trash.conversations]
    rows += [("", d.name, f"document, {plural(d.pages, 'page')}") for d in trash.documents]
    for line in table(rows) or ["The trash is empty."]:
        console.text(line)


def _restore(session: Session, console: Console, options: Namespace) -> None:
    """All names are looked up before the first comes back."""
    workspace = session.workspace
    wanted = Trash.of(workspace).only(options.names)
    wanted.each(workspace.chats.restore, workspace.documents.restore)
    _tell(console, wanted, "is there again")


def _empty(session: Session, console: Console, options: Namespace) -> None:
    workspace, trash = session.workspace, Trash.of(session.workspace)
    wanted = trash.only(options.names) if options.names else trash
    wanted.each(workspace.chats.purge, workspace.documents.purge)
    _tell(console, wanted, "is gone for good")


def _tell(console: Console, what: Trash, became: str) -> None:
    console.result(what.as_json())
    names = (*(c.title for c in what.conversations), *(d.name for d in what.documents))
    for name in names:
        console.text(f"“{name}” {became}.")
    if not names:
        console.text("The trash is empty.")


ACTIONS = {"ls": _ls, "restore": _restore, "empty": _empty}
