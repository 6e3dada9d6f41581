"""What crosses the border of the engine thread: frozen dataclasses, commands in and events out.

Life of a turn: `Submit` -> `TurnQueued` -> `TurnRestored` -> `PrefillProgress`* -> `TokenDelta`*
-> `TurnFinished` | `TurnFailed`. A cancelled turn ends in `TurnFinished` with reason "cancelled".

A document read ahead: `PrefillDocument` -> `DocumentProgress`* -> `DocumentRead` | `DocumentStopped`.

Over 300 lines: the whole vocabulary between engine and application, in one place.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from functools import cached_property
from pathlib import Path
from typing import Literal, NewType

ConversationId = NewType("ConversationId", str)
TurnId = NewType("TurnId", str)

KvType = Literal["f32", "f16", "bf16", "q8", "q4"]
BackendName = Literal["cpu", "reference", "gpu", "fake"]
Reasoning = Literal["auto", "on", "off", "low", "medium", "high"]
FinishReason = Literal["stop", "stop_string", "length", "context", "cancelled"]
StateTier = Literal["memory", "disk", "none"]


class PageBits(IntFlag):
    """What is known of a page of a conversation; see StateReport."""

    MEMORY = 1
    DISK = 2
    SHARED = 4  # another conversation or a document read ahead goes through it too
    TAIL = 8  # the unsealed end, or a part of another conversation's page
    SHIFTED = 16  # moved after a removal: approximate
    FOREIGN = 32  # computed under another numerics label
    MOVES = 64  # it is kept at another place, and moves here with the next question: approximate then


class Role(IntEnum):
    """How a token's KV was computed; part of the page key (DESIGN section 3)."""

    PROMPT = 0
    GENERATED = 1


@dataclass(frozen=True)
class Tokens:
    """Token ids with their roles; both tuples have one entry per token."""

    ids: tuple[int, ...] = ()
    roles: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    def __add__(self, other: Tokens) -> Tokens:
        total = Tokens(self.ids + other.ids, self.roles + other.roles)
        (ids, roles), (more_ids, more_roles) = self.packed, other.packed
        total.__dict__["packed"] = ids + more_ids, roles + more_roles
        return total

    @cached_property
    def packed(self) -> tuple[bytes, bytes]:
        """Ids as int32 of this machine, roles as uint8. Made once for a list and all that it becomes a part of: walking
        through the ints of a long conversation takes longer than everything else of coming back to it."""
        return array("i", self.ids).tobytes(), bytes(self.roles)

    def generated_end(self) -> tuple[int, ...]:
        """The ids at the end that are an answer so far; none where a question is at the end."""
        start = len(self.ids)
        while start and self.roles[start - 1] == Role.GENERATED:
            start -= 1
        return self.ids[start:]

    @staticmethod
    def prompt(ids: tuple[int, ...] | list[int]) -> Tokens:
        return Tokens(tuple(ids), (int(Role.PROMPT),) * len(ids))

    @staticmethod
    def generated(ids: tuple[int, ...] | list[int]) -> Tokens:
        return Tokens(tuple(ids), (int(Role.GENERATED),) * len(ids))


