"""What the window says about a model file that cannot be used, for people who build none."""

from __future__ import annotations

import re

from app.core.errors import UserError

_OTHER_FORMAT = re.compile(r"not a GGUF", re.IGNORECASE)
_UNKNOWN_KIND = re.compile(r"supported|not part of|GGUF version|big-endian|unknown tensor type|has type", re.IGNORECASE)
_DAMAGED = re.compile(r"\boffset\b|\btensors?\b|\bkey\b|truncated|damaged", re.IGNORECASE)


def plain_error(error: UserError) -> UserError:
    """The message first, the technical detail last; errors that say it plainly already stay as they are."""
    kinds = (
        (_OTHER_FORMAT, "It is not a model file in the GGUF format."),
        (_UNKNOWN_KIND, "It is a kind of model that Pagekeep does not know."),
        (_DAMAGED, "The file is damaged or incomplete."),
    )
    if "model file" in error.what.lower():
        for pattern, plain in kinds:
            if pattern.search(error.why):
                return UserError(error.what, f"{plain} {error.next}".strip(), f"Details: {error.why}")
    return error
