"""What a Workspace reports, as frozen dataclasses, on worker threads and the engine's thread.

Life of a turn: `TurnPhase`(queued, retrieving)* -> `TurnStarted` -> `TurnPhase`* -> `TurnText`* ->
`TurnDone` | `TurnError`. A stopped turn ends in `TurnDone` whose message has state "cancelled", or in
`TurnWithdrawn` when its question was not stored yet; one that forks with a summary in `TurnMoved`. Of the
engine's events `TurnRestored` and those that belong to no turn pass through.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NewType

from app.core.errors import UserError
from app.core.records import Conversation, Message, MessageId
from engine.messages import ConversationId, Event, TurnId

if TYPE_CHECKING:
    from rag import Document, IngestProgress

JobId = NewType("JobId", str)
Part = Literal["reasoning", "answer"]
Phase = Literal["queued", "retrieving", "restoring", "reading", "surveying", "summarising", "answering"]


@dataclass(frozen=True)
class TurnStarted:
    """The question is stored. `continued`: the answer `assistant_message` goes on from its text so far."""

    turn: TurnId
    conversation: ConversationId
    user_message: Message
    assistant_message: Message
    continued: bool = False


@dataclass(frozen=True)
class TurnWithdrawn:
    """The turn was stopped before its question was stored; the question is the draft again."""

    turn: TurnId
    conversation: ConversationId


@dataclass(frozen=True)
class TurnMoved:
    """A full conversation goes on in `target`, which begins with a summary, the message `summary`: `question` is to be
    asked there."""

    turn: TurnId
    conversation: ConversationId
    target: Conversation
    question: str
    summary: MessageId


@dataclass(frozen=True)
class TurnPhase:
    """`done` of `total`: turns ahead (queued), tokens (restoring, reading, answering) or parts (surveying); 0 of 0:
    unknown."""

    turn: TurnId
    conversation: ConversationId
    phase: Phase
    done: int = 0
    total: int = 0
    seconds_left: float | None = None


@dataclass(frozen=True)
class TurnText:
    turn: TurnId
    conversation: ConversationId
    message_id: MessageId
    delta: str
    part: Part = "answer"


@dataclass(frozen=True)
class TurnDone:
    turn: TurnId
    conversation: ConversationId
    message: Message


@dataclass(frozen=True)
class TurnError:
    """`message`: the answer as far as it came (state "failed"), its question stays stored. None: nothing was
    sent or stored (the context would overflow, another process has the conversation) and the question is the
    draft again.
    """

    turn: TurnId
    conversation: ConversationId
    error: UserError
    message: Message | None = None


@dataclass(frozen=True)
class AnswerChanged:
    """Something is noted with an answer that had ended: its state was found damaged."""

    conversation: ConversationId
    message: Message


@dataclass(frozen=True)
class ConversationChanged:
    """Title, documents, mode, draft or trash state changed, or the conversation is new."""

    conversation: Conversation


@dataclass(frozen=True)
class ConversationPurged:
    conversation: ConversationId


@dataclass(frozen=True)
class ImportQueued:
    job: JobId
    path: Path


@dataclass(frozen=True)
class ImportProgress:
    job: JobId
    progress: IngestProgress


@dataclass(frozen=True)
class ImportDone:
    """Its words can be searched, questions can be asked. `known`: it was in the library already."""

    job: JobId
    document: Document
    known: bool = False


@dataclass(frozen=True)
class DocumentReady:
    """Its vectors are complete; from now on it is searched by meaning as well as by words."""

    document: Document


@dataclass(frozen=True)
class IndexingEnded:
    """A job behind the imports (vectors, words of an older version) is over. `stopped`: by the reader."""

    job: JobId
    stopped: bool


@dataclass(frozen=True)
class ImportFailed:
    job: JobId
    path: Path
    error: UserError


@dataclass(frozen=True)
class ImportCancelled:
    job: JobId
    path: Path


@dataclass(frozen=True)
class FetchProgress:
    """Bytes of a download; `total` 0 while unknown. `what` names it for the reader."""

    job: JobId
    what: str
    done: int
    total: int


@dataclass(frozen=True)
class FetchDone:
    job: JobId
    what: str
    path: Path


@dataclass(frozen=True)
class FetchFailed:
    """`error` is None when the reader stopped it."""

    job: JobId
    what: str
    error: UserError | None


@dataclass(frozen=True)
class Notice:
    """Something the reader should know that is no failure of what they asked for. `conversation`: that it is about, and
    that `Chats.about` names where it is shown; "": none, or it is named already."""

    what: str
    why: str
    next: str
    conversation: str = ""

    @property
    def text(self) -> str:
        return " ".join(part for part in (self.what, self.why, self.next) if part)


WorkspaceEvent = (
    Event
    | TurnStarted
    | TurnWithdrawn
    | TurnMoved
    | TurnPhase
    | TurnText
    | TurnDone
    | TurnError
    | AnswerChanged
    | ConversationChanged
    | ConversationPurged
    | ImportQueued
    | ImportProgress
    | ImportDone
    | DocumentReady
    | ImportFailed
    | ImportCancelled
    | IndexingEnded
    | FetchProgress
    | FetchDone
    | FetchFailed
    | Notice
)
