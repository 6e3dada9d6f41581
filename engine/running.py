"""What exists while a model is loaded, and what can be told about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine import mishaps
from engine.background import DocumentReader
from engine.canary import Canary
from engine.kv.cache import KvCache
from engine.kv.disk import Gone
from engine.kv.reasons import computed_ranges, why_missing
from engine.loading import LoadedModel
from engine.messages import (
    AnswerDoubted,
    ConversationId,
    EngineNotice,
    EngineSettings,
    EngineStats,
    Event,
    QueryState,
    StateReport,
)
from engine.overflow import shift_refused
from engine.prefetch import Prefetch
from engine.process_memory import anonymous_bytes
from engine.runner import Runner
from engine.scheduler import Scheduler
from engine.store import KvStore
from engine.timings import Rates


@dataclass
class Running:
    """Everything that exists while a model is loaded."""

    model: LoadedModel
    cache: KvCache
    store: KvStore | None
    rates: Rates
    runner: Runner
    scheduler: Scheduler
    prefetch: Prefetch
    reader: DocumentReader
    canary: Canary
    settings: EngineSettings
    depth_scale: float  # see engine.kv.value

    @property
    def may_shift(self) -> bool:
        """Whether a range can be taken out without computing what follows."""
        return not shift_refused(self.model.handle.spec, self.settings.kv_type_k)

    def tell_notices(self, emit: Callable[[Event], None]) -> None:
        for notice in self.cache.notices():
            emit(EngineNotice(notice.what, notice.why, notice.next, notice.conversation))
        for one in self.cache.losses.doubts.take():
            emit(AnswerDoubted(one.turn, one.conversation))

    def tell_stats(self, emit: Callable[[Event], None]) -> None:
        """For the status bar: whatever is wrong with the numbers, no turn fails over them."""
        try:
            emit(self.stats())
        except Exception as error:
            mishaps.pass_over("the numbers of the status bar", error)

    def stats(self) -> EngineStats:
        stat = self.cache.stat()
        return EngineStats(
            weights_bytes=self.model.handle.info.weights_bytes,
            kv_memory_bytes=stat.used_bytes,
            kv_disk_bytes=self.store.stat().bytes if self.store else 0,
            running=self.scheduler.running,
            waiting=self.scheduler.waiting,
            prefill_rate=self.rates.prefill,
            decode_rate=self.rates.decode,
            kv_reserved_bytes=stat.reserved_bytes,
            kv_mapped_bytes=stat.mapped_bytes,
            index_bytes=stat.index_bytes + stat.hidden_bytes,
            ram_budget_bytes=stat.budget_bytes,
            disk_budget_bytes=self.settings.disk_budget_bytes if self.store else 0,
            pages_checked=self.canary.checked,
            pages_wrong=self.canary.failed,
            written_bytes=self.store.bytes_written if self.store else 0,
            anonymous_bytes=anonymous_bytes(),
        )

    def state(self, query: QueryState) -> StateReport:
        numbers = self.cache.report(query.conversation, query.tokens, query.shifts, query.history_tokens)
        reused = numbers.tokens_memory + numbers.tokens_disk_only
        missing = why_missing(self.cache, query, Gone(numbers.missing_reason, numbers.missing_at), reused)
        return StateReport(
            request=query.request,
            conversation=query.conversation,
            tokens=numbers.tokens,
            tokens_memory=numbers.tokens_memory,
            tokens_disk_only=numbers.tokens_disk_only,
            tokens_unsaved=numbers.tokens_unsaved,
            bytes_memory=numbers.bytes_memory,
            bytes_disk=numbers.bytes_disk,
            bytes_shared=numbers.bytes_shared,
            shared_with=tuple(ConversationId(name) for name in numbers.shared_with),
            last_saved=numbers.last_saved,
            rebuild_seconds=self.rates.prefill_ms(numbers.tokens) / 1e3,
            tier=numbers.tier,
            missing=computed_ranges(query, [(reused, len(query.tokens))], missing),
            difference=numbers.difference,
            tokens_foreign=numbers.tokens_foreign,
            pages=numbers.pages,
            page_tokens=self.cache.layout.page_tokens,
            pinned=numbers.pinned,
            refused=self.store.refused() if self.store and numbers.tokens_unsaved else "",
        )


def unknown_state(query: QueryState) -> StateReport:
    """The answer while no model is loaded."""
    return StateReport(query.request, query.conversation, len(query.tokens), 0, 0, 0, 0, 0, 0, (), None, 0.0, "none")
