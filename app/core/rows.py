"""Rows of conversations.db to records and back. Token ids are little-endian int32, roles are bytes."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import date as Date
from typing import Any

import numpy as np

from app.core.lookups import Lookup, Scope
from app.core.records import (
    AttachedDocument,
    Conversation,
    Message,
    MessageId,
    Placement,
    StoredCitation,
    TurnReport,
)
from engine.messages import ConversationId, Tokens


def conversation_from_row(row: dict[str, Any], documents: tuple[AttachedDocument, ...]) -> Conversation:
    return Conversation(
        id=ConversationId(row["id"]),
        title=row["title"],
        created=row["created"],
        updated=row["updated"],
        mode=row["mode"],
        instructions=row["instructions"],
        trashed=row["trashed"],
        draft=row["draft"],
        title_fixed=bool(row["title_fixed"]),
        documents=documents,
        scope=Scope.from_json(json.loads(row["scope"])) if row["scope"] else None,
        date=Date.fromisoformat(row["date"]) if row["date"] else None,
    )


def message_from_row(row: dict[str, Any]) -> Message:
    report, lookup = row["report"], row["lookup"]
    return Message(
        id=MessageId(row["id"]),
        conversation=ConversationId(row["conversation"]),
        role=row["role"],
        text=row["text"],
        tokens=tokens_from_blobs(row["ids"], row["roles"]),
        created=row["created"],
        state=row["state"],
        citations=tuple(StoredCitation.from_json(item) for item in json.loads(row["citations"])),
        report=None if report is None else TurnReport.from_json(json.loads(report)),
        placement=Placement.from_json(json.loads(row["placement"])),
        reasoning=row["reasoning"],
        thought_ms=row["thought_ms"],
        in_context=row["cut"] is None,
        lookup=None if lookup is None else Lookup.from_json(json.loads(lookup)),
    )


def message_values(message: Message) -> dict[str, Any]:
    """The columns of a message without its id."""
    return {
        "conversation": message.conversation,
        "role": message.role,
        "text": message.text,
        **token_blobs(message.tokens),
        "created": message.created,
        "state": message.state,
        "citations": json.dumps([asdict(citation) for citation in message.citations], ensure_ascii=False),
        "report": None if message.report is None else json.dumps(message.report.to_json()),
        "placement": placement_text(message.placement),
        "reasoning": message.reasoning,
        "thought_ms": message.thought_ms,
        "lookup": None if message.lookup is None else json.dumps(asdict(message.lookup), ensure_ascii=False),
    }


def placement_text(placement: Placement) -> str:
    return json.dumps(asdict(placement), ensure_ascii=False)


def token_blobs(tokens: Tokens) -> dict[str, bytes]:
    ids = np.asarray(tokens.ids, dtype="<i4").tobytes()
    return {"ids": ids, "roles": np.asarray(tokens.roles, dtype=np.uint8).tobytes()}


def tokens_from_blobs(ids: bytes, roles: bytes) -> Tokens:
    return Tokens(tuple(np.frombuffer(ids, dtype="<i4").tolist()), tuple(np.frombuffer(roles, dtype=np.uint8).tolist()))


def scope_text(scope: Scope | None) -> str:
    return json.dumps(asdict(scope), ensure_ascii=False) if scope is not None else ""
