"""What `pagekeep ask` does before the question: checks what was chosen, opens the conversation, sets where it looks."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from app.cli.session import Session
from app.core.errors import UserError
from app.core.lookups import Scope
from app.core.records import Conversation
from app.core.workspace import Workspace
from engine.messages import ConversationId, ModelLoaded
from rag.types import Document


def check_model_choices(loaded: ModelLoaded, template: str | None, reasoning: str | None) -> None:
    """Raises UserError where the model has no such template, or does not take this reasoning."""
    if template is not None and template not in (loaded.templates or ("default",)):
        names = ", ".join(loaded.templates) or "none"
        why = f"The chat templates of {loaded.name}: {names}."
        raise UserError(f"There is no chat template {template!r}.", why, "Name one of them, or leave --template out.")
    if reasoning is not None and reasoning not in loaded.reasoning_choices:
        choices = ", ".join(loaded.reasoning_choices)
        takes = f"takes: {choices}" if choices else "has no switch for it"
        why = f"The chat template of {loaded.name} {takes}."
        raise UserError("Reasoning cannot be switched.", why, "Leave --reasoning out, or choose what the model takes.")


@contextmanager
def opened(
    session: Session, name: str | None, documents: Sequence[Document], must_exist: bool = False
) -> Iterator[Conversation]:
    """The conversation of that name, or a new one unless it `must_exist`, with the documents attached. A new one in
    which nothing was asked, because the question was refused, is removed again, unless another process has come to use
    it."""
    workspace = session.workspace
    if must_exist and (name is None or workspace.conversations.find(name) is None):
        why = f"None is called {name!r}." if name else "--conversation NAME is missing."
        raise UserError("There is no such conversation.", why, "See 'pagekeep chat ls'.")
    conversation, is_new = workspace.chats.named(name) if name else (workspace.chats.new(), True)
    try:
        for document in documents:
            conversation = workspace.chats.attach(conversation.id, int(document.id))
        yield conversation
    finally:
        if is_new:
            _remove_unused(workspace, conversation.id)


def _remove_unused(workspace: Workspace, conversation: ConversationId) -> None:
    with suppress(UserError), workspace.conversations.lease(conversation):
        if not workspace.conversations.messages(conversation):
            workspace.chats.trash(conversation)
            workspace.chats.purge(conversation)


def choose_scope(session: Session, conversation: Conversation, options: Namespace) -> Conversation:
    """What --pages, --chapter, --collection and --everywhere say; it is kept for later questions."""
    workspace = session.workspace
    if options.everywhere:
        return workspace.chats.set_scope(conversation.id, None)
    if options.collection:
        name = workspace.library.collection(options.collection).name
        return workspace.chats.set_scope(conversation.id, Scope(name, collection=name))
    if not options.pages and not options.chapter:
        return conversation
    if len(conversation.documents) != 1:
        raise UserError(
            "It is not clear which document is meant.",
            f"The conversation has {len(conversation.documents)} documents; pages and chapters belong to one.",
            "Name one FILE, or ask about the pages in a conversation of its own.",
        )
    (document,) = conversation.document_ids
    scopes = workspace.scopes
    scope = scopes.by_pages(document, options.pages) if options.pages else scopes.by_chapter(document, options.chapter)
    return workspace.chats.set_scope(conversation.id, scope)
