"""What a turn does: retrieve, compose, store the question, submit, stream, store the answer, cite, report.

Runs on the turn's thread. The question is stored before the engine sees it; a failure or a stop keeps it, and keeps
what was answered so far.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from app.core.advice import check_fits
from app.core.answers import AnswerStream, failed_at_once
from app.core.cuts import Moved
from app.core.errors import UserError
from app.core.events import TurnDone, TurnError, TurnPhase, TurnStarted, TurnText, WorkspaceEvent
from app.core.exchanges import followed, mode_of, placement_of, silent_exchange, up_to_last_question
from app.core.explain import EXACT
from app.core.gate import ReadyModel
from app.core.inventory import catalogue_answer, store_told
from app.core.overflow import cut_of, way_named
from app.core.plans import Situation
from app.core.prompt import Context, history
from app.core.question_store import store_question
from app.core.records import MessageId
from app.core.replacement import NOTHING_GOES, Replacement
from app.core.settings import Settings
from app.core.settling import settled
from app.core.spans import Operation
from app.core.summaries import SummaryWork
from app.core.survey_start import begin_survey, go_on_with_survey
from app.core.turn_parts import Look, Request, RunningTurn, TurnServices
from engine.messages import Cancel, Sampling, Submit, Tokens
from engine.overflow import OverflowWay


class TurnWork:
    def __init__(self, services: TurnServices) -> None:
        self._with = services
        self._summaries = SummaryWork(services)

    def ask(
        self, job: RunningTurn, question: str, overflow: OverflowWay | None = None, survey: bool = False
    ) -> WorkspaceEvent:
        """A question about the catalogue, or about a page that is not there, is answered without the model."""
        if survey or self._surveys(job):
            return self._survey(job, question, rest=survey)
        attached = self._with.store().get(job.conversation).document_ids
        told = catalogue_answer(question, attached, self._with.library())
        return self._ask_model(job, question, overflow) if told is None else self._tell(job, question, told)

    def _tell(self, job: RunningTurn, question: str, told: str) -> WorkspaceEvent:
        store = self._with.store()
        user, answer = store_told(store, job.conversation, question, told)
        job.spend_draft(store)
        self._with.emit(TurnStarted(job.turn, job.conversation, user, replace(answer, text="")))
        self._with.emit(TurnText(job.turn, job.conversation, answer.id, told))
        return TurnDone(job.turn, job.conversation, answer)

    def _surveys(self, job: RunningTurn) -> bool:
        conversation = self._with.store().get(job.conversation)
        return conversation.mode == "survey" and bool(conversation.documents or conversation.scope)

    def _survey(
        self, job: RunningTurn, question: str, rest: bool = False, change: Replacement = NOTHING_GOES
    ) -> WorkspaceEvent:
        """`rest`: without what the model has before it."""
        model, situation, _ = self._situation(job, change)
        self._phase_retrieving(job, situation)
        survey, asked, done = begin_survey(self._with, job, model, situation, question, rest, change)
        with self._back_on_failure(job, model, done.moment):
            return survey.run(asked, continued=False)

    def _ask_model(
        self, job: RunningTurn, question: str, overflow: OverflowWay | None, change: Replacement = NOTHING_GOES
    ) -> WorkspaceEvent:
        """`overflow`: how to go on if the question does not fit. `change`: what it replaces; nothing of it is done
        before the question can be stored in its place."""
        look = self._look(job, question, change)
        way = overflow if look.plan.over_by else None
        if way == "fork":
            return self._fork(job, look, question)
        if way is not None:
            change = self._make_room(job, look, way, change)
            look = self._look(job, question, change)
        check_fits(look.plan, partial(look.ways, self._with.engine(), self._with.planner), look.model.handle.info)
        job.check()
        return self._send(job, question, look, change)

    def _fork(self, job: RunningTurn, look: Look, question: str) -> WorkspaceEvent:
        way_named(look.ways(self._with.engine(), self._with.planner), "fork")  # or UserError
        return self._summaries.fork(job, look.model, look.situation, question)

    def _look(self, job: RunningTurn, question: str, change: Replacement) -> Look:
        model, situation, computed = self._situation(job, change)
        self._phase_retrieving(job, situation)
        self._with.planner.require_text(situation, question)
        return Look(model, situation, computed, self._with.planner.plan(situation, question))

    def _make_room(self, job: RunningTurn, look: Look, way: OverflowWay, change: Replacement) -> Replacement:
        """With the turns that have to leave the context, or the model loaded again with a larger one."""
        option = way_named(look.ways(self._with.engine(), self._with.planner), way)
        if option.way == "larger":
            self._with.enlarge(job.conversation, option)
            return change
        leave = change.tokens + option.dropped[1] - option.dropped[0]
        return replace(change, cut=cut_of(option, look.situation.messages), tokens=leave)

    def _send(self, job: RunningTurn, question: str, look: Look, change: Replacement) -> WorkspaceEvent:
        """Stores the question, then asks it; one that was not answered at all is the draft again."""
        store, plan = self._with.store(), look.plan
        with store.transaction():
            done = change.apply(store, job.conversation, look.model.page_tokens)
            computed = self._still_computed(job, look)
            user = store_question(store, job, question, look)
            answer = store.append(job.conversation, "assistant", "", Tokens(), "partial")
        messages, had = (*look.situation.messages, user), (max(computed, change.earlier), look.situation.last_turn)
        ready = answer, plan.tokens, plan.mode, 0, plan.retrieve_ms
        request = Request(look.model, messages, *ready, *had, done.operations)
        with self._back_on_failure(job, look.model, done.moment):
            ended = self._answer(job, request)
            if failure := failed_at_once(ended):
                store.cuts.withdraw((user.id, answer.id), done.cut)
                raise failure
            return ended

    def _still_computed(self, job: RunningTurn, look: Look) -> int:
        computed = look.still_computed
        if computed < look.computed:
            self._with.store().set_computed(job.conversation, look.model.identity, computed)
        return computed

    def edit(
        self, job: RunningTurn, message: MessageId, question: str, overflow: OverflowWay | None = None
    ) -> WorkspaceEvent:
        """The question in other words: it and all behind it are put aside, unless it cannot be asked here."""
        _, _, earlier = self._situation(job)
        stored = self._with.store().messages(job.conversation)
        place = next((i for i, m in enumerate(stored) if m.id == message and m.role == "user"), None)
        if place is None:
            raise UserError("There is no such question.", "It has been removed.", "Open the conversation again.")
        kept = len(history(followed(stored[:place])))
        leave = len(history(followed(stored))) - kept
        gone = tuple(m.id for m in stored[place:])
        return self._ask_model(job, question, overflow, Replacement(gone, kept, earlier=earlier, tokens=leave))

    @contextmanager
    def _back_on_failure(self, job: RunningTurn, model: ReadyModel, moment: float | None) -> Iterator[None]:
        """Messages that went aside then come back when nothing can be answered in their place."""
        try:
            yield
        except BaseException:
            if moment is not None:
                self._with.store().cuts.bring_back(job.conversation, moment, model.page_tokens)
            raise

    def regenerate(self, job: RunningTurn) -> WorkspaceEvent:
        told = silent_exchange(self._with.store().messages(job.conversation))
        if told:  # the reader wants the model's own answer
            return self.edit(job, told[0].id, told[0].text)
        model, situation, computed = self._situation(job)
        messages = situation.messages + situation.unanswered
        asked = up_to_last_question(messages)
        store, prompt = self._with.store(), history(asked)
        again = any(store.surveys.plan(message.id) for message in messages[len(asked) :])
        replaced = messages[len(asked) - again :]
        kept = len(prompt) - sum(len(m.tokens) for m in replaced if m.role == "user")
        change = Replacement(tuple(m.id for m in replaced), kept)
        if again:
            return self._survey(job, asked[-1].text, change=change)
        with store.transaction():
            done = change.apply(store, job.conversation, model.page_tokens)
            answer = store.append(job.conversation, "assistant", "", Tokens(), "partial")
            variant = store.superseded_count(job.conversation)
        had = computed, situation.last_turn
        with self._back_on_failure(job, model, done.moment):
            ended = self._answer(job, Request(model, asked, answer, prompt, mode_of(asked), variant, 0.0, *had))
            if replaced and (failure := failed_at_once(ended)):
                store.cuts.withdraw((answer.id,))  # the old answer is better than none
                raise failure
            return ended

    def continue_answer(self, job: RunningTurn) -> WorkspaceEvent:
        model, situation, computed = self._situation(job)
        messages = situation.messages + situation.unanswered
        asked = up_to_last_question(messages)
        if len(asked) == len(messages):
            return self.regenerate(job)
        answer = messages[-1]
        if (found := self._with.store().surveys.plan(answer.id)) is not None and answer.state != "complete":
            return go_on_with_survey(self._with, job, model, found, asked[-1], answer)
        if answer.tokens.ids[-1:] and answer.tokens.ids[-1] in situation.end_ids:
            raise UserError("The answer is complete.", "The model ended it itself.", "Ask on, or answer again.")
        prompt, had = history(messages), (computed, situation.last_turn)
        return self._answer(job, Request(model, asked, answer, prompt, mode_of(asked), 0, 0.0, *had))

    def _situation(self, job: RunningTurn, change: Replacement = NOTHING_GOES) -> tuple[ReadyModel, Situation, int]:
        """As it will be after that change, which is not made yet."""
        if self._with.gate.loading:
            self._with.emit(TurnPhase(job.turn, job.conversation, "queued"))
        model, store = self._with.gate.wait(job.stopped.is_set), self._with.store()
        if change == NOTHING_GOES:
            return model, *self._with.histories.situation(job.conversation, model, store_renewed=True)
        with store.trial():
            change.apply(store, job.conversation, model.page_tokens)
            return model, *self._with.histories.situation(job.conversation, model, store_renewed=True)

    def _phase_retrieving(self, job: RunningTurn, situation: Situation) -> None:
        job.check()
        if situation.conversation.documents:
            self._with.planner.texts.require_read(situation.conversation.document_ids)
            self._with.emit(TurnPhase(job.turn, job.conversation, "retrieving"))

    # --- the answer -----------------------------------------------------------------------------------
    def _answer(self, job: RunningTurn, request: Request) -> WorkspaceEvent:
        emit, store = self._with.emit, self._with.store()
        answer = request.answer
        emit(TurnStarted(job.turn, job.conversation, request.messages[-1], answer, bool(answer.tokens.ids)))
        stop = partial(self._with.engine().send, Cancel(job.turn))
        reasons = request.model.reasons
        stream = AnswerStream(job.turn, job.conversation, answer, store, emit, len(request.prompt), stop, reasons)
        mailbox = self._with.events.open(job.turn)
        moved = store.cuts.moved(job.conversation)
        self._submit(job, request, moved)
        finished = stream.follow(mailbox)
        if moved.shifts and finished is not None and finished.approximate is not None:
            store.cuts.settle(job.conversation, finished.approximate)
            if not finished.approximate:
                store.operations.note(job.conversation, Operation(EXACT, 0.0))
        store.set_computed(
            job.conversation,
            request.model.identity,
            max(stream.tokens_with_kv, min(request.computed, len(request.prompt))),
        )
        if finished is None:
            begun = store.message(answer.id).report  # of what it went on from, with its doubts
            failed = store.finish_answer(stream.so_far("failed"), (), begun)
            error = stream.failure or UserError("The answer failed.")
            return TurnError(job.turn, job.conversation, error, failed)
        stopped = finished.reason == "cancelled" and not stream.looped
        done = stream.so_far("cancelled" if stopped else "complete")
        store.update_answer(done.id, done.text, done.tokens, done.state, done.reasoning, done.thought_ms)
        return TurnDone(job.turn, job.conversation, settled(self._with, request, done, finished, stream))

    def _submit(self, job: RunningTurn, request: Request, moved: Moved) -> None:
        submit = Submit(
            turn=job.turn,
            conversation=job.conversation,
            tokens=request.prompt,
            sampling=_sampling(self._with.settings(), request),
            shared_tokens=placement_of(request.messages).shared_tokens,
            history_tokens=request.computed,
            last_turn=request.last_turn,
            shifts=moved.shifts,
            removal=moved.removal,
        )
        with job.lock:
            self._with.engine().send(submit)
            job.submitted = job.turn
            if job.stopped.is_set():
                self._with.engine().send(Cancel(job.turn))


def _sampling(settings: Settings, request: Request) -> Sampling:
    """Another answer to the same question gets random numbers of its own. Where citations are limited, it can only
    write numbers of passages that its context has."""
    sampling = replace(settings.sampling, seed=settings.sampling.seed + request.variant)
    if not settings.limit_citations:
        return sampling
    return replace(sampling, citations=Context.of(request.messages, frozenset()).next_marker - 1)
