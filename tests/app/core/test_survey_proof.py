"""Entries of lists that only look as if the pages told them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.core.records import StoredCitation
from app.core.survey_proof import _told, proven_entry
from assets import sample_pdf
from rag import DocumentId, Library, Passage
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


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("All guests must pay a deposit of 40 euros for the key of a single room.", False),
        ("Guests pay a deposit of 40 euros.", True),
        ("deposit of 40 euros", True),
    ],
)
def test_what_is_reworded_is_told_in_the_words_of_the_page(entry: str, told: bool) -> None:
    text = "Some guests pay a deposit of 40 euros for the key. The others pay nothing at all, as members do."
    found = StoredCitation(3, 1, "a.pdf", (), (), "Some guests pay a deposit of 40 euros", "matched", 0, len(entry))
    passage = Passage(7, DocumentId(1), 0, text, "", ())
    said = _told(entry, found, {3: passage})
    assert said == (entry if told else "Some guests pay a deposit of 40 euros for the key.")


def test_entries_with_the_same_sentence_behind_them_are_one(library: Library) -> None:
    passages = numbered(library)
    text = passages[6].text
    start, end = max(sentences(text), key=lambda span: span[1] - span[0])
    sentence = " ".join(text[start:end].split())
    reworded = [f"Every reader knows that {sentence[0].lower()}{sentence[1:]}", f"Surely {sentence}"]
    kept = {proven_entry(entry, "List all rules.", passages, library) for entry in reworded}
    assert len(kept) == 1


def test_headings_are_no_entries_unless_they_are_asked_for(library: Library) -> None:
    passages = numbered(library)
    heading = next(p.heading for p in passages.values() if p.heading).split(" > ")[-1]
    assert proven_entry(heading, "List all rules.", passages, library) == ""
    assert proven_entry(f"6.7 {heading} [2]", "List all rules.", passages, library) == ""
    assert proven_entry(heading, "List all sections.", passages, library).startswith(f"{heading} [")


@pytest.mark.parametrize("entry", ["Guest-Guest", "Guest-Room-Guest (mandatory)", "guests/Rooms.txt"])
def test_made_up_names_are_no_entries(entry: str, library: Library) -> None:
    assert proven_entry(f"{entry} [1]", "List all fields.", numbered(library), library) == ""
