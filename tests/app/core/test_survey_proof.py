"""Entries of lists that only look as if the pages told them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.core.survey_proof import proven_entry
from assets import sample_pdf
from rag import Library, Passage
from rag.sentences import sentences


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    made = Library(tmp_path / "library")
    made.add(sample_pdf())
    yield made
    made.close()


def numbered(library: Library) -> dict[int, Passage]:
    return dict(enumerate(library.passages(library.documents()[0].id), 1))


def test_what_stands_on_a_page_is_kept_with_its_number(library: Library) -> None:
    passages = numbered(library)
    text = passages[6].text
    start, end = max(sentences(text), key=lambda span: span[1] - span[0])
    sentence = " ".join(text[start:end].split())
    kept = proven_entry(sentence, "List all rules.", passages, library)
    assert kept.startswith(sentence)
    assert kept.endswith("]")


def test_headings_are_no_entries_unless_they_are_asked_for(library: Library) -> None:
    passages = numbered(library)
    heading = next(p.heading for p in passages.values() if p.heading).split(" > ")[-1]
    assert proven_entry(heading, "List all rules.", passages, library) == ""
    assert proven_entry(f"6.7 {heading} [2]", "List all rules.", passages, library) == ""
    assert proven_entry(heading, "List all sections.", passages, library).startswith(f"{heading} [")


@pytest.mark.parametrize("entry", ["Guest-Guest", "Guest-Room-Guest (mandatory)", "guests/Rooms.txt"])
def test_made_up_names_are_no_entries(entry: str, library: Library) -> None:
    assert proven_entry(f"{entry} [1]", "List all fields.", numbered(library), library) == ""
