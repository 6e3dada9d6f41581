"""The one name of a model that readers see, in the window, on the command line and in the store."""

from __future__ import annotations

import re
from pathlib import Path

_QUANTISED = re.compile(r"[.\-](?=(?:i?q\d|f16|f32|bf16|fp16|mxfp4|tq\d)\w*$)", re.IGNORECASE)
_PART = re.compile(r"-\d{5}-of-\d{5}$")
_SAYS_NOTHING = frozenset({"model", "ggml-model", "weights", "gguf"})


def readable_name(path: Path, title: str = "") -> str:
    """`SmolLM2-135M-Instruct Q4_1`: the file's name, which readers chose it by; `title` (`general.name`) where that
    says nothing. Names that were made by this stay as they are."""
    stem = _QUANTISED.sub(" ", _PART.sub("", path.stem))
    return title if title and stem.split(" ")[0].lower() in _SAYS_NOTHING else stem


def title_of(metadata: object) -> str:
    """`general.name` where it is a text."""
    return metadata.strip() if isinstance(metadata, str) else ""
