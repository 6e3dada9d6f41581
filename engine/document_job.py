"""What is known of a document that is read ahead: how far it is, and how much of that a kill would not lose."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import takewhile

from engine.elsewhere import Waiting
from engine.kv.cache import KvCache
from engine.kv.disk import Handed
from engine.kv.restore import Restore
from engine.kv.sequence import Sequence
from engine.messages import PrefillDocument


@dataclass
class Job:
    """A document to be read. `sequence` is held only while it is worked on: paused, its pages may be evicted."""

    request: PrefillDocument
    sequence: Sequence | None = None
    restore: Restore | None = None
    parted: int = 0  # where it leaves another document's prefix: the fixed header's end
    meets: int = 0  # up to there a page or more is lost; what is behind is there. 0: none is
    left: int = 0  # where it was let go to look for more. 0: it was not
    waiting: Waiting = field(default_factory=Waiting)
    reused: int = -1  # tokens that were there at the first look; -1: not looked yet
    computed: int = 0
    there: int = 0  # when it was let go last
    kept: int = -1  # tokens that a kill of this process does not lose; -1: not known yet
    handing: tuple[int, Handed] | None = None  # up to which token they were handed to the disk last
    not_saved: str = ""  # why what is computed is not kept
    milliseconds: float = 0.0
    step_ms: float = 0.0  # of the last step
    bytes_written: int = field(default=0)

    @property
    def owner(self) -> tuple[str, str]:
        """Of what it claims."""
        return "document", self.request.document

    @property
    def total(self) -> int:
        return len(self.request.tokens)

    def hand_over(self, cache: KvCache, tokens: int) -> None:
        """Hands to the disk what is there, `tokens` tokens."""
        if cache.disk is not None:
            self.handing = tokens, cache.disk.hand_over()

    def look(self, cache: KvCache, seconds: float) -> None:
        """Learns what came of it, if that is known within so many seconds."""
        sequence = self.sequence
        if self.handing is None or cache.disk is None or sequence is None or not self.handing[1].wait(seconds):
            return
        (tokens, handed), self.handing = self.handing, None
        cache.poll()
        safe, pages = safe_tokens(sequence), len(sequence.pages) * sequence.page_tokens
        lost = not handed.written or safe < pages
        self.not_saved = (cache.disk.refused() or self.not_saved) if lost else ""
        if handed.written:
            self.kept = tokens if safe == pages else min(tokens, safe)
        self.kept = max(self.kept, 0)


def safe_tokens(sequence: Sequence) -> int:
    """Up to the first page that was refused, or not written for another reason."""
    safe = takewhile(lambda page: page.saved or bool(page.writing), sequence.pages)
    return sum(1 for _ in safe) * sequence.page_tokens
