"""What goes into the context with a question: whole documents, passages found for it, or nothing.

Budgets are exact in tokens. Nothing is cut in silence: what does not fit is a UserError before it is sent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date as Date
from typing import TYPE_CHECKING, Protocol

from app.core.dates import DateStore
from app.core.documents import DocumentTexts
from app.core.openings import beginning, introduction, opening
from app.core.plans import ANSWER_ROOM, LoadedModel, Plan, Situation
from app.core.prompt import Addition, Composed, Context, WholeDocument, compose, found_text, history, nearest_text
from app.core.records import AttachedDocument, Conversation, UsedMode
from app.core.scoping import Scopes, Searched
from app.core.searches import found_lookup, placed_lookup, search_text
from app.core.settings import Settings
from app.core.survey_plan import PART_TOKENS
from app.core.unreadable import require_text
from engine.messages import ConversationId, Tokens
from rag.metadata import file_says
from rag.question_document import asks_about_document
from rag.question_kinds import wants_summary, wants_whole
from rag.question_length import says_length
from rag.question_sides import compared
from rag.types import DocumentId, Hit, Passage

if TYPE_CHECKING:
    from rag import Library

LONGEST_TOKEN = 12  # characters of text per token, more than any tokenizer reaches on prose
PASSAGE_SHARE = 14  # automatic budget: this part of the context; a small model is lost in more
FEWEST_PASSAGES = 2  # the automatic budget holds the best two, whatever their length, where the context has room
TWO_PASSAGES = 1000  # tokens, bound of two passages of rag.chunk.PASSAGE_WORDS with headings
MOST_PASSAGE_TOKENS = 3000


class Search(Protocol):
    """`Library.search` or `Shelves.search`."""

    def __call__(
        self, query: str, documents: list[DocumentId], top: int, *, pages: Mapping[DocumentId, Sequence[int]]
    ) -> Sequence[Hit]: ...


class Planner:
    """Composes questions; thread-safe. `library` and `dates` are asked for at first need, `search` finds passages."""

    def __init__(
        self,
        library: Callable[[], Library],
        search: Search,
        settings: Callable[[], Settings],
        dates: Callable[[], DateStore],
        today: Callable[[], Date] = Date.today,
    ) -> None:
        self._library = library
        self._dates = dates
        self._today = today
        self._search = search
        self._settings = settings
        self.texts = DocumentTexts(library)
        self.scopes = Scopes(library)

    def plan(self, situation: Situation, question: str, look_up: bool = True) -> Plan:
        """The next message. `look_up` False: passages are not searched, only bounded (for a price)."""
        context = Context.of(situation.messages, situation.end_ids, situation.head, situation.next_marker)
        draft = self._draft(situation, context, question)
        readable = self._readable(draft)
        searched = self.scopes.of(situation.conversation.scope, question, readable)
        if situation.conversation.mode == "survey" and searched.documents:
            about = self.texts.about_tokens(searched.documents, searched.pages)
            if compared(question):
                about = min(about, 2 * PART_TOKENS)
            return replace(draft.finish("survey"), elsewhere=about)
        draft = replace(draft, catalogue=self._catalogue(question, searched))
        if searched.label and not searched.from_words:
            return self._with_passages(draft, searched, look_up)
        documents = [document for document in readable if document not in context.whole]
        if not documents:
            return draft.finish("whole" if context.whole else "none")
        whole = self._whole(draft, documents)
        if whole:
            return draft.finish("whole", documents=whole)
        if not searched.from_words:
            searched = replace(searched, documents=tuple(documents))
        return self._with_passages(draft, searched, look_up)

    def require_text(self, situation: Situation, question: str) -> None:
        """Raises NothingReadable where neither the context nor what the question is about holds any text."""
        context = Context.of(situation.messages, situation.end_ids)
        if not context.markers:
            readable = sorted(d for d in situation.conversation.document_ids if self.texts.readable(d))
            require_text(self.texts, self.scopes.of(situation.conversation.scope, question, readable))

    def found(self, query: str, searched: Searched) -> list[Hit]:
        """Hits inside what is searched, best first."""
        documents = [DocumentId(d) for d in searched.documents]
        hits = self._search(query, documents, self._settings().passages, pages=searched.pages)
        return [hit for hit in hits if searched.has(hit.passage)]

    def bare(self, situation: Situation, question: str) -> Plan:
        """The question alone, nothing of the documents."""
        context = Context.of(situation.messages, situation.end_ids)
        return self._draft(situation, context, question).finish("none")

    def _draft(self, situation: Situation, context: Context, question: str) -> _Draft:
        def date(documents: Sequence[WholeDocument]) -> Date | None:
            if context.used or context.head is not None:
                return situation.conversation.date
            kept = self._dates().of_document(documents[0].id) if documents else situation.conversation.date
            return kept or self._today()

        return _Draft(situation, context, history(situation.messages), question, self._settings(), date)

    def shared_prefix(self, documents: Sequence[int], model: LoadedModel) -> Tokens | None:
        """What every first question on just these documents begins with; None when automatic mode would not read them
        whole with this model, or when none is there. The first one's date is stored: it stays what it is.
        """
        attached = tuple(AttachedDocument(document, 0.0) for document in documents)
        conversation = Conversation(ConversationId(""), "", 0.0, 0.0, documents=attached)
        plan = self.plan(Situation(conversation, (), model, frozenset()), "", look_up=False)
        if not plan.addition.documents:
            return None
        self._dates().keep(plan.date, (plan.addition.documents[0].id,))
        return Tokens.prompt(plan.composed.tokens.ids[: plan.composed.placement.shared_tokens])

    def _catalogue(self, question: str, searched: Searched) -> str:
        """What the files say of themselves, for a question about that: their pages need not say it."""
        if not asks_about_document(question):
            return ""
        return file_says([self.texts.document(document) for document in searched.documents])

    def _readable(self, draft: _Draft) -> list[int]:
        """Attached documents, in shelf order."""
        return sorted(d for d in draft.situation.conversation.document_ids if self.texts.readable(d))

    def _whole(self, draft: _Draft, documents: Sequence[int]) -> tuple[WholeDocument, ...]:
        """The documents when they are to be read whole; () when passages are to be looked up."""
        mode = draft.situation.conversation.mode
        if mode == "passages" or (mode == "auto" and self._hopeless(draft, documents)):
            return ()
        whole = tuple(self.texts.whole(document) for document in documents)
        if mode == "whole" or draft.fits(whole):
            return whole
        return ()

    def _hopeless(self, draft: _Draft, documents: Sequence[int]) -> bool:
        """Too long by far (no need to count), or its passages are in the context already."""
        if any(passage in draft.context.markers for d in documents for passage in self.texts.passage_ids(d)):
            return True
        characters = sum(self.texts.characters(document) for document in documents)
        return characters > draft.room * LONGEST_TOKEN

    def _with_passages(self, draft: _Draft, searched: Searched, look_up: bool) -> Plan:
        part = self._whole_part(draft, searched)
        if part:
            plan = draft.finish("passages", passages=part)
            return replace(plan, lookup=placed_lookup(plan, searched, self._library()))
        if not look_up:
            characters = sum(self.texts.characters(document) for document in searched.documents)
            return draft.finish("passages", estimated=min(draft.passage_budget(TWO_PASSAGES), characters // 2))
        started = time.perf_counter()
        query = search_text(draft.question, draft.situation.messages)
        hits = self._hits(draft, query, searched)
        least = draft.cost([hit.passage for hit in hits[:FEWEST_PASSAGES]])
        budget = draft.passage_budget(least)
        if draft.situation.messages and not draft.settings.passage_tokens:
            budget = max(budget, least)  # a full conversation is told and offered ways out, not starved of passages
        passages = draft.fitting((hit.passage for hit in hits), budget)
        elapsed = (time.perf_counter() - started) * 1000
        plan = draft.finish("passages", passages=passages, query=query, retrieve_ms=elapsed)
        lookup = found_lookup(plan, query, searched, hits)
        return replace(plan, lookup=replace(lookup, budget=budget, full=budget < draft.wanted_passages(least)))

    def _hits(self, draft: _Draft, query: str, searched: Searched) -> list[Hit]:
        """Best first; the documents' first passages before all others where the question is about them as such, or what
        they are about: no word of it need stand where that is said."""
        found, library, most = self.found(query, searched), self._library(), draft.settings.passages
        what_about = wants_summary(draft.question)
        if not what_about and not asks_about_document(draft.question):
            return found or beginning(self.texts, library, searched, most)
        first = (introduction if what_about else opening)(self.texts, library, searched, most)
        known = {hit.passage.id for hit in first}
        return [*first, *(hit for hit in found if hit.passage.id not in known)]

    def _whole_part(self, draft: _Draft, searched: Searched) -> tuple[Passage, ...]:
        """All of a part that is to be read as a whole: a selection, or what the reader chose and there is room for."""
        wants_all = searched.selection is not None or not searched.from_words or wants_whole(draft.question)
        if not searched.is_part or not wants_all or draft.situation.conversation.mode == "passages":
            return ()
        inside = [p for d in searched.documents for p in self.texts.whole(d).passages if searched.has(p)]
        room = draft.room - len(draft.compose(draft.addition()).tokens)
        if sum(len(passage.text) for passage in inside) > draft.room * LONGEST_TOKEN or draft.cost(inside) > room:
            return ()
        return tuple(inside)


@dataclass(frozen=True)
class _Draft:
    """`date`: what the template shows in a message with these documents."""

    situation: Situation
    context: Context
    history: Tokens
    question: str
    settings: Settings
    date: Callable[[Sequence[WholeDocument]], Date | None]
    catalogue: str = ""

    @property
    def room(self) -> int:
        """Tokens for this message when answers and some later questions shall still fit."""
        limit = self.situation.model.context
        return limit - len(self.history) - min(self.settings.answer_reserve, limit // 4)

    @property
    def instructions(self) -> str | None:
        """What has to be placed: the first ones, or changed ones."""
        wanted = self.situation.conversation.instructions
        return None if wanted == self.context.instructions else wanted

    def addition(
        self, documents: Sequence[WholeDocument] = (), passages: Sequence[Passage] = (), query: str = ""
    ) -> Addition:
        """`query`: what the passages were looked up by; "" where they were not."""
        conversation = self.situation.conversation
        grounded = bool(conversation.documents or conversation.scope)
        placed = tuple(documents), tuple(passages), self.instructions
        brief = bool(passages) and not self.catalogue and not says_length(self.question)
        nearest = nearest_text(query, passages) if brief and self.situation.model.chat.small else ""
        return Addition(self.question, *placed, grounded, brief, nearest, self.catalogue)

    def compose(self, addition: Addition) -> Composed:
        chat = self.situation.model.chat.dated(self.date(addition.documents))
        return compose(chat, addition, self.context)

    def fits(self, documents: Sequence[WholeDocument]) -> bool:
        size = len(self.compose(self.addition(documents)).tokens)
        limit = self.settings.whole_tokens
        return size <= self.room and (not limit or size <= limit)

    def passage_budget(self, least: int) -> int:
        """Tokens for passages: as chosen, or automatic and then not under `least`; never more than there is room."""
        bare = len(self.compose(self.addition()).tokens)
        return max(0, min(self.wanted_passages(least), self.room - bare))

    def wanted_passages(self, least: int) -> int:
        """The same where there is any room."""
        automatic = max(least, min(MOST_PASSAGE_TOKENS, self.situation.model.context // PASSAGE_SHARE))
        return self.settings.passage_tokens or automatic

    def fitting(self, passages: Iterable[Passage], budget: int) -> tuple[Passage, ...]:
        """The best passages that fit, in reading order; such as are in the context already cost nothing."""
        chosen: list[Passage] = []
        for passage in passages:
            wanted = sorted((*chosen, passage), key=lambda p: (p.document_id, p.index))
            if self.cost(wanted) <= budget:
                chosen = wanted
        return tuple(chosen)

    def cost(self, passages: Sequence[Passage]) -> int:
        """Tokens that these passages add to the message."""
        text = found_text(passages, self.context, self.context.next_marker)
        return len(self.situation.model.chat.text_ids(text)) if text else 0

    def finish(
        self,
        mode: UsedMode,
        documents: Sequence[WholeDocument] = (),
        passages: Sequence[Passage] = (),
        query: str = "",
        retrieve_ms: float = 0.0,
        estimated: int = 0,
    ) -> Plan:
        addition = self.addition(documents, passages, query)
        limit = self.situation.model.context
        composed = self.compose(addition)
        if addition.nearest and len(composed.tokens) > self.room:  # it is in the passages, so nothing is lost
            composed = self.compose(addition := replace(addition, nearest=""))
        date = self.date(documents)
        room = min(ANSWER_ROOM, self.settings.sampling.max_tokens)  # more than it may have no answer needs
        return Plan(
            self.context, self.history, composed, addition, mode, limit, retrieve_ms, estimated,
            date=date, answer_room=room,
        )  # fmt: skip
