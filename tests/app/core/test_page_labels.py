"""Where page numbers come from: the model is shown none, the application writes those of its citations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rag.types import Document
from tests.app.core.test_turns import Desk
from tests.rag.pdf_files import pdf_bytes, with_outline

TOPICS = ("harbour", "orchard", "granite", "lantern", "meadow", "compass", "thimble", "glacier", "saffron", "pulley")
QUESTIONS = ("What is said of the saffron?", "And what of the pulley?", "Who keeps the lantern?", "Tell me of granite.")
MARKER = re.compile(r"\[(\d+)\]")


def sentence(topic: str) -> str:
    return f"The keeper of the {topic} counts every {topic} again in the first light of the morning."


@pytest.fixture
def desk(tmp_path: Path, chat: Any) -> Iterator[Desk]:
    made = Desk(tmp_path, chat)
    yield made
    made.close()


@pytest.fixture
def document(desk: Desk, tmp_path: Path) -> Document:
    """Ten pages labelled i to ix and 1, without a digit in their text."""
    pages = [[sentence(topic), f"No other {topic} is as old, and nobody remembers why."] for topic in TOPICS]
    path = tmp_path / "almanac.pdf"
    path.write_bytes(with_outline(pdf_bytes(pages), [("Beginnings", 0), ("Endings", 5)], roman_pages=9))
    made = desk.library.add(path)
    assert desk.library.page_label(made.id, 8) == "ix"
    return made


def asked(desk: Desk, document: Document, mode: str) -> list[str]:
    """The prompts of all questions, as text; each answers with a sentence and its passage."""
    c = desk.store.create(documents=[int(document.id)], mode=mode)  # type: ignore[arg-type]
    for question in QUESTIONS:
        desk.turns.ask(c.id, question)
        desk.end_of_turn()
    return [desk.engine.decode(submit.tokens.ids) for submit in desk.engine.submitted]


@pytest.mark.parametrize("mode", ["passages", "whole"])
def test_no_prompt_holds_a_page_number(desk: Desk, document: Document, mode: str) -> None:
    for prompt in asked(desk, document, mode):
        assert "saffron" in prompt
        markers = [int(number) for number in MARKER.findall(prompt)]
        assert max(markers) <= len(TOPICS), "passages are numbered as they come"
        rest = MARKER.sub(" ", prompt)
        assert not re.search(r"\d", rest), rest
        assert not re.search(r"\b(?:pages?|pp?\.|i|ii|iii|iv|v|vi|vii|viii|ix|x)(?:\b|\s)", rest, re.IGNORECASE), rest


def test_the_label_under_an_answer_is_the_library_s(desk: Desk, document: Document) -> None:
    """Whatever number the model writes, the label is that of the page on which the passage stands."""
    desk.engine.answer = [*desk.text_ids(f"{sentence('saffron')} [1] It is on page 77."), desk.end]
    c = desk.store.create(documents=[int(document.id)], mode="passages")
    desk.turns.ask(c.id, QUESTIONS[0])
    message = desk.end_of_turn().message
    cited = [citation for citation in message.citations if citation.ranges]
    assert cited
    for citation in cited:
        labels = [desk.library.page_label(document.id, part.page_index) for part in citation.ranges]
        assert list(citation.page_labels) == labels
    assert "ix" in {label for citation in cited for label in citation.page_labels}
    assert "77" not in {label for citation in message.citations for label in citation.page_labels}
