"""Where questions look: chapters, pages, selections and collections of a real document."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from app.core.errors import UserError
from app.core.inventory import catalogue_answer
from app.core.lookups import Scope
from app.core.scoping import Scopes, chapter_scope
from assets import sample_pdf
from rag import Library
from rag.types import DocumentId


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    made = Library(tmp_path / "library")
    made.add(sample_pdf())
    yield made
    made.close()


@pytest.fixture
def document(library: Library) -> int:
    return int(library.documents()[0].id)


def test_pages_in_the_question_limit_the_search(library: Library, document: int) -> None:
    searched = Scopes(lambda: library).of(None, "What is said on pages 2 to 3?", [document])
    assert searched.from_words
    (pages,) = searched.pages.values()
    inside = [p for p in library.passages(DocumentId(document)) if searched.has(p)]
    assert {r.page_index for p in inside for r in p.ranges} & set(pages)
    assert len(inside) < len(library.passages(DocumentId(document)))


@pytest.mark.parametrize(
    ("question", "english"),
    [
        ("Was steht auf Seite 2 bis 3?", "What is said on pages 2 to 3?"),
        ("¿Qué dice la página 2?", "What does page 2 say?"),
        ("Worum geht es in Kapitel 3?", "What is chapter 3 about?"),
    ],
)
def test_questions_in_other_languages_limit_it_too(
    library: Library, document: int, question: str, english: str
) -> None:
    searched = Scopes(lambda: library).of(None, question, [document])
    assert searched.is_part
    assert searched == Scopes(lambda: library).of(None, english, [document])


def test_a_question_without_pages_looks_everywhere(library: Library, document: int) -> None:
    searched = Scopes(lambda: library).of(None, "What is kept in the trash?", [document])
    assert (searched.documents, searched.is_part, searched.label) == ((document,), False, "")


def test_a_chapter_by_a_part_of_its_title_and_an_error_that_names_the_others(library: Library, document: int) -> None:
    scopes = Scopes(lambda: library)
    chapter = scopes.chapters(document)[1]
    assert scopes.by_chapter(document, chapter.title[:8]) == chapter_scope(document, chapter)
    with pytest.raises(UserError) as told:
        scopes.by_chapter(document, "Nowhere at all")
    assert chapter.title[:10] in told.value.why


def test_pages_that_are_not_there_are_told_with_those_that_are(library: Library, document: int) -> None:
    labels = Scopes(lambda: library).labels(document)
    with pytest.raises(UserError, match="no pages") as told:
        Scopes(lambda: library).by_pages(document, "900-901")
    assert labels[-1] in told.value.why


def test_several_ranges_are_one_scope(library: Library, document: int) -> None:
    scopes = Scopes(lambda: library)
    scope = scopes.by_pages(document, "5-6, i-ii")
    assert (scope.label, list(scope.pages)) == ("pages i–ii, 5–6", [0, 1, 7, 8])
    assert Scope.from_json(json.loads(json.dumps(asdict(scope)))) == scope
    assert (scopes.by_pages(document, "1,2").pages, scopes.by_pages(document, "2").label) == (range(3, 5), "page 2")
    asked = scopes.of(None, "What is said on pages i-ii and 5?", [document])
    assert (asked.label, list(asked.pages.values()), asked.from_words) == ("pages i–ii, 5", [(0, 1, 7)], True)
    for wrong in ("3-", "1 2", "1.2"):
        with pytest.raises(UserError, match="no pages"):
            scopes.by_pages(document, wrong)


def test_only_the_pages_of_the_ranges_are_found(library: Library, document: int) -> None:
    scope = Scopes(lambda: library).by_pages(document, "1, 5-6")
    hits = library.search("the", [DocumentId(document)], 50, vectors="never", pages={DocumentId(document): scope.pages})
    found = {part.page_index for hit in hits for part in hit.passage.ranges}
    assert {3, 7, 8} & found
    assert found <= {3, 7, 8}


def test_a_selection_takes_the_passages_it_touches(library: Library, document: int) -> None:
    passage = library.passages(DocumentId(document))[2]
    part = passage.ranges[0]
    scope = Scope("selection", document, part.page_index, part.page_index, part.char_start + 1, 5)
    searched = Scopes(lambda: library).of(scope, "What does it mean?", [document])
    assert passage in [p for p in library.passages(DocumentId(document)) if searched.has(p)]
    far = Scope("selection", document, part.page_index + 1, part.page_index + 1, part.char_start, 5)
    assert not Scopes(lambda: library).of(far, "What?", [document]).has(passage) or len(passage.ranges) > 1


def test_a_collection_is_searched_whoever_is_attached(library: Library, document: int) -> None:
    library.make_collection("Manuals")
    library.put_in("manuals", [DocumentId(document)])
    scope = Scope("Manuals", collection="Manuals")
    assert Scopes(lambda: library).of(scope, "What?", []).documents == (document,)


def test_a_page_that_is_not_there_is_told(library: Library, document: int) -> None:
    told = catalogue_answer("What is on page 999?", [document], library)
    assert told == "There is no page 999.\npagekeep-sample.pdf has 10 pages, i to 7."
    assert catalogue_answer("What is on page 9?", [document], library) is None
    assert catalogue_answer("What is on page 999?", [], library) is None, "no document, no claim"


def test_the_catalogue_answers_for_the_conversation_or_the_library(library: Library, document: int) -> None:
    name = library.document(DocumentId(document)).name
    told = catalogue_answer("How many pages does it have?", [document], library)
    assert told is not None
    assert name in told
    assert "10 pages" in told
    listed = catalogue_answer("Which chapters are there?", [document], library)
    assert listed is not None
    assert Scopes(lambda: library).chapters(document)[0].title in listed
    assert catalogue_answer("How many files are in my library?", [], library) is not None
    assert catalogue_answer("How many days is it kept in the trash?", [document], library) is None
