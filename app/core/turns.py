"""Turns: retrieve, compose, store the question, submit, stream, store the answer, cite, report.

One thread per running turn, several conversations at once, one turn per conversation. The question is stored
before the engine sees it; a failure or a stop keeps it, and keeps what was answered so far.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from app.core.answers import AnswerStream
from app.core.citing import cite_answer, coverage, passages_by_marker, report_of, with_coverage
from app.core.errors import Cancelled, UserError, as_user_error
from app.core.events import TurnDone, TurnError, TurnPhase, TurnStarted, TurnText, TurnWithdrawn, WorkspaceEvent
from app.core.exchanges import mode_of, placement_of, silent_exchange, up_to_last_question
from app.core.gate import ReadyModel
from app.core.inventory import catalogue_answer, store_told
from app.core.planning import Situation, check_fits
from app.core.prompt import history
from app.core.records import Message
from app.core.surveys import begin_survey, go_on_with_survey, survey_of
from app.core.turn_parts import Request, RunningTurn, TurnServices
from engine.messages import Cancel, ConversationId, Sampling, Submit, Tokens, TurnFinished, TurnId

if TYPE_CHECKING:
    from rag import Document

log = logging.getLogger(__name__)


Work = Callable[[RunningTurn], WorkspaceEvent]


class Turns:
    """Starts turns and keeps track of them; thread-safe."""

    def __init__(self, services: TurnServices) -> None:
        self._with = services
        self._lock = threading.Lock()
        self._running: dict[ConversationId, RunningTurn] = {}

    def running(self) -> dict[ConversationId, TurnId]:
        with self._lock:
            return {conversation: job.turn for conversation, job in self._running.items()}

    def ask(self, conversation: ConversationId, text: str, survey: bool = False) -> TurnId:
        """A question about the catalogue is answered from it, without the model. `survey`: every part is read that the
        model has not before it."""
        question = text.strip()
        if not question:
            raise UserError("There is no question.", "The text is empty.", "Type a question.")
        return self._start(conversation, lambda job: self._ask(job, question, survey), question)

    def regenerate(self, conversation: ConversationId) -> TurnId:
        return self._start(conversation, self._regenerate)

    def continue_answer(self, conversation: ConversationId) -> TurnId:
        return self._start(conversation, self._continue)

    def cancel(self, turn: TurnId) -> None:
        with self._lock:
            jobs = [job for job in self._running.values() if job.turn == turn]
        for job in jobs:
            job.stop(lambda submitted: self._with.engine().send(Cancel(submitted)))

    def close(self, timeout: float) -> None:
        """Stops all turns and waits for them to store what they have."""
        with self._lock:
            jobs = list(self._running.values())
        for job in jobs:
            self.cancel(job.turn)
        for job in jobs:
            if job.thread is not None and job.thread is not threading.current_thread():
                job.thread.join(timeout)

    # --- the turn's thread ----------------------------------------------------------------------------
    def _start(self, conversation: ConversationId, work: Work, draft: str = "") -> TurnId:
        if not self._with.gate.loading:
            self._with.gate.current()
        job = RunningTurn(TurnId(uuid.uuid4().hex), conversation)
        with self._lock:
            if conversation in self._running:
                raise UserError(
                    "This conversation is still answering.",
                    "One answer at a time.",
                    "Wait, or stop it first.",
                )
            self._running[conversation] = job
        job.thread = threading.Thread(
            target=self._run, args=(job, work, draft), name=f"turn-{job.turn[:8]}", daemon=True
        )
        job.thread.start()
        return job.turn

    def _run(self, job: RunningTurn, work: Work, draft: str) -> None:
        """The last event comes after everything is released: whoever hears it can ask again at once."""
        last: WorkspaceEvent = TurnWithdrawn(job.turn, job.conversation)
        try:
            last = self._outcome(job, work)
            if draft and not isinstance(last, TurnDone) and getattr(last, "message", None) is None:
                self._keep_draft(job.conversation, draft)
        finally:
            self._with.events.close(job.turn)
            with self._lock:
                self._running.pop(job.conversation, None)
            self._with.emit(last)

    def _outcome(self, job: RunningTurn, work: Work) -> WorkspaceEvent:
        try:
            with self._with.store().lease(job.conversation):
                return work(job)
        except Cancelled:
            return TurnWithdrawn(job.turn, job.conversation)
        except Exception as error:
            log.info("turn failed: %s", type(error).__name__, exc_info=not hasattr(error, "what"))
            self.cancel(job.turn)  # the engine may still be answering
            return TurnError(job.turn, job.conversation, as_user_error(error))

    def _keep_draft(self, conversation: ConversationId, draft: str) -> None:
        try:
            self._with.store().set_draft(conversation, draft)
        except Exception as error:
            log.info("the question is not kept: %s", type(error).__name__)

    def _ask(self, job: RunningTurn, question: str, survey: bool) -> WorkspaceEvent:
        if survey or self._surveys(job):
            return self._survey(job, question, rest=survey)
        attached = self._with.store().get(job.conversation).document_ids
        told = catalogue_answer(question, attached, self._with.library())
        return self._ask_model(job, question) if told is None else self._tell(job, question, told)

    def _tell(self, job: RunningTurn, question: str, told: str) -> WorkspaceEvent:
        store = self._with.store()
        user, answer = store_told(store, job.conversation, question, told)
        store.set_draft(job.conversation, "")
        self._with.emit(TurnStarted(job.turn, job.conversation, user, replace(answer, text="")))
        self._with.emit(TurnText(job.turn, job.conversation, answer.id, told))
        return TurnDone(job.turn, job.conversation, answer)

    def _surveys(self, job: RunningTurn) -> bool:
        conversation = self._with.store().get(job.conversation)
        return conversation.mode == "survey" and bool(conversation.documents or conversation.scope)

    def _survey(self, job: RunningTurn, question: str, rest: bool = False) -> WorkspaceEvent:
        """`rest`: without what the model has before it."""
        model, situation, _ = self._situation(job)
        self._phase_retrieving(job, situation)
        return begin_survey(self._with, job, model, situation, question, rest)

    def _ask_model(self, job: RunningTurn, question: str) -> WorkspaceEvent:
        model, situation, computed = self._situation(job)
        self._phase_retrieving(job, situation)
        plan = self._with.planner.plan(situation, question)
        check_fits(plan)
        job.check()
        store = self._with.store()
        if computed > len(plan.history):  # it counted an unanswered question that this one replaces
            computed = len(plan.history)
            store.set_computed(job.conversation, model.identity, computed)
        placement = plan.composed.placement
        user = store.append(
            job.conversation, "user", question, plan.composed.tokens, placement=placement, lookup=plan.lookup
        )
        store.set_draft(job.conversation, "")
        answer = store.append(job.conversation, "assistant", "", Tokens(), "partial")
        messages = (*situation.messages, user)
        request = Request(model, messages, answer, plan.tokens, plan.mode, 0, plan.retrieve_ms, computed)
        return self._answer(job, request)

    def _regenerate(self, job: RunningTurn) -> WorkspaceEvent:
        told = silent_exchange(self._with.store().messages(job.conversation))
        if told:  # the reader wants the model's own answer
            for message in told:
                self._with.store().supersede(message.id)
            return self._ask_model(job, told[0].text)
        model, situation, computed = self._situation(job)
        messages = situation.messages + situation.unanswered
        asked = up_to_last_question(messages)
        store = self._with.store()
        again = any(store.surveys.plan(message.id) for message in messages[len(asked) :])
        for message in messages[len(asked) - again :]:
            store.supersede(message.id)
        if again:
            return self._survey(job, asked[-1].text)
        answer = store.append(job.conversation, "assistant", "", Tokens(), "partial")
        variant = store.superseded_count(job.conversation)
        request = Request(model, asked, answer, history(asked), mode_of(asked), variant, 0.0, computed)
        return self._answer(job, request)

    def _continue(self, job: RunningTurn) -> WorkspaceEvent:
        model, situation, computed = self._situation(job)
        messages = situation.messages + situation.unanswered
        asked = up_to_last_question(messages)
        if len(asked) == len(messages):
            return self._regenerate(job)
        answer = messages[-1]
        if (plan := survey_of(self._with, answer)) is not None and answer.state != "complete":
            return go_on_with_survey(self._with, job, model, plan, asked[-1], answer)
        if answer.tokens.ids[-1:] and answer.tokens.ids[-1] in situation.end_ids:
            raise UserError("The answer is complete.", "The model ended it itself.", "Ask on, or answer again.")
        prompt = history(messages)
        return self._answer(job, Request(model, asked, answer, prompt, mode_of(asked), 0, 0.0, computed))

    def _situation(self, job: RunningTurn) -> tuple[ReadyModel, Situation, int]:
        if self._with.gate.loading:
            self._with.emit(TurnPhase(job.turn, job.conversation, "queued"))
        model = self._with.gate.wait(job.stopped.is_set)
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
        self._submit(job, request)
        finished = stream.follow(mailbox)
        store.set_computed(
            job.conversation,
            request.model.identity,
            max(stream.tokens_with_kv, min(request.computed, len(request.prompt))),
        )
        if finished is None:
            failed = store.finish_answer(stream.so_far("failed"), (), None)
            error = stream.failure or UserError("The answer failed.")
            return TurnError(job.turn, job.conversation, error, failed)
        stopped = finished.reason == "cancelled" and not stream.looped
        done = stream.so_far("cancelled" if stopped else "complete")
        store.update_answer(done.id, done.text, done.tokens, done.state, done.reasoning, done.thought_ms)
        return TurnDone(job.turn, job.conversation, self._settled(request, done, finished, stream))

    def _searched(self, conversation: ConversationId) -> list[Document]:
        """The conversation's documents that can be read."""
        texts = self._with.planner.texts
        wanted = self._with.store().get(conversation).document_ids
        return [texts.document(document) for document in wanted if texts.readable(document)]

    def _submit(self, job: RunningTurn, request: Request) -> None:
        submit = Submit(
            turn=job.turn,
            conversation=job.conversation,
            tokens=request.prompt,
            sampling=_sampling(self._with.settings().sampling, request),
            shared_tokens=placement_of(request.messages).shared_tokens,
            history_tokens=request.computed,
        )
        with job.lock:
            self._with.engine().send(submit)
            job.submitted = job.turn
            if job.stopped.is_set():
                self._with.engine().send(Cancel(job.turn))

    def _settled(self, request: Request, answer: Message, finished: TurnFinished, stream: AnswerStream) -> Message:
        """The stored answer with citations and report."""
        texts = self._with.planner.texts
        numbered = passages_by_marker(request.messages, texts)
        citations = cite_answer(answer.text, numbered, self._with.library()) if numbered else ()
        pages = coverage(request.messages, texts)
        name = request.model.name
        report = report_of(finished, request.mode, request.retrieve_ms, stream.saved_ms, name, pages)
        report = with_coverage(report, request.messages[-1].text, answer, self._searched(request.answer.conversation))
        if stream.looped:
            report = replace(report, finish_reason="repetition")
        elif finished.reason == "stop" and not answer.text.strip():
            report = replace(report, finish_reason="empty")
        return self._with.store().finish_answer(answer, citations, report)


def _sampling(sampling: Sampling, request: Request) -> Sampling:
    """Another answer to the same question gets random numbers of its own."""
    return replace(sampling, seed=sampling.seed + request.variant)
