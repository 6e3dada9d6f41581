"""What the reader is told when something does not work: what happened, why, and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.overflow import OverflowOption

EXIT_ERROR = 2  # of a process that told an error
_WAY = ("way", "tokens", "computed", "turns_dropped", "seconds", "bytes", "context", "refused")


class UserError(Exception):
    """A failure in the reader's world (a file, a limit, the network), never a bug of ours.

    Attributes:
        what: one sentence, what did not work.
        why: the cause, with the name of the file or the number that is over a limit.
        next: what the reader can do about it.
    """

    def __init__(self, what: str, why: str = "", next: str = "") -> None:
        super().__init__(f"{what} {why}".strip())
        self.what = what
        self.why = why
        self.next = next

    def to_json(self) -> dict[str, Any]:
        return {"what": self.what, "why": self.why, "next": self.next}


class DoesNotFit(UserError):
    """Prompt and answer are longer than the model's context. `whole`: a document was to be read whole; `by_memory`: it
    is the memory budget that is too small.

    `ways`: what can be done about it (engine.overflow.OverflowOption), with prices; empty where it was not asked for.
    """

    def __init__(
        self,
        what: str,
        why: str,
        next: str,
        whole: bool,
        ways: tuple[OverflowOption, ...] = (),
        over_by: int = 0,
        by_memory: bool = False,
    ) -> None:
        super().__init__(what, why, next)
        self.by_memory = by_memory
        self.over_by = over_by
        self.whole = whole
        self.ways = ways

    def advising(self, next: str) -> DoesNotFit:
        """The same with other advice."""
        return DoesNotFit(self.what, self.why, next, self.whole, self.ways, self.over_by, self.by_memory)

    def to_json(self) -> dict[str, Any]:
        """With every way to go on; `seconds` until the first token, `bytes` of KV state then, `refused`: why not."""
        return {**super().to_json(), "over_by": self.over_by, "ways": [*self._passages(), *map(_way_json, self.ways)]}

    def _passages(self) -> list[dict[str, Any]]:
        """Where a document was to be read whole: its passages can be looked up instead (`--mode retrieve`)."""
        return [{**dict.fromkeys(_WAY), "way": "retrieve", "refused": "", "approximate": False}] if self.whole else []


def _way_json(way: OverflowOption) -> dict[str, Any]:
    return {**{key: getattr(way, key) for key in _WAY}, "approximate": not way.exact}


class Cancelled(Exception):
    """The reader stopped the work; nothing needs telling."""


def as_user_error(error: BaseException) -> UserError:
    """Any exception as a UserError. Errors of engine and rag carry what, why and next already."""
    if isinstance(error, UserError):
        return error
    what = getattr(error, "what", None)
    if isinstance(what, str):
        return UserError(what, str(getattr(error, "why", "")), str(getattr(error, "next", "")))
    if isinstance(error, OSError):
        return _from_os_error(error)
    name = type(error).__name__
    return UserError("Something went wrong inside Pagekeep.", f"{name}: {error}", "The log has the details.")


def _from_os_error(error: OSError) -> UserError:
    reason = error.strerror or str(error)
    where = f" ({error.filename})" if error.filename else ""
    return UserError("A file could not be used.", f"{reason}{where}.", "Check the path, its rights and the disk.")
