"""Surveys in conversations.db: the plan with the answer, a note per step."""

from __future__ import annotations

import json

from app.core.database import MigratedDatabase
from app.core.records import MessageId
from app.core.survey_plan import SurveyPlan


class SurveyStore:
    """Part of the conversations' store; thread-safe as that is."""

    def __init__(self, database: MigratedDatabase) -> None:
        self._database = database

    def begin(self, answer: MessageId, plan: SurveyPlan) -> None:
        """The answer is a survey that follows this plan."""
        with self._database.transaction() as db:
            db.table("messages").update(answer, {"survey": json.dumps(plan.to_json(), ensure_ascii=False)})

    def plan(self, answer: MessageId) -> SurveyPlan | None:
        """None: the answer is no survey."""
        with self._database.reading() as db:
            stored = db.table("messages").get(answer)["survey"]
        return None if stored is None else SurveyPlan.from_json(json.loads(stored))

    def keep_note(self, answer: MessageId, step: int, text: str) -> None:
        """What a step came to."""
        with self._database.transaction() as db:
            row = {"message": answer, "step": step, "text": text}
            db.table("survey_notes").insert(row, pk=("message", "step"), replace=True)

    def notes(self, answer: MessageId) -> dict[int, str]:
        """By step, those that were made so far."""
        with self._database.reading() as db:
            return {row["step"]: row["text"] for row in db.table("survey_notes").rows_where("message = ?", [answer])}
