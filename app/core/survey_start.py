"""How a survey begins: planned as it will stand, then stored with its question and what it replaces in one step."""

from __future__ import annotations

from app.core.events import WorkspaceEvent
from app.core.gate import ReadyModel
from app.core.plans import Situation
from app.core.records import Message
from app.core.replacement import Replaced, Replacement
from app.core.survey_compare import comparison_plan
from app.core.survey_plan import SurveyPlan, survey_plan
from app.core.surveys import Survey
from app.core.totals import TurnTotals
from app.core.turn_parts import RunningTurn, TurnServices
from app.core.unreadable import require_text
from engine.messages import Tokens


def begin_survey(
    services: TurnServices, job: RunningTurn, model: ReadyModel, situation: Situation, question: str, rest: bool,
    change: Replacement,
) -> tuple[Survey, Message, Replaced]:  # fmt: skip
    """The survey, its question as stored, and what went for it. `rest`: only what the model has not before it;
    `situation`: as it is once `change` is made."""
    planner, store, conversation = services.planner, services.store(), situation.conversation
    readable = [d for d in sorted(conversation.document_ids) if planner.texts.readable(d)]
    searched = planner.scopes.of(conversation.scope, question, readable)
    asked = planner.bare(situation, question)
    known = asked.context.markers if rest else {}
    plan = None
    require_text(planner.texts, searched)
    if not rest:
        plan = comparison_plan(question, searched, planner.found, services.library(), model.chat, model.context)
    plan = plan or survey_plan(
        question, searched, planner.texts, services.library(), model.chat, model.context, known.__contains__
    )
    job.check()
    composed = asked.composed
    with store.transaction():
        done = change.apply(store, job.conversation, model.page_tokens)
        user = store.append(job.conversation, "user", question, composed.tokens, placement=composed.placement)
        answer = store.append(job.conversation, "assistant", "", Tokens(), "partial")
        store.surveys.begin(answer.id, plan)
    store.dates.keep(asked.date, readable, job.conversation)
    job.spend_draft(store)
    return Survey(services, job, model, plan, answer, {}), user, done


def go_on_with_survey(
    services: TurnServices, job: RunningTurn, model: ReadyModel, plan: SurveyPlan, question: Message, answer: Message
) -> WorkspaceEvent:
    """From the first part without a note."""
    notes = services.store().surveys.notes(answer.id)
    totals = TurnTotals.of(answer.report)
    return Survey(services, job, model, plan, answer, notes, totals).run(question, continued=True)