@dataclass(frozen=True)
class EngineSettings:
    """How a model is run. Sizes in tokens unless said; bytes where the name says so.

    Placement, in llama.cpp's words: `gpu_layers` of the last layers go to the GPU, experts stay back by `cpu_moe`
    (all) or `n_cpu_moe` (of so many first layers), `tensor_overrides` are rules REGEX=DEVICE. Backend "fake": a
    stand-in for a GPU, slow, for trying plans. `reasoning`: on, off or how much, for templates that take it.
    `chat_template`: the name of one of the file's templates.
    """

    context: int = 0  # 0: the model's own context length, bounded by memory
    threads: int = 0  # 0: physical cores
    prefill_chunk: int = 512  # prompt tokens of a step
    micro_batch: int = 0  # most tokens that pass through the layers at once; 0: the whole step
    speculation: bool = True  # drafts from the conversation's own text, where they pay; answers are the same
    kv_type_k: KvType = "f16"
    kv_type_v: KvType = "f16"
    backend: BackendName = "cpu"
    gpu_layers: int = 0
    cpu_moe: bool = False
    n_cpu_moe: int = 0
    tensor_overrides: tuple[str, ...] = ()
    reasoning: Reasoning = "auto"
    chat_template: str = "default"
    # For state, mapped pages included: what eviction can bound. Weights are mapped files of a fixed size on top of it;
    # loading warns where both together exceed what is free, and EngineStats accounts for all of it.
    ram_budget_bytes: int = 2_000_000_000
    disk_budget_bytes: int = 20_000_000_000
    cache_log: Literal["off", "warn", "info", "debug"] = "info"  # what `pagekeep cache log` shows
    canary_seconds: float = 120.0  # of idleness before a page from disk is computed again and compared; 0: never
    idle_seconds: float = 1800.0  # after which a conversation that is on disk leaves memory; 0: never


@dataclass(frozen=True)
class Sampling:
    """Sampling parameters; temperature 0 is greedy. Penalties look at the answer's last `penalty_window` tokens.

    `citations`: after "[" no number but 1 to this can be written; 0: numbers are free.
    """

    temperature: float = 0.7
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    penalty_window: int = 256
    seed: int = 0
    max_tokens: int = 512
    stop: tuple[str, ...] = ()
    citations: int = 0


@dataclass(frozen=True)
class Shift:
    """`removed` stood at `position` once; what follows was moved up and is approximate."""

    position: int
    removed: Tokens


@dataclass(frozen=True)
class Removal:
    """Take `removed` out at `position` of the turn's tokens (which are those after it), if that saves computing.

    `shifts`: those of the conversation before. Afterwards they are `engine.kv.shift.next_shifts`.
    """

    position: int
    removed: Tokens
    shifts: tuple[Shift, ...] = ()

    def undone(self, tokens: Tokens) -> Tokens:
        """The turn's tokens with what is to be taken out of them."""
        at, removed = self.position, self.removed
        return Tokens(
            (*tokens.ids[:at], *removed.ids, *tokens.ids[at:]), (*tokens.roles[:at], *removed.roles, *tokens.roles[at:])
        )


# --- commands ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LoadModel:
    path: Path
    settings: EngineSettings
    store_folder: Path | None  # None: KV state is kept in memory only


@dataclass(frozen=True)
class LastTurn:
    """`how` it ended, "cut off" with its process; `began`: behind so many tokens, which the conversation had before."""

    how: Literal["ended", "stopped", "cut off"] = "ended"
    began: int = 0


@dataclass(frozen=True)
class Submit:
    """Run one turn. `tokens` is the whole prompt: stored history spliced with the new segments.

    `shared_tokens`: how many leading tokens belong to the header and documents, for the report
    "of which shared". `history_tokens`: how many leading tokens the conversation had computed when its
    last turn ended; what is recomputed below that needs a reason, what lies above is new.
    `shifts`: ranges that were taken out of the conversation without computing the rest again (the last one by
    `removal`, if that is to be done now). Where the moved state is lost, the prompt is computed as it stands: exact.
    """

    turn: TurnId
    conversation: ConversationId
    tokens: Tokens
    sampling: Sampling
    shared_tokens: int = 0
    history_tokens: int = 0
    last_turn: LastTurn = LastTurn()
    priority: bool = False  # the conversation the reader looks at goes first
    shifts: tuple[Shift, ...] = ()
    removal: Removal | None = None


@dataclass(frozen=True)
class Cancel:
    turn: TurnId


@dataclass(frozen=True)
class Focus:
    """The reader looks at this conversation: its turns go first and its state is prefetched."""

    conversation: ConversationId
    tokens: Tokens = field(default_factory=Tokens)
    shifts: tuple[Shift, ...] = ()


