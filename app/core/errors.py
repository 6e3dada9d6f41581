"""What the reader is told when something does not work: what happened, why, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.messages import ConversationId
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


class NothingToDo(UserError):
    """What was asked for changes nothing, as when nothing is left to undo: told in passing, not as a failure."""


@dataclass(frozen=True)
class Overrun:
    """Tokens of a prompt, what is kept free for its answer, and the context that both do not fit."""

    total: int = 0
    reserve: int = 0
    context: int = 0

    @property
    def over_by(self) -> int:
        return max(0, self.total + self.reserve - self.context)

    @property
    def sum(self) -> str:
        """`2,512 tokens with this question and 64 kept for the answer are 16 more than the context of 2,560`"""
        parts = f"{self.total:,} tokens with this question and {self.reserve:,} kept for the answer"
        return f"{parts} are {self.over_by:,} more than the context of {self.context:,}"


NOTHING_OVER = Overrun()


class DoesNotFit(UserError):
    """Prompt and answer are longer than the model's context. `whole`: a document was to be read whole; `by_memory`: it
    is the memory budget that is too small; `overrun`: by how much.

    `ways`: what can be done about it (engine.overflow.OverflowOption), with prices; empty where it was not asked for.
    """

    def __init__(
        self,
        what: str,
        why: str,
        next: str,
        whole: bool,
        ways: tuple[OverflowOption, ...] = (),
        overrun: Overrun = NOTHING_OVER,
        by_memory: bool = False,
    ) -> None:
        super().__init__(what, why, next)
        self.by_memory = by_memory
        self.overrun = overrun
        self.whole = whole
        self.ways = ways

    def advising(self, next: str) -> DoesNotFit:
        """The same with other advice."""
        return DoesNotFit(self.what, self.why, next, self.whole, self.ways, self.overrun, self.by_memory)

    def to_json(self) -> dict[str, Any]:
        """With every way to go on; `seconds` until the first token, `bytes` of KV state then, `refused`: why not."""
        ways = [*self._passages(), *map(_way_json, self.ways)]
        return {**super().to_json(), "over_by": self.overrun.over_by, "ways": ways}

    def _passages(self) -> list[dict[str, Any]]:
        """Where a document was to be read whole: its passages can be looked up instead (`--mode retrieve`)."""
        return [{**dict.fromkeys(_WAY), "way": "retrieve", "refused": "", "approximate": False}] if self.whole else []


def _way_json(way: OverflowOption) -> dict[str, Any]:
    return {**{key: getattr(way, key) for key in _WAY}, "approximate": not way.exact}


class NothingReadable(UserError):
    """No page of what was asked about has text. `documents`: ids of those whose scans can be read first."""

    def __init__(self, what: str, why: str, next: str, documents: tuple[int, ...] = ()) -> None:
        super().__init__(what, why, next)
        self.documents = documents


class HeldElsewhere(UserError):
    """Another living process, `pid`, continues the conversation."""

    def __init__(self, conversation: ConversationId, pid: int) -> None:
        super().__init__(
            "This conversation is being continued by another Pagekeep.",
            f"Process {pid} is answering in it.",
            "Wait for its answer, or go on in a fork of the conversation.",
        )
        self.conversation = conversation


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
