"""Real parts, small: a store in a temporary folder, the starter model's tokenizer and chat format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from app.core.conversations import ConversationStore
from app.core.segments import PromptFormat


class Chat(NamedTuple):
    format: PromptFormat
    end_ids: frozenset[int]
    decode: object


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ConversationStore]:
    made = ConversationStore(tmp_path / "data" / "conversations.db")
    yield made
    made.close()


@pytest.fixture(scope="session")
def chat(starter_model: Path) -> Chat:
    from engine.chat_format import ChatFormat
    from engine.gguf import GgufFile
    from engine.tokenizer import Tokenizer

    gguf = GgufFile.open(starter_model)
    tokenizer = Tokenizer.from_gguf(gguf)
    glue = ChatFormat.from_gguf(gguf, tokenizer)
    gguf.close()
    return Chat(PromptFormat(glue, tokenizer), tokenizer.eog_ids, tokenizer.decode)