@dataclass(frozen=True)
class SaveState:
    conversation: ConversationId


@dataclass(frozen=True)
class DropState:
    """Forget the conversation's KV. `disk` also deletes what no other conversation uses."""

    conversation: ConversationId
    disk: bool = False


@dataclass(frozen=True)
class ForkState:
    """`tokens`: only so many leading ones; None: all."""

    source: ConversationId
    target: ConversationId
    tokens: int | None = None


@dataclass(frozen=True)
class PinState:
    """The pages of a pinned conversation stay in memory when idle and are never evicted from disk."""

    conversation: ConversationId
    pinned: bool = True


@dataclass(frozen=True)
class PrefillDocument:
    """Read a document ahead, below everything the reader asks for: works only while no turn waits or runs.

    `tokens`: what every prompt on it begins with (fixed header and whole document). It goes on where an earlier
    run ended, by whatever that was ended: send it again after a start. Battery and heat are the application's to
    watch: it sends `StopDocument`. `document_state` names the state that it leaves.
    """

    document: str
    tokens: Tokens
    label: str = ""


@dataclass(frozen=True)
class StopDocument:
    """Ends reading ahead; what was read is kept."""

    document: str


_DOCUMENT = "document:"
_SCRATCH = ("survey:", "summary:")


def document_state(document: str) -> ConversationId:
    """The name under which a document's own state is kept: for DropState, PinState and QueryState."""
    return ConversationId(_DOCUMENT + document)


def document_of_state(conversation: str) -> str | None:
    """The other way: None for the state of a conversation."""
    return conversation.removeprefix(_DOCUMENT) if conversation.startswith(_DOCUMENT) else None


def scratch_state(work: Literal["survey", "summary"], of: object) -> ConversationId:
    """The name of what the application asks in between, and drops itself."""
    return ConversationId(f"{work}:{of}")


def is_scratch(conversation: str) -> bool:
    """No reader names it, and nobody asks what became of it."""
    return conversation.startswith(_SCRATCH)


@dataclass(frozen=True)
class QueryState:
    """Asks for `StateReport`; `tokens` is the conversation's stored history, the rest as in Submit."""

    request: int
    conversation: ConversationId
    tokens: Tokens
    shifts: tuple[Shift, ...] = ()
    history_tokens: int = 0
    last_turn: LastTurn = LastTurn()


# --- events --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelLoading:
    path: Path
    stage: str  # e.g. "reading header", "mapping weights"


@dataclass(frozen=True)
class ModelLoaded:
    """`devices`: one line per device as shown in the status bar; `kv_bytes_per_token` over all layers. `templates`:
    names of the file's chat templates; `reasoning_choices`: what the one in use takes, nothing where it
    has no switch; `reasoning`: as it was loaded. `bounding_bytes`: the memory budget for state where that is what
    bounds the context, else 0. `model_context`: what the model was made for.
    """

    path: Path
    name: str
    architecture: str
    context: int
    devices: tuple[str, ...]
    weights_bytes: int
    kv_bytes_per_token: int
    page_tokens: int
    fingerprint: str
    load_ms: float
    templates: tuple[str, ...] = ()
    reasoning_choices: tuple[Reasoning, ...] = ()
    reasoning: Reasoning = "auto"
    bounding_bytes: int = 0
    model_context: int = 0


@dataclass(frozen=True)
class ModelFailed:
    path: Path
    what: str
    why: str
    next: str


@dataclass(frozen=True)
class TurnQueued:
    turn: TurnId
    conversation: ConversationId
    ahead: int


@dataclass(frozen=True)
class ReusedTokens:
    """Tokens that were not computed again; `memory` and `disk` exclude each other."""

    memory: int = 0
    disk: int = 0
    of_which_shared: int = 0

    @property
    def total(self) -> int:
        return self.memory + self.disk


