"""Conversations by what a reader types: a title, an id or its beginning."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from app.core.errors import UserError
from app.core.records import Conversation

SHORT_ID = 8  # characters of an id that are shown, and the fewest that name it
MOST_NAMES = 8
_FORK_OF = re.compile(r"^Fork( \d+)? of (?=.)|(?<=.)( \(fork( \d+)?\))+$")  # at the end: as older versions named them


def conversation_called(found: Sequence[Conversation], wanted: str) -> Conversation | None:
    """By id, title, or beginning of the id, in this order. Raises UserError where it names several."""
    for matching in (
        [c for c in found if c.id == wanted],
        [c for c in found if c.title == wanted],
        [c for c in found if len(wanted) >= SHORT_ID and c.id.startswith(wanted)],
    ):
        if len(matching) > 1:
            ids = ", ".join(c.id[:SHORT_ID] for c in matching)
            what = f"{len(matching):,} conversations are called {wanted!r}."
            raise UserError(what, f"Their ids: {ids}.", "Give an id in place of the name.")
        if matching:
            return matching[0]
    return None


def there_is(names: Sequence[str], none: str) -> str:
    """`There is a, b and 3 more.`: what could have been meant; `none` where there is nothing."""
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return f"There is {', '.join(names[:MOST_NAMES])}{more}." if names else none


def check_free(found: Iterable[Conversation], title: str) -> None:
    """Raises UserError where one of `found` has this title."""
    title = " ".join(title.split())
    for conversation in found:
        if conversation.title == title:
            why = f"{title!r} is the conversation {conversation.id[:SHORT_ID]}."
            raise UserError("The name is taken.", why, "Choose another name.")


def fork_title(found: Iterable[Conversation], source: str) -> str:
    """`Fork of source`, `Fork 2 of source`: first, as the end of a title is cut where there is no room. A fork of a
    fork is one more of the same."""
    taken = {conversation.title for conversation in found}
    named, number = _FORK_OF.sub("", source), 1
    title = f"Fork of {named}"
    while title in taken:
        number += 1
        title = f"Fork {number} of {named}"
    return title
