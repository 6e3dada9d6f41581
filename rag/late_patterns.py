"""Regular expressions that are compiled when they are first used: one that holds some hundred words takes up to a
tenth of a second, and most processes that import it never ask."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, cast


class _Late:
    """Becomes its pattern's methods as they are asked for."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, self._flags)

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__[name] = getattr(self._compiled, name)
        return found


def late(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """As `re.compile`, but an error in the pattern comes with its first use; for its methods: `re.sub(late(...), ...)`
    does not take it."""
    return cast("re.Pattern[str]", _Late(pattern, flags))
