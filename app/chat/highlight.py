"""Code as coloured HTML by pygments; the language comes from the fence, it is never guessed."""

from __future__ import annotations

import html
from functools import lru_cache
from typing import Any

LONGEST = 20_000


def code_html(text: str, language: str, dark: bool) -> str:
    """Characters inside a <pre>; plain when the language is unknown or the text is very long."""
    lexer = _lexer(language) if language and len(text) <= LONGEST else None
    if lexer is None:
        return f"<pre>{html.escape(text)}</pre>"
    from pygments import highlight

    coloured: str = highlight(text, lexer, _formatter(dark))
    return f"<pre>{coloured.rstrip()}</pre>"


@lru_cache(maxsize=32)
def _lexer(language: str) -> Any:
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return None


@lru_cache(maxsize=2)
def _formatter(dark: bool) -> Any:
    from pygments.formatters import HtmlFormatter

    return HtmlFormatter(noclasses=True, nowrap=True, style="github-dark" if dark else "friendly")
