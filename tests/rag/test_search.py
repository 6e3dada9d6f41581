from pathlib import Path

import pytest

from assets import sample_pdf
from rag import Document, Library
from rag.expressions import match_expression, part_expression
from rag.retrieve import _with_neighbours
from rag.scope import named_chapter
from rag.window_vectors import WindowVectors
from rag.words import Searched, word_scores
from tests.rag import pdf_files
from tests.rag.conftest import WordBag


@pytest.mark.parametrize(
    ("question", "label", "words"),
    [
        ("How long is a deleted conversation kept in the trash?", "3", "kept in the trash for 30 days"),
        ("What is the deposit for guests?", "1", "deposit of 20 euros"),
        ("When is the desk open on Saturday?", "2", "between 10:00 and 18:30"),
        ("How much does a lost key cost?", "7", "A lost key costs 12 euros"),
        ("Who pays half of the fees?", "5", "social pass pay half of each fee"),
    ],
)
def test_questions_about_the_sample(library: Library, sample: Document, question: str, label: str, words: str) -> None:
    best = library.search(question)[0]
    assert best.page_label == label
    assert words in " ".join(best.text.split())
    assert best.passage.document_id == sample.id
    assert best.span in best.passage.ranges


def test_a_word_broken_at_the_line_end_is_found(library: Library, sample: Document) -> None:
    assert library.search("second computer")[0].page_index == 4


def test_words_are_stemmed_and_accents_left_out(library: Library, tmp_path: Path) -> None:
    lines = [["The librarians catalogued every café of the harbour.", "Nothing else."], ["Other words."]]
    document = library.add(pdf_files.write_pdf(tmp_path / "a.pdf", lines))
    for query in ("cataloguing", "cafes", "librarian"):
        assert library.search(query, [document.id])[0].page_index == 0


def test_an_identifier_is_found_as_a_whole(library: Library, tmp_path: Path) -> None:
    pages = [["The variable ROOT is set. GAIN is a word. CMD too. DEB is a system."] * 3, ["Set DEB_GAIN_ROOT_CMD."]]
    document = library.add(pdf_files.write_pdf(tmp_path / "a.pdf", pages))
    assert library.search("DEB_GAIN_ROOT_CMD", [document.id])[0].page_index == 1
    assert len(library.search("DEB_GAIN_ROOT_CMD")) == 1


def test_the_words_that_a_page_has_are_counted(library: Library, tmp_path: Path) -> None:
    pages = [
        ["A zither, two zithers."],
        ["The chair's leg and the broken chairs."],
        ["A leg. Set DEB_GAIN for a zither."],
    ]
    document = library.add(pdf_files.write_pdf(tmp_path / "a.pdf", pages))

    def counted(query: str, searched: range) -> dict[int, float]:
        found = word_scores(library._shelf.db, query, Searched((document,), {document.id: searched}), 1.0).terms
        return {page: number for (_, page), number in found.items()}

    assert counted("a zither, a zither", range(3)) == {}
    assert counted("Which zither has the broken leg of a chair?", range(3)) == {1: 3.0, 2: 2.0}
    assert counted("zither DEB_GAIN", range(3)) == {2: 2.0}
    assert counted("broken legs", range(2, 3)) == {}


def test_contents_pages_come_after_the_chapters_they_list(library: Library, sample: Document) -> None:
    pages = [hit.page_index for hit in library.search("Documents and conversations")]
    assert pages[0] == 5
    assert 1 not in pages[:2]


def test_scope(library: Library, sample: Document, tmp_path: Path) -> None:
    other = library.add(pdf_files.write_pdf(tmp_path / "a.pdf", [["A deposit is paid at the desk."]]))
    assert {hit.document_id for hit in library.search("deposit")} == {sample.id, other.id}
    assert {hit.document_id for hit in library.search("deposit", [other.id])} == {other.id}
    assert library.search("deposit", []) == []


@pytest.mark.parametrize(
    "query", ["", "   ", '"', "AND OR NOT", "a* NEAR(b", 'it\'s "quoted" (x) ^y {z}', "the of", "-"]
)
def test_no_query_breaks_the_full_text_syntax(library: Library, sample: Document, query: str) -> None:
    assert isinstance(library.search(query), list)


