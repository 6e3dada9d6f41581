"""The loaded model as turns see it: they wait here while it loads, and are told when it cannot be."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from app.core.errors import Cancelled, UserError
from app.core.segments import PromptFormat
from engine.messages import Event, ModelFailed, ModelLoaded, ModelLoading

if TYPE_CHECKING:
    from engine.loading import ModelHandle

SMALL = 700_000_000  # bytes of weights: a billion parameters in four bits
PROBE = "The quick brown fox, 1234.5 %; Größe, Москва, 你好世界, مرحبا\n\t— “quoted” λ→∞ 🙂 f(x): x**2"
POLL_S = 0.05


class Vocabulary(Protocol):
    """What naming a tokenizer takes."""

    @property
    def vocabulary(self) -> int: ...

    @property
    def eos(self) -> int | None: ...

    @property
    def eog_ids(self) -> frozenset[int]: ...

    def encode(self, text: str, *, special: bool = False) -> list[int]: ...

    def token_bytes(self, token_id: int, *, special: bool = True) -> bytes: ...


@dataclass(frozen=True)
class ReadyModel:
    """`identity` names the tokenizer: ids stored under another identity mean nothing to this model."""

    handle: ModelHandle
    identity: str
    chat: PromptFormat

    @staticmethod
    def of(handle: ModelHandle) -> ReadyModel:
        chat = PromptFormat(handle.chat, handle.tokenizer, handle.info.weights_bytes < SMALL)
        return ReadyModel(handle, tokenizer_identity(handle.tokenizer), chat)

    @property
    def context(self) -> int:
        return self.handle.context

    @property
    def page_tokens(self) -> int:
        return self.handle.info.page_tokens

    @property
    def end_ids(self) -> frozenset[int]:
        return self.handle.tokenizer.eog_ids

    @property
    def end_of_turn(self) -> int:
        """The token that closes an answer in a prompt."""
        end = self.handle.chat.end_of_turn
        return min(self.end_ids, default=0) if end is None else end

    @property
    def name(self) -> str:
        return self.handle.info.name

    @property
    def reasons(self) -> bool:
        """It may set reasoning apart from its answer."""
        return self.handle.chat.reasons


class ModelGate:
    """Follows the engine's model events; thread-safe."""

    def __init__(self, handle: Callable[[], ModelHandle | None]) -> None:
        self._handle = handle
        self._changed = threading.Condition()
        self._loading: Path | None = None
        self._failure: UserError | None = None
        self._ready: ReadyModel | None = None

    def expect(self, path: Path) -> None:
        """A load was asked for; turns wait from now on."""
        with self._changed:
            self._loading, self._failure = path, None

    def fail(self, failure: UserError) -> Path | None:
        """The engine is gone for good; returns the model it was loading."""
        with self._changed:
            loading = self._loading
            self._loading, self._failure, self._ready = None, failure, None
            self._changed.notify_all()
            return loading

    def handle_event(self, event: Event) -> None:
        """On the engine's thread."""
        if isinstance(event, ModelLoaded):
            self._settle(None)
        elif isinstance(event, ModelFailed):
            self._settle(UserError(event.what, event.why, event.next))
        elif isinstance(event, ModelLoading):
            self.expect(event.path)

    @property
    def loading(self) -> bool:
        with self._changed:
            return self._loading is not None

    @property
    def ready(self) -> ReadyModel | None:
        """The model that answers, also where another failed to take its place."""
        with self._changed:
            return self._ready

    def current(self) -> ReadyModel:
        """Raises UserError when no model is loaded."""
        with self._changed:
            if self._ready is None:
                raise self._failure or no_model()
            return self._ready

    def wait(self, cancelled: Callable[[], bool]) -> ReadyModel:
        """The model once it is there. Raises Cancelled, or UserError when there will be none."""
        with self._changed:
            while self._loading is not None:
                if cancelled():
                    raise Cancelled
                self._changed.wait(POLL_S)
        return self.current()

    def _settle(self, failure: UserError | None) -> None:
        handle = self._handle()
        ready = None if handle is None else ReadyModel.of(handle)
        with self._changed:
            self._loading, self._failure, self._ready = None, failure, ready
            self._changed.notify_all()


def no_model() -> UserError:
    return UserError(
        "No model is loaded.",
        "Pagekeep needs a language model to answer.",
        "Get the starter model (98 MB) with 'pagekeep model fetch starter', or open a GGUF file.",
    )


def tokenizer_identity(tokenizer: Vocabulary) -> str:
    """Equal for tokenizers that read and write ids alike, as far as a probe can tell; milliseconds."""
    digest = hashlib.sha256(f"{tokenizer.vocabulary} {tokenizer.eos} {tokenizer.encode(PROBE)}".encode())
    step = max(1, tokenizer.vocabulary // 512)
    for token in range(0, tokenizer.vocabulary, step):
        digest.update(tokenizer.token_bytes(token) + b"\0")
    return digest.hexdigest()[:16]
