"""Questions about the shelf itself ("how many files", "which chapters"), answered from the catalogue; so are those
about pages that are not there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.core.conversations import ConversationStore
from app.core.records import Message, PhaseTimes, TokenReport, TurnReport
from engine.messages import ConversationId, Tokens
from rag.inventory import Entry, answer, no_such_page
from rag.page_names import PAGES
from rag.types import DocumentId

if TYPE_CHECKING:
    from rag import Document, Library

LIBRARY = re.compile(r"\b(?:library|shelf|pagekeep)\b", re.IGNORECASE)
LONGEST = 200  # characters of such a question


def catalogue_answer(question: str, documents: Sequence[int], library: Library) -> str | None:
    """The answer, or None when the question is not about the catalogue.

    Args:
        documents: those of the conversation. All of the library count when there are none, or when the question
            names it.
    """
    if len(question) > LONGEST:
        return None
    everything = library.documents()
    attached = [document for document in everything if int(document.id) in documents]
    named = attached if PAGES.search(question) else []
    labels = [(document.name, library.page_labels(document.id)) for document in named]
    if (told := no_such_page(question, labels)) is not None:
        return told
    chosen = everything if LIBRARY.search(question) or not attached else attached
    return answer(question, [_entry(document, library) for document in chosen])


def store_told(
    store: ConversationStore, conversation: ConversationId, question: str, told: str
) -> tuple[Message, Message]:
    """Question and answer as stored. They have no tokens, so no prompt ever holds them."""
    user = store.append(conversation, "user", question, Tokens())
    answer = store.append(conversation, "assistant", told, Tokens())
    report = TurnReport(TokenReport(), PhaseTimes(), "catalogue", finish_reason="stop")
    return user, store.finish_answer(answer, (), report)


def _entry(document: Document, library: Library) -> Entry:
    return Entry(document, tuple(library.chapters(DocumentId(document.id))))
