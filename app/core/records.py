"""What a conversation is made of: frozen records that the store returns and the window shows.

Times are Unix seconds, `ranges` are 0-based page and PDFium character indices, `*_start`/`*_count` are
indices into Python strings.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, field
from datetime import date as Date
from typing import Any, Literal, NewType

from app.core.lookups import Lookup, PagesRead, Scope, StoredRange
from app.core.spans import NEW_WORK, ComputedSpan, Operation, placed
from app.core.titles import UNTITLED
from engine.messages import ComputedRange, ConversationId, ReusedTokens, Tokens

MessageId = NewType("MessageId", int)
Mode = Literal["auto", "whole", "passages", "survey"]
UsedMode = Literal["none", "whole", "passages", "survey", "catalogue"]
MessageRole = Literal["user", "assistant"]
MessageState = Literal["complete", "partial", "cancelled", "failed"]
Verified = Literal["exact", "altered", "matched", "not_found"]


@dataclass(frozen=True)
class AttachedDocument:
    """A document of a conversation, in the order of attaching; `attached`: when."""

    document_id: int
    attached: float


@dataclass(frozen=True)
class Conversation:
    """`title_fixed`: the reader named it, so the automatic title stays away. `trashed`: when, or None. `date`: what a
    template shows in it (app.core.dates)."""

    id: ConversationId
    title: str
    created: float
    updated: float
    mode: Mode = "auto"
    instructions: str = ""
    trashed: float | None = None
    draft: str = ""
    title_fixed: bool = False
    documents: tuple[AttachedDocument, ...] = ()
    scope: Scope | None = None
    date: Date | None = None

    @property
    def document_ids(self) -> tuple[int, ...]:
        return tuple(document.document_id for document in self.documents)

    @property
    def is_untouched(self) -> bool:
        """Nothing was asked, written, attached or set in it yet."""
        named = self.title_fixed or self.title != UNTITLED
        return not (named or self.documents or self.draft or self.instructions or self.scope)


@dataclass(frozen=True)
class StoredCitation:
    """A claim of the answer (`answer_start`, `answer_count` in its text) and the passage behind it.

    `marker` is the number the reader sees, as in [2]; `page_labels` are parallel to `ranges`.
    `document_id` is None for a marker that names nothing in the context.
    """

    marker: int
    document_id: int | None
    document: str
    ranges: tuple[StoredRange, ...]
    page_labels: tuple[str, ...]
    quote: str
    verified: Verified
    answer_start: int = 0
    answer_count: int = 0

    @staticmethod
    def from_json(data: dict[str, Any]) -> StoredCitation:
        ranges = tuple(StoredRange(**item) for item in data["ranges"])
        return StoredCitation(**{**data, "ranges": ranges, "page_labels": tuple(data["page_labels"])})


@dataclass(frozen=True)
class TokenReport:
    """Where the tokens of a turn came from; `reused` and `computed` together make up `prompt`, with `unread` of a turn
    that was stopped while it was read.

    `drafted`: tokens of the answer tried ahead from earlier text, of which `accepted` were right.
    """

    prompt: int = 0
    reused: ReusedTokens = field(default_factory=ReusedTokens)
    computed: tuple[ComputedRange, ...] = ()
    generated: int = 0
    drafted: int = 0
    accepted: int = 0

    @property
    def unread(self) -> int:
        """Of the prompt, when it was stopped."""
        return max(0, self.prompt - self.reused.total - sum(part.tokens for part in self.computed))

    @staticmethod
    def from_json(data: dict[str, Any]) -> TokenReport:
        computed = tuple(ComputedRange(**item) for item in data["computed"])
        return TokenReport(**{**data, "reused": ReusedTokens(**data["reused"]), "computed": computed})


@dataclass(frozen=True)
class PhaseTimes:
    """Milliseconds; 0 where a phase did not happen."""

    queue: float = 0.0
    retrieve: float = 0.0
    restore: float = 0.0
    remove: float = 0.0
    prefill: float = 0.0
    first_token: float = 0.0
    decode: float = 0.0
    save: float = 0.0


@dataclass(frozen=True)
class PageUse:
    """Pages of one document that the model has in its context (0-based), for the coverage strip.

    `unreadable`: pages of the document without text that could be had (scans, garbled ones).
    """

    document_id: int
    pages: tuple[int, ...]
    whole: bool
    unreadable: int = 0


@dataclass(frozen=True)
class Difference:
    """The first token at which a prompt left what was kept of its conversation.

    `position` in the prompt; `index` in the message `message` (its id, None behind the last one), which is the
    `number`th, from 1; its first `head` tokens are header and documents, or the template's. `expected` by what was
    kept, `found` in the prompt, as text; equal where the same token was read once as prompt and once as answer
    (`roles_differ`).
    """

    position: int
    message: int | None
    number: int
    role: MessageRole
    index: int
    expected: str
    found: str
    roles_differ: bool = False
    head: int = 0


@dataclass(frozen=True)
class TurnReport:
    """What the engine did for one answer. `saved_ms`: prefill avoided, at this machine's measured rate.

    `coverage`: for the reader, when the answer may miss something: how much of the documents it rests on; `unread`:
    readable pages that the model never had before it; `read`: those it had, where `coverage` says something.
    `difference`: where reuse ended early; `approximate`: the state holds tokens that were moved after a removal.
    `gaps`: [start, stop) of the prompt, where what was computed lies; (): behind all that was reused. `operations`:
    what was done to the history since the turn before. `pages_say`: where nothing bears the answer out, sentences of
    its pages that the application quotes because they are about the question; no part of the answer. `doubtful`: the
    tokens that were written on state that was found damaged, then or later, are among so many first ones. `repeats`:
    it is word for word what the model answered to another question of the conversation.
    """

    tokens: TokenReport
    timings_ms: PhaseTimes
    mode: UsedMode
    pages_in_context: tuple[PageUse, ...] = ()
    finish_reason: str = ""
    bytes_read: int = 0
    bytes_written: int = 0
    saved_ms: float = 0.0
    model: str = ""
    coverage: str = ""
    unread: int = 0
    read: tuple[PagesRead, ...] = ()
    difference: Difference | None = None
    approximate: bool = False
    gaps: tuple[tuple[int, int], ...] = ()
    operations: tuple[Operation, ...] = ()
    pages_say: tuple[StoredCitation, ...] = ()
    doubtful: int = 0
    repeats: bool = False

    def recomputed(self) -> tuple[ComputedSpan, ...]:
        """What was read again although an earlier turn had read it."""
        spans = placed(self.tokens.computed, self.gaps or ((self.tokens.reused.total, sys.maxsize),))
        return tuple(span for span in spans if span.reason not in NEW_WORK)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> TurnReport:
        pages = tuple(PageUse(**{**p, "pages": tuple(p["pages"])}) for p in data["pages_in_context"])
        parts = {
            "tokens": TokenReport.from_json(data["tokens"]),
            "timings_ms": PhaseTimes(**data["timings_ms"]),
            "pages_in_context": pages,
            "read": tuple(PagesRead.from_json(one) for one in data.get("read", ())),
            "difference": Difference(**data["difference"]) if data.get("difference") else None,
            "gaps": tuple((start, stop) for start, stop in data.get("gaps", ())),
            "operations": tuple(Operation(**one) for one in data.get("operations", ())),
            "pages_say": tuple(StoredCitation.from_json(one) for one in data.get("pages_say", ())),
        }
        return TurnReport(**{**data, **parts})


@dataclass(frozen=True)
class PlacedPassages:
    """Passages of one document that a message put into the context; markers count up from `first_marker`."""

    document_id: int
    first_marker: int
    passage_ids: tuple[int, ...]


@dataclass(frozen=True)
class Placement:
    """What a user message put into the context beside its question.

    `documents` came whole, `passages` were found for the question. `instructions`: the text placed with this
    message, None when none. `shared_tokens`: leading tokens of header and documents (first message only);
    `head_tokens`: those before passages and question, which stay when the question leaves the context.
    """

    documents: tuple[PlacedPassages, ...] = ()
    passages: tuple[PlacedPassages, ...] = ()
    instructions: str | None = None
    shared_tokens: int = 0
    head_tokens: int = 0

    @staticmethod
    def from_json(data: dict[str, Any]) -> Placement:
        def placed(key: str) -> tuple[PlacedPassages, ...]:
            items = data[key]
            return tuple(PlacedPassages(i["document_id"], i["first_marker"], tuple(i["passage_ids"])) for i in items)

        shared = data["shared_tokens"]
        head = data.get("head_tokens", shared)
        return Placement(placed("documents"), placed("passages"), data["instructions"], shared, head)


@dataclass(frozen=True)
class Message:
    """One message. `tokens` are its exact ids and roles as spliced into the prompt.

    The tokens of all messages of a conversation, in order, are its history: those of a user message begin
    with the header (first message) or the template's glue and end where the answer begins; those of an answer
    are the sampled ids, the end token included. A message that is not `in_context` is shown and is no part of that.
    `reasoning` is what the model wrote before `text`, over `thought_ms` milliseconds. Question and answer without
    tokens are no part of any prompt: the catalogue answered. `lookup`: of a question, what was searched for it.
    """

    id: MessageId
    conversation: ConversationId
    role: MessageRole
    text: str
    tokens: Tokens
    created: float
    state: MessageState = "complete"
    citations: tuple[StoredCitation, ...] = ()
    report: TurnReport | None = None
    placement: Placement = field(default_factory=Placement)
    reasoning: str = ""
    thought_ms: float = 0.0
    in_context: bool = True
    lookup: Lookup | None = None


@dataclass(frozen=True)
class SearchHit:
    """A conversation that matches; `message_id` None: by its title. `snippet` marks what it is by \\x02 and \\x03."""

    conversation: Conversation
    message_id: MessageId | None
    snippet: str
