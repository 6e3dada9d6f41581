"""Surveys: every part of the documents is read by the model, one engine turn after another.

The notes are stored as they come: what was stopped, or ended with the process, goes on where it was. The engine runs
the parts under a name of their own, so they go behind the conversation the reader looks at.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from app.core.citing import cite_answer, proven
from app.core.engine_events import Mailbox
from app.core.errors import Cancelled, UserError
from app.core.events import TurnDone, TurnPhase, TurnStarted, TurnText, WorkspaceEvent
from app.core.gate import ReadyModel
from app.core.prompt import Composed
from app.core.reasoning import split_answer
from app.core.records import Message, StoredCitation, TurnReport
from app.core.segments import PromptFormat
from app.core.survey_compare import side_note, without_false
from app.core.survey_notes import (
    UNUSABLE,
    entries,
    kept_entries,
    listed,
    renumbered,
    says_nothing,
    tidied,
    without_labels,
    without_markers,
)
from app.core.survey_plan import SurveyPart, SurveyPlan, joined_prompt, note_tokens, part_prompt
from app.core.survey_proof import proven_entry
from app.core.survey_text import closing_text, models_words, shown_notes
from app.core.totals import TurnTotals
from app.core.turn_parts import RunningTurn, TurnServices
from engine.messages import (
    ConversationId,
    DropState,
    PrefillProgress,
    Submit,
    Tokens,
    TurnFailed,
    TurnFinished,
    TurnId,
    scratch_state,
)
from rag.question_kinds import wants_summary
from rag.question_lists import collects, counted
from rag.question_sides import compared
from rag.types import Passage

THINKING_TOKENS = 512  # room for what a reasoning model writes before its note
HISTORY_SHARE = 8  # of the context: what later questions get to see of a survey


@dataclass
class Survey:
    """One run of a plan, on the thread of its turn. `notes`: by step, those from an earlier run included."""

    services: TurnServices
    job: RunningTurn
    model: ReadyModel
    plan: SurveyPlan
    answer: Message
    notes: dict[int, str]
    totals: TurnTotals = field(default_factory=TurnTotals)
    _borne_out: set[int] = field(default_factory=set)
    _begun: float = field(default_factory=time.monotonic)
    _at_start: int = 0

    def run(self, question: Message, continued: bool) -> WorkspaceEvent:
        """Reads what is left. A stop keeps what came so far."""
        self._at_start = len(self.notes)
        self._borne_out = {step for step in self.notes if self._bears_out(step)}
        started = TurnStarted(self.job.turn, self.job.conversation, question, self.answer, continued)
        self.services.emit(started)
        try:
            for step in self._steps():
                self._phase()
                self._take(step, self._answer_to(step))
        except Cancelled:
            return self._end("cancelled")
        finally:
            self.services.engine().send(DropState(self._state, disk=True))
        return self._end("complete")

    def _steps(self) -> Iterator[int]:
        """What has no note yet; a round whose notes would be none or one needs no model."""
        for step in range(self.plan.steps):
            if step not in self.notes:
                yield step

    # --- a step ---------------------------------------------------------------------------------------
    def _answer_to(self, step: int) -> str:
        if step < len(self.plan.parts):
            part = self.plan.parts[step]
            passages = self._passages(part)
            composed = part_prompt(self._chat(passages), self.plan, part, passages)
            text = self._ask(composed, note_tokens(self.plan.question), step)
            return self._usable(part, renumbered(text, part.first_marker, len(passages)))
        told = self._joined(step)
        last = step == self.plan.steps - 1
        if len(told) < 2 and not counted(self.plan.question):
            return told[0][1] if told and not last else ""
        if collects(self.plan.question):
            return listed(entry for _, note in told for entry in entries(note))
        most = self.services.settings().sampling.max_tokens if last else note_tokens(self.plan.question)
        text = self._ask(joined_prompt(self._chat(), self.plan.question, told), most, step)
        return without_false(text, self._cited(text)) if self.plan.parts[0].about else text

    def _chat(self, passages: Sequence[Passage] = ()) -> PromptFormat:
        """Parts show their document's date: what was computed for them serves the next survey too."""
        store = self.services.store()
        kept = store.dates.of_document(int(passages[0].document_id)) if passages else None
        return self.model.chat.dated(kept or store.get(self.job.conversation).date)

    def _joined(self, step: int) -> list[tuple[str, str]]:
        """(title, note) of the group that a later step puts together: those that say something true."""
        before, first = 0, len(self.plan.parts)
        for groups in self.plan.rounds:
            if step < first + len(groups):
                steps = [before + n for n in groups[step - first]]
                return [(self._title(n), self.notes[n]) for n in steps if self._counts(n)]
            before, first = first, first + len(groups)
        raise AssertionError("the plan has no such step")

    def _counts(self, step: int) -> bool:
        return not says_nothing(self.notes[step]) and (step >= len(self.plan.parts) or step in self._borne_out)

    def _usable(self, part: SurveyPart, note: str) -> str:
        """What is kept of a note: of lists and sides of a comparison, what the pages bear out, with its passages."""
        numbered, library = self._numbered(part), self.services.library()
        if part.about:
            return side_note(part.about, numbered, proven(without_markers(note), numbered, library))
        if collects(self.plan.question):
            return kept_entries(note, lambda entry: proven_entry(entry, self.plan.question, numbered, library))
        if compared(self.plan.question) and not says_nothing(note):  # nothing was found for one side
            return proven(without_markers(note), numbered, library) or UNUSABLE
        return without_labels(note) if wants_summary(self.plan.question) else note

    def _numbered(self, part: SurveyPart) -> dict[int, Passage]:
        return dict(enumerate(self._passages(part), part.first_marker))

    def _bears_out(self, step: int) -> bool:
        """The part's own pages support at least something of its note; any page does, of what is put together."""
        if says_nothing(self.notes[step]):
            return False
        found = self._cited(self.notes[step], *self.plan.parts[step : step + 1])
        return any(citation.verified != "not_found" for citation in found)

    def _cited(self, text: str, *parts: SurveyPart) -> tuple[StoredCitation, ...]:
        """Against the passages of these parts, or all."""
        numbered = {number: p for part in parts or self.plan.parts for number, p in self._numbered(part).items()}
        return cite_answer(text, numbered, self.services.library(), question=self.plan.question)

    def _title(self, step: int) -> str:
        return self.plan.parts[step].title if step < len(self.plan.parts) else ""

    def _passages(self, part: SurveyPart) -> tuple[Passage, ...]:
        library = self.services.library()
        return tuple(library.passage(identifier) for identifier in part.passage_ids)

    def _ask(self, composed: Composed, most: int, step: int) -> str:
        """The engine's answer. Raises Cancelled, or the UserError of a turn that failed."""
        if len(composed.tokens) + most > self.model.context:
            raise UserError(
                "This survey does not fit the model.",
                f"It was begun with a larger context; one of its parts takes {len(composed.tokens):,} tokens.",
                "Ask the question again with this model.",
            )
        turn = TurnId(f"{self.job.turn}-{step}")
        mailbox = self.services.events.open(turn)
        thinking = THINKING_TOKENS if self.model.reasons else 0
        sampling = replace(self.services.settings().sampling, temperature=0.0, max_tokens=most + thinking)
        try:
            with self.job.lock:
                self.job.check()
                self.services.engine().send(Submit(turn, self._state, composed.tokens, sampling))
                self.job.submitted = turn
            return self._finished(mailbox)
        finally:
            self.job.submitted = None
            self.services.events.close(turn)

    def _finished(self, mailbox: Mailbox) -> str:
        read = 0
        while True:
            event = mailbox.get()
            if isinstance(event, TurnFailed):
                raise UserError(event.what, event.why, event.next)
            if isinstance(event, PrefillProgress):
                read = event.done
            if isinstance(event, TurnFinished):
                break
        self.totals = self.totals.with_turn(event, read)
        if event.reason == "cancelled":
            raise Cancelled
        return tidied(split_answer(event.text, self.model.reasons)[1], cut=event.reason in ("length", "context"))

    # --- what came of it ------------------------------------------------------------------------------
    def _take(self, step: int, note: str) -> None:
        """Stores a note, shows it, and stores the answer so far with its citations."""
        self.notes[step] = note
        if self._bears_out(step):
            self._borne_out.add(step)
        store = self.services.store()
        store.surveys.keep_note(self.answer.id, step, note)
        if step < len(self.plan.parts) and not says_nothing(note):
            self._show(shown_notes(self.plan, self.notes, self._borne_out))

    def _show(self, text: str) -> None:
        job = self.job
        new = text[len(self.answer.text) :]
        citations = self._citations(text)
        self.answer = replace(self.answer, text=text, tokens=self._history(text, False), state="partial")
        report = self._report("") if self.totals.doubtful else None  # what may end it now leaves the doubt there
        self.answer = self.services.store().finish_answer(self.answer, citations, report)
        self.services.emit(TurnText(job.turn, job.conversation, self.answer.id, new))

    def _end(self, state: str) -> WorkspaceEvent:
        done = state == "complete"
        text = shown_notes(self.plan, self.notes, self._borne_out)
        if done:
            last = self.notes.get(self.plan.steps - 1, "") if self.plan.rounds else ""
            supported = self.plan.steps - 1 in self._borne_out
            text = (text + closing_text(self.plan, self.notes, last, supported)).rstrip()
        tokens, closing = self._history(text, done), text[len(self.answer.text) :]
        self.answer = replace(self.answer, text=text, tokens=tokens, state="complete" if done else "cancelled")
        report = self._report("stop" if done else "cancelled")
        stored = self.services.store().finish_answer(self.answer, self._citations(text), report)
        if closing:
            self.services.emit(TurnText(self.job.turn, self.job.conversation, stored.id, closing))
        return TurnDone(self.job.turn, self.job.conversation, stored)

    def _citations(self, text: str) -> tuple[StoredCitation, ...]:
        """Notes against the passages of their parts; every number of the survey is one passage."""
        numbered: dict[int, Passage] = {}
        for step, part in enumerate(self.plan.parts):
            if step in self.notes and not says_nothing(self.notes[step]):
                numbered.update(self._numbered(part))
        said = models_words(self.plan, self.notes, self._borne_out, text)
        return cite_answer(said, numbered, self.services.library(), question=self.plan.question)

    def _history(self, text: str, ended: bool) -> Tokens:
        """What later questions see of it: the end when all is too long. Numbers are left out: their passages are not
        in the context."""
        ids = list(self.model.chat.text_ids(without_markers(text)))[-self.model.context // HISTORY_SHARE :]
        return Tokens.prompt([*ids, self.model.end_of_turn] if ended else ids)

    def _report(self, reason: str) -> TurnReport:
        """Of all runs: one that was stopped before counts as well. All of it is in doubt where a part is."""
        tokens, times = self.totals.tokens, self.totals.times
        doubtful = len(self.answer.tokens) if self.totals.doubtful else 0
        return TurnReport(tokens, times, "survey", finish_reason=reason, model=self.model.name, doubtful=doubtful)

    def _phase(self) -> None:
        done = len(self.notes)
        taken = time.monotonic() - self._begun
        fresh = done - self._at_start
        left = taken / fresh * (self.plan.steps - done) if fresh else None
        phase = TurnPhase(self.job.turn, self.job.conversation, "surveying", done, self.plan.steps, left)
        self.services.emit(phase)

    @property
    def _state(self) -> ConversationId:
        return scratch_state("survey", self.answer.id)