@dataclass(frozen=True)
class ComputedRange:
    """Tokens that went through the model before the first new one, and why.

    reason: "new" | "last sampled" | "first token", or what became of state that there was: "evicted" (by the disk
    budget), "evicted by gc" (the same, by the command), "evicted from memory" (and it was not on disk), "dropped" (the
    reader forgot it), "damaged", "removed" (its file), "edited" (other tokens were kept), "not saved" (the process
    ended before), "refused by the budget" (of the disk: it was not saved), "refused by a full disk", "refused by an
    error" (of writing), "stopped" (the turn was, before its page was full), "moved state undone" (it was kept after a
    removal that moved it, which was taken back), "kept as KV type f16" (another than the one that runs), "kept for
    another model", "sliding window" (layers that look back a little are kept around some places only), "faster to
    compute than to read", "not in cache".
    at: when that happened (unix time); 0: not known, or no matter.
    """

    tokens: int
    reason: str
    at: float = 0.0


@dataclass(frozen=True)
class FirstDifference:
    """Where a prompt leaves what is kept: at `position` the kept state goes on with another token.

    Token ids and roles (see Role): what was `expected` by the kept state, and what was `found` in the prompt.
    """

    position: int
    expected: int
    found: int
    expected_role: int
    found_role: int


@dataclass(frozen=True)
class TurnRestored:
    turn: TurnId
    conversation: ConversationId
    reused: ReusedTokens
    restore_ms: float
    saved_ms: float  # prefill time avoided, from this machine's measured rate


@dataclass(frozen=True)
class PrefillProgress:
    """Of the tokens that were not reused."""

    turn: TurnId
    conversation: ConversationId
    done: int  # computed
    total: int
    tokens_per_second: float
    kept: int = 0  # of `done`, known to lie in the files: a kill does not lose them; all of it where nothing is saved

    @property
    def told(self) -> int:
        """What a reader may be told as read: a kill goes on from there. All behind the last step, as the first token
        follows at once."""
        return self.done if self.done >= self.total else self.kept


@dataclass(frozen=True)
class TokenDelta:
    """Text that is complete UTF-8; `ids` are the tokens behind it (may be several, may be none)."""

    turn: TurnId
    conversation: ConversationId
    text: str
    ids: tuple[int, ...]


@dataclass(frozen=True)
class TurnTimings:
    """Milliseconds on the engine's clock; 0 where a phase did not happen."""

    queue: float = 0.0
    restore: float = 0.0
    remove: float = 0.0
    prefill: float = 0.0
    first_token: float = 0.0  # from submit to the first sampled token
    decode: float = 0.0
    save: float = 0.0
    check: float = 0.0  # until all that came from disk was checked: mostly beside the first step


@dataclass(frozen=True)
class TurnFinished:
    """`generated` holds every sampled token, the end token included; its last one is not in the KV."""

    turn: TurnId
    conversation: ConversationId
    reason: FinishReason
    text: str
    generated: Tokens
    prompt_tokens: int
    reused: ReusedTokens
    computed: tuple[ComputedRange, ...]
    timings: TurnTimings
    bytes_read: int
    bytes_written: int
    difference: FirstDifference | None = None  # where reuse ended, if another token was kept there
    approximate: bool | None = None  # the state holds moved tokens; None: the turn ended before the state came back
    drafted: int = 0  # tokens taken from earlier text and verified in steps of several
    accepted: int = 0  # of them, what the answer goes on with: steps that were saved
    gaps: tuple[tuple[int, int], ...] = ()  # [start, stop) in the prompt: where what was computed lies, in order
    doubtful: int = 0  # leading tokens of the answer drawn before its state was found damaged: they may be wrong


@dataclass(frozen=True)
class AnswerDoubted:
    """State that an ended turn of this process was computed on is found damaged: its answer may be wrong."""

    turn: TurnId
    conversation: ConversationId


@dataclass(frozen=True)
class TurnFailed:
    turn: TurnId
    conversation: ConversationId
    what: str
    why: str
    next: str


