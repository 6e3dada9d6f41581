"""A full conversation goes on in a new one on the same documents, which begins with the model's own summary.

The summary is written on the conversation's own state, under a name that is dropped afterwards; where there is no
room left for it, the turns are read once more without the documents.
"""

from __future__ import annotations

from dataclasses import replace

from app.core.engine_events import Mailbox
from app.core.errors import UserError
from app.core.events import ConversationChanged, TurnMoved, TurnPhase, WorkspaceEvent
from app.core.forks import opening
from app.core.gate import ReadyModel
from app.core.plans import Situation
from app.core.prompt import Context, history
from app.core.reasoning import split_answer
from app.core.records import Message, PhaseTimes, TokenReport, TurnReport
from app.core.segments import HEADER_PLAIN
from app.core.turn_parts import RunningTurn, TurnServices
from engine.messages import (
    Cancel,
    DropState,
    PrefillProgress,
    Submit,
    TokenDelta,
    Tokens,
    TurnFailed,
    TurnFinished,
    scratch_state,
)
from engine.overflow import summary_tokens

ASK = "Summarise the questions and answers of our conversation so far in a few sentences. Keep names and numbers."


class SummaryWork:
    """Runs on the turn's thread."""

    def __init__(self, services: TurnServices) -> None:
        self._with = services

    def fork(self, job: RunningTurn, model: ReadyModel, situation: Situation, question: str) -> WorkspaceEvent:
        text, doubtful = self._written(job, model, situation)
        summary = self._begun(model, situation, text, doubtful)
        target = self._with.store().get(summary.conversation)
        job.spend_draft(self._with.store())
        self._with.emit(ConversationChanged(target))
        return TurnMoved(job.turn, job.conversation, target, question, summary.id)

    # --- the summary ----------------------------------------------------------------------------------
    def _written(self, job: RunningTurn, model: ReadyModel, situation: Situation) -> tuple[str, bool]:
        """With whether it was written on state that was found damaged. Raises Cancelled, or UserError when the model
        wrote nothing."""
        scratch = scratch_state("summary", job.conversation)
        job.check()
        mailbox = self._with.events.open(job.turn)
        sampling = replace(self._with.settings().sampling, max_tokens=summary_tokens(model.context), stop=())
        submit = Submit(job.turn, scratch, _prompt(model, situation), sampling)
        with job.lock:
            self._with.engine().send(submit)
            job.submitted = job.turn
            if job.stopped.is_set():
                self._with.engine().send(Cancel(job.turn))
        try:
            finished = self._followed(job, mailbox, sampling.max_tokens)
            text = split_answer(finished.text, model.reasons)[1].strip()
        finally:
            self._with.engine().send(DropState(scratch, disk=True))
        job.check()
        if not text:
            raise UserError(
                "The model wrote no summary.",
                "Its answer was empty.",
                "Choose another way to go on, or a larger model.",
            )
        return text, finished.doubtful > 0

    def _followed(self, job: RunningTurn, mailbox: Mailbox, length: int) -> TurnFinished:
        written = 0
        while True:
            event = mailbox.get()
            if isinstance(event, TurnFinished):
                return event
            if isinstance(event, TurnFailed):
                raise UserError(event.what, event.why, event.next)
            if isinstance(event, PrefillProgress):
                left = (event.total - event.done) / event.tokens_per_second if event.tokens_per_second else None
                self._tell(job, TurnPhase(job.turn, job.conversation, "reading", event.done, event.total, left))
            elif isinstance(event, TokenDelta):
                written += len(event.ids)
                self._tell(job, TurnPhase(job.turn, job.conversation, "summarising", written, length))

    def _tell(self, job: RunningTurn, phase: TurnPhase) -> None:
        self._with.emit(phase)

    # --- the conversation that begins with it -----------------------------------------------------------
    def _begun(self, model: ReadyModel, situation: Situation, text: str, doubtful: bool) -> Message:
        """The summary."""
        old, store = situation.conversation, self._with.store()
        title = f"{old.title} (continued)"
        target = store.create(title, old.document_ids, old.mode, old.instructions)
        plan = opening(self._with.planner, old, target, model, model.end_ids)
        asked = plan.addition.question
        store.append(target.id, "user", asked, plan.composed.tokens, placement=plan.composed.placement)
        store.dates.keep(plan.date, [document.id for document in plan.addition.documents], target.id)
        answer = Tokens.prompt([*model.chat.text_ids(text), model.end_of_turn])
        summary = store.append(target.id, "assistant", text, answer)
        if doubtful:  # all of it: what its text is read from later is not what was drawn
            report = TurnReport(TokenReport(), PhaseTimes(), "whole", model=model.name, doubtful=len(answer))
            store.finish_answer(summary, (), report)
        store.set_computed(target.id, model.identity, 0)
        return summary


def _prompt(model: ReadyModel, situation: Situation) -> Tokens:
    chat = model.chat.dated(situation.conversation.date)
    ended = Context.of(situation.messages, situation.end_ids).ended
    question = [*chat.text_ids(ASK), *chat.glue.assistant_open_ids()]
    behind = history(situation.messages) + Tokens.prompt([*chat.glue.next_user_open_ids(ended), *question])
    length = summary_tokens(model.context)
    if len(behind) + length <= model.context:
        return behind
    head = [*chat.glue.open_ids(), *chat.text_ids(HEADER_PLAIN), *chat.glue.first_user_open_ids(has_system=True)]
    room = model.context - length - len(head) - len(question)
    return Tokens.prompt([*head, *_turns(model, situation.messages, room), *question])


def _turns(model: ReadyModel, messages: tuple[Message, ...], room: int) -> list[int]:
    """Questions and answers as text, the latest that fit; what does not is named as left out."""
    note = list(model.chat.text_ids("(Earlier questions and answers are left out.)\n\n"))
    names = {"user": "Question", "assistant": "Answer"}
    ids: list[int] = []
    for message in reversed(messages):
        piece = model.chat.text_ids(f"{names[message.role]}: {message.text.strip()}\n\n")
        if len(ids) + len(piece) + len(note) > room:
            return [*note, *ids]
        ids = [*piece, *ids]
    return ids
