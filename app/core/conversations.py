"""ConversationStore: conversations and messages with their text and exact token ids. This is the truth.

The KV store is a cache of what is here. Everything is written before it is reported; a partial answer is
written while it streams, so that after a crash text and ids agree and the answer can go on.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.core import cuts, leases, queries
from app.core.cut_store import CutStore
from app.core.database import MigratedDatabase
from app.core.dates import DateStore
from app.core.doubt_store import DoubtStore
from app.core.errors import UserError
from app.core.lookups import Lookup, Scope
from app.core.naming import check_free, conversation_called, fork_title
from app.core.operations import OperationStore
from app.core.records import (
    Conversation,
    Message,
    MessageId,
    MessageRole,
    MessageState,
    Mode,
    Placement,
    SearchHit,
    StoredCitation,
    TurnReport,
)
from app.core.rows import (
    conversation_from_row,
    message_from_row,
    message_values,
    placement_text,
    scope_text,
    token_blobs,
)
from app.core.schema import MIGRATIONS
from app.core.survey_store import SurveyStore
from app.core.titles import UNTITLED, title_from_question
from engine.messages import ConversationId, Tokens

SEARCH_LIMIT = 100


class ConversationStore:
    """Usable from every thread and from several processes. Methods raise UserError for an unknown id.

    Attributes:
        cuts: what leaves the context or the conversation, and how it comes back.
        dates: what templates show as today's date; operations: changes of a history that no turn has told of yet.
    """

    def __init__(self, path: Path) -> None:
        """Opens or creates `path`. Raises UserError when it is newer than this version or damaged."""
        self._database = MigratedDatabase(path, MIGRATIONS, "The conversations")
        self.surveys = SurveyStore(self._database)
        self.cuts = CutStore(self._database)
        self.dates = DateStore(self._database)
        self.doubts = DoubtStore(self._database)
        self.operations = OperationStore(self._database)

    def close(self) -> None:
        self._database.close()

    def changes_elsewhere(self) -> int:
        return self._database.changes_elsewhere()

    def transaction(self) -> AbstractContextManager[object]:
        """Several changes, all or none of them."""
        return self._database.transaction()

    def trial(self) -> AbstractContextManager[object]:
        """Changes that are all taken back at the end: to see how things would stand."""
        return self._database.trial()

    # --- conversations ------------------------------------------------------------------------------
    def create(
        self, title: str = "", documents: Sequence[int] = (), mode: Mode = "auto", instructions: str = ""
    ) -> Conversation:
        """A new conversation at the top of the list; without a title it is named by its first question."""
        now = time.time()
        identifier = ConversationId(uuid.uuid4().hex)
        row = {"id": identifier, "title": title or UNTITLED, "title_fixed": int(bool(title)), "created": now}
        row["updated"] = now
        with self._database.transaction() as db:
            db.table("conversations").insert({**row, "mode": mode, "instructions": instructions}, pk="id")
            for document in documents:
                queries.attach(db, identifier, document)
        return self.get(identifier)

    def get(self, conversation: ConversationId) -> Conversation:
        with self._database.reading() as db:
            return queries.conversation(db, conversation)

    def list(self, trashed: bool = False) -> tuple[Conversation, ...]:
        """Most recently used first; the trash instead when `trashed`."""
        test = "IS NOT NULL" if trashed else "IS NULL"
        with self._database.reading() as db:
            rows = list(db.table("conversations").rows_where(f"trashed {test}", order_by="updated DESC, rowid DESC"))
            return tuple(conversation_from_row(row, queries.documents(db, row["id"])) for row in rows)

    def shelves(self) -> tuple[tuple[int, ...], ...]:
        with self._database.reading() as db:
            return queries.shelves(db)

    def find(self, title: str) -> Conversation | None:
        """The conversation, not in the trash, of that title or id. Raises UserError where it names several."""
        return conversation_called(self.list(), title)

    def named(self, title: str) -> tuple[Conversation, bool]:
        """What `find` finds, or a new one of that title, and whether it is new: two processes make one together."""
        with self._database.transaction():
            found = self.find(title)
            return (self.create(title), True) if found is None else (found, False)

    def rename(self, conversation: ConversationId, title: str) -> Conversation:
        """Raises UserError where another conversation has that title."""
        title = " ".join(title.split())
        if not title:
            raise UserError("A conversation needs a name.", "The name was empty.", "Type at least one letter.")
        with self._database.transaction():
            check_free((c for c in self.list() if c.id != conversation), title)
            return self._change(conversation, title=title, title_fixed=1)

    def set_mode(self, conversation: ConversationId, mode: Mode) -> Conversation:
        return self._change(conversation, mode=mode)

    def set_instructions(self, conversation: ConversationId, instructions: str) -> Conversation:
        return self._change(conversation, instructions=instructions.strip())

    def set_scope(self, conversation: ConversationId, scope: Scope | None) -> Conversation:
        return self._change(conversation, scope=scope_text(scope))

    def set_draft(self, conversation: ConversationId, draft: str) -> Conversation:
        return self._change(conversation, draft=draft)

    def trash(self, conversation: ConversationId) -> Conversation:
        return self._change(conversation, trashed=time.time())

    def restore(self, conversation: ConversationId) -> Conversation:
        return self._change(conversation, trashed=None)

    def purge(self, conversation: ConversationId) -> None:
        """Deletes for good; only what is in the trash, so that undo always had its chance."""
        with self._database.transaction() as db:
            if queries.conversation(db, conversation).trashed is None:
                raise UserError(
                    "Only the trash can be emptied.", "The conversation is still in use.", "Delete it first."
                )
            db.table("conversations").delete(conversation)

    def attach(self, conversation: ConversationId, document: int) -> Conversation:
        """At the end of the conversation's documents; attaching twice changes nothing."""
        with self._database.transaction() as db:
            queries.conversation(db, conversation)
            queries.attach(db, conversation, document)
        return self.get(conversation)

    def detach(self, conversation: ConversationId, document: int) -> Conversation:
        where = "conversation = ? AND document = ?"
        with self._database.transaction() as db:
            db.table("conversation_documents").delete_where(where, [conversation, document])
            scope = queries.conversation(db, conversation).scope
            if scope is not None and scope.document_id == document:
                db.table("conversations").update(conversation, {"scope": ""})
        return self.get(conversation)

    def using(self, document: int) -> tuple[Conversation, ...]:
        """Conversations that a document is attached to."""
        with self._database.reading() as db:
            rows = list(db.table("conversation_documents").rows_where("document = ?", [document]))
            return tuple(queries.conversation(db, row["conversation"]) for row in rows)

    def fork(self, conversation: ConversationId, title: str = "", last: MessageId | None = None) -> Conversation:
        """A copy with a history of its own, up to the message `last`; answers that were put aside stay behind. Raises
        UserError where the title is taken."""
        with self._database.transaction() as db:
            source = queries.conversation(db, conversation)
            if title:
                check_free(self.list(), title)
            title = title or fork_title(self.list(), source.title)
            copy = self.create(title, source.document_ids, source.mode, source.instructions)
            queries.copy_messages(db, conversation, copy.id, last)
        return copy

    # --- messages -----------------------------------------------------------------------------------
    def messages(self, conversation: ConversationId) -> tuple[Message, ...]:
        """In order; answers that were replaced by regenerating are left out."""
        where = "conversation = ? AND superseded IS NULL"
        with self._database.reading() as db:
            rows = db.table("messages").rows_where(where, [conversation], order_by="id")
            return tuple(message_from_row(row) for row in rows)

    def message(self, message: MessageId) -> Message:
        with self._database.reading() as db:
            return queries.message(db, message)

    def append(
        self,
        conversation: ConversationId,
        role: MessageRole,
        text: str,
        tokens: Tokens,
        state: MessageState = "complete",
        placement: Placement | None = None,
        lookup: Lookup | None = None,
    ) -> Message:
        """Stores a message at the end. The first question names a conversation that has no name yet."""
        new = Message(MessageId(0), conversation, role, text, tokens, time.time(), state)
        new = replace(new, placement=placement or Placement(), lookup=lookup)
        with self._database.transaction() as db:
            title = queries.conversation(db, conversation)
            identifier = db.table("messages").insert(message_values(new), pk="id").last_pk
            changes: dict[str, Any] = {"updated": new.created}
            if role == "user" and title.title == UNTITLED and not title.title_fixed:
                changes["title"] = title_from_question(text)
            db.table("conversations").update(conversation, changes)
        return replace(new, id=MessageId(int(str(identifier))))

    def update_answer(
        self,
        message: MessageId,
        text: str,
        tokens: Tokens,
        state: MessageState,
        reasoning: str = "",
        thought_ms: float = 0.0,
        computed: int = 0,
    ) -> None:
        """The answer so far: text, ids and what was computed of the conversation, in one transaction."""
        values = {"text": text, **token_blobs(tokens), "state": state, "reasoning": reasoning, "thought_ms": thought_ms}
        with self._database.transaction() as db:
            db.table("messages").update(message, values)
            cuts.note_computed(db, message, computed)

    def finish_answer(
        self, message: Message, citations: Sequence[StoredCitation], report: TurnReport | None
    ) -> Message:
        """Stores the final answer with its citations and report; returns it as stored."""
        done = replace(message, citations=tuple(citations), report=report)
        with self._database.transaction() as db:
            db.table("messages").update(message.id, message_values(done))
            db.table("conversations").update(message.conversation, {"updated": time.time()})
        return done

    def set_tokens(self, tokens: Sequence[tuple[MessageId, Tokens, Placement]]) -> None:
        """New ids for old texts, after a change to a model with another tokenizer."""
        with self._database.transaction() as db:
            for message, ids, placement in tokens:
                db.table("messages").update(message, {**token_blobs(ids), "placement": placement_text(placement)})

    def superseded_count(self, conversation: ConversationId) -> int:
        with self._database.reading() as db:
            return int(db.table("messages").count_where("conversation = ? AND superseded IS NOT NULL", [conversation]))

    # --- what the engine computed -------------------------------------------------------------------
    def computed(self, conversation: ConversationId) -> tuple[str, int]:
        """(tokenizer identity of the stored ids, leading tokens that had KV when the last turn ended)."""
        with self._database.reading() as db:
            row = db.table("conversations").get(conversation)
            return row["tokenizer"], row["computed"]

    def set_computed(self, conversation: ConversationId, tokenizer: str, computed: int) -> None:
        with self._database.transaction() as db:
            db.table("conversations").update(conversation, {"tokenizer": tokenizer, "computed": computed})

    # --- search -------------------------------------------------------------------------------------
    def search(self, text: str, limit: int = SEARCH_LIMIT) -> tuple[SearchHit, ...]:
        """Conversations with all words of `text` in title or a message, the last a prefix. Titles first."""
        with self._database.reading() as db:
            return queries.search(db, text, limit)

    # --- lease --------------------------------------------------------------------------------------
    @contextmanager
    def lease(self, conversation: ConversationId) -> Iterator[None]:
        """This process continues the conversation. Raises UserError while another living process does."""
        leases.take(self._database, conversation)
        try:
            yield
        finally:
            leases.give_back(self._database, conversation)

    def leased_by(self, conversation: ConversationId) -> int | None:
        """Process id of the living process that continues the conversation now, or None."""
        return leases.holder(self._database, conversation)

    def _change(self, conversation: ConversationId, **values: Any) -> Conversation:
        with self._database.transaction() as db:
            queries.conversation(db, conversation)
            db.table("conversations").update(conversation, values)
            return queries.conversation(db, conversation)
