"""What the window says about models: their names, and what is wrong with a file, for people who build none."""

from __future__ import annotations

import re
from pathlib import Path

from app.core.errors import UserError
from engine.models.naming import readable_name

_OTHER_FORMAT = re.compile(r"not a GGUF", re.IGNORECASE)
_UNKNOWN_KIND = re.compile(
    r"supported|not part of|GGUF version|big-endian|unknown tensor type|has type", re.IGNORECASE
)
_DAMAGED = re.compile(r"\boffset\b|\btensors?\b|\bkey\b|truncated|damaged", re.IGNORECASE)


def model_name(path: Path, name: str = "") -> str:
    """As on the command line."""
    return readable_name(path, name)


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