def test_expressions() -> None:
    assert match_expression("What is the soversion of libz.so.1?") == '"soversion" OR "libz.so.1"'
    assert match_expression("to be or not to be") == '"to" OR "be" OR "or" OR "not"'
    assert part_expression("自動的に x") == '"自動的" OR "動的に"'
    assert part_expression("plain") == ""


def test_top(library: Library, sample: Document) -> None:
    hits = library.search("the desk is open for a reader", top=3)
    assert len(hits) == 3
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert len({hit.page_index for hit in hits}) == 3


def test_vectors_count_when_there_is_an_embedder(tmp_path: Path) -> None:
    bag = WordBag()
    library = Library(tmp_path / "library", bag)
    document = library.add(sample_pdf())
    with_vectors = library.search("deposit of 20 euros", [document.id])[0]
    without = library.search("deposit of 20 euros", [document.id], vectors="never")[0]
    assert with_vectors.why["vectors"] > 0.1
    assert without.why["vectors"] == 0.0
    assert without.page_index == 3
    # Stop words alone say nothing to the word index, but the vectors know them.
    assert library.search("it who are at their", [document.id])[0].why["vectors"] > 0.0
    library.close()


def test_an_embedder_that_is_not_loaded_is_not_waited_for(tmp_path: Path) -> None:
    bag = WordBag()
    library = Library(tmp_path / "library", bag)
    library.add(sample_pdf())
    before = bag.texts
    bag.loaded = False
    assert library.search("deposit", vectors="if_loaded")[0].why["vectors"] == 0.0
    assert bag.texts == before
    assert library.search("deposit")[0].why["vectors"] > 0.0
    library.close()


def test_japanese_inside_a_sentence_is_found(library: Library, tmp_path: Path) -> None:
    pages = [
        ["この文書は図書館の机の使い方を説明する。"],
        ["削除された会話は三十日間ごみ箱に保存される。"],
        ["料金は窓口で支払う。"],
    ]
    document = library.add(pdf_files.write_pdf(tmp_path / "ja.pdf", pages))
    assert library.page_text(document.id, 1) == pages[1][0]
    assert library.search("会話はいつまでごみ箱に保存されますか")[0].page_index == 1
    assert library.search("支払う")[0].page_index == 2


def test_only_some_pages_are_searched(tmp_path: Path) -> None:
    library = Library(tmp_path / "library", WordBag())
    document = library.add(sample_pdf())
    everywhere = {hit.page_index for hit in library.search("deposit desk reader", top=20)}
    assert len(everywhere) > 3
    found = library.search("deposit desk reader", top=20, pages={document.id: range(4, 7)})
    assert {hit.page_index for hit in found} == everywhere & {4, 5, 6}
    chapter = named_chapter("chapter 3", library.chapters(document.id))
    assert chapter is not None
    kept = library.search("What is the deposit for guests?", pages={document.id: chapter.pages})
    assert {hit.page_index for hit in kept} <= set(chapter.pages)
    library.close()


def test_documents_without_vectors_are_not_put_last(tmp_path: Path) -> None:
    words_only = Library(tmp_path / "library")
    fresh = words_only.add(sample_pdf())
    words_only.close()
    library = Library(tmp_path / "library", WordBag())
    pages = [[f"Sheet {n} is about ships and the sea and what is on deck at night."] * 9 for n in range(40)]
    library.add(pdf_files.write_pdf(tmp_path / "ships.pdf", pages))
    best = library.search("What is the deposit for guests on a ship?")[0]
    assert not library.document(fresh.id).embedded
    assert (best.document_id, best.page_label) == (fresh.id, "1")
    library.close()


def test_the_heading_is_part_of_the_vector() -> None:
    bag = WordBag()
    plain, headed, same = WindowVectors(bag).of(
        [("rust forms", ""), ("rust forms", "Care of anchors"), ("rust forms", "rust forms")]
    )
    wanted = bag.embed(["anchors"])[0]
    assert headed @ wanted > plain @ wanted + 0.1
    assert plain @ plain == pytest.approx(1)
    assert headed @ headed == pytest.approx(1)
    assert same == pytest.approx(plain, abs=1e-6)


def test_a_page_beside_a_good_one_gains() -> None:
    scores = {(1, 4): 2.0, (1, 5): 0.0, (1, 9): 0.0, (2, 5): 0.0}
    shared = _with_neighbours(scores, 0.1)
    assert shared[1, 4] > shared[1, 5] > shared[1, 9] == shared[2, 5]