@dataclass(frozen=True)
class DocumentProgress:
    """`done` of `total` tokens, of which `reused` were there before; what it has cost so far, and what is left.

    `done` is what a kill of the process does not lose; where it cannot be saved, what is computed, and `not_saved` says
    why.
    """

    document: str
    label: str
    done: int
    total: int
    reused: int
    seconds: float
    seconds_left: float  # 0 while unknown
    bytes_written: int
    not_saved: str = ""


@dataclass(frozen=True)
class DocumentRead:
    """`computed` of the `tokens` went through the model now, in `seconds`."""

    document: str
    label: str
    tokens: int
    computed: int
    seconds: float
    bytes_written: int


@dataclass(frozen=True)
class DocumentStopped:
    """`done` of `total` tokens are kept; `why`: "stopped", or what stood in the way."""

    document: str
    label: str
    done: int
    total: int
    why: str


@dataclass(frozen=True)
class StateReport:
    """The cache panel's numbers for one conversation.

    `tokens_memory` + `tokens_disk_only` is the longest reusable prefix of `tokens`; bytes by tier count
    each page once, `bytes_shared` is the part other conversations use too.
    """

    request: int
    conversation: ConversationId
    tokens: int
    tokens_memory: int
    tokens_disk_only: int
    tokens_unsaved: int
    bytes_memory: int
    bytes_disk: int
    bytes_shared: int
    shared_with: tuple[ConversationId, ...]
    last_saved: float | None  # unix time
    rebuild_seconds: float  # what a full prefill would take at the measured rate
    tier: StateTier
    missing: tuple[ComputedRange, ...] = ()  # what goes through the model on return, and why
    difference: FirstDifference | None = None
    tokens_foreign: int = 0  # of the prefix, computed under another numerics label
    pages: bytes = b""  # a PageBits value per page of `page_tokens` tokens, 0 where it must be computed
    page_tokens: int = 0
    pinned: bool = False
    refused: str = ""  # why what is not saved yet was refused, "" if it was not


@dataclass(frozen=True)
class EngineStats:
    """Sent about twice a second while busy and once when idle.

    `kv_memory_bytes` is held by pages, `kv_mapped_bytes` of it in mapped files (the system's file cache);
    `kv_reserved_bytes`: anonymous memory taken from the system (free buffers included); `index_bytes`: maps of the
    index and kept final vectors; `anonymous_bytes`: of the whole process, as the system counts it, 0 where it does not;
    `written_bytes`: appended to the store since the model was loaded.
    """

    weights_bytes: int
    kv_memory_bytes: int
    kv_disk_bytes: int
    running: int
    waiting: int
    prefill_rate: float  # tokens per second, 0 when unknown
    decode_rate: float
    kv_reserved_bytes: int = 0
    kv_mapped_bytes: int = 0
    index_bytes: int = 0
    ram_budget_bytes: int = 0
    disk_budget_bytes: int = 0
    written_bytes: int = 0
    pages_checked: int = 0  # pages from disk that were computed again and compared
    pages_wrong: int = 0
    anonymous_bytes: int = 0


@dataclass(frozen=True)
class EngineNotice:
    """Something the reader should know (a damaged page, a full disk); never a failure of a turn. `conversation`: whose
    state it is about; "": of none in particular."""

    what: str
    why: str
    next: str
    conversation: str = ""


Command = (
    LoadModel
    | Submit
    | Cancel
    | Focus
    | SaveState
    | DropState
    | ForkState
    | PinState
    | PrefillDocument
    | StopDocument
    | QueryState
)
Event = (
    ModelLoading
    | ModelLoaded
    | ModelFailed
    | TurnQueued
    | TurnRestored
    | PrefillProgress
    | TokenDelta
    | TurnFinished
    | TurnFailed
    | AnswerDoubted
    | DocumentProgress
    | DocumentRead
    | DocumentStopped
    | StateReport
    | EngineStats
    | EngineNotice
)
