"""What a file says of itself (title, author, date), in words: for the catalogue's answers, reports and notes."""

from __future__ import annotations

from collections.abc import Sequence

from rag.types import Document

MOST_TOLD = 4  # documents


def data_words(document: Document) -> str:
    """`title “Debian Policy Manual”, author “The Debian Policy Mailing List”, created “2024-04-07”`; "" where the
    file says nothing."""
    return ", ".join(f"{name} “{value}”" for name, value in document.metadata.items())


def file_says(documents: Sequence[Document]) -> str:
    """A sentence for each of the first documents that say something; "" where none does."""
    said = [(document.name, words) for document in documents[:MOST_TOLD] if (words := data_words(document))]
    if len(documents) == 1:
        return f"The file says of itself: {said[0][1]}." if said else ""
    return " ".join(f"{name} says of itself: {words}." for name, words in said)
