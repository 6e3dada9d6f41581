from itertools import pairwise

from rag.chunk import PASSAGE_WORDS, Chunk, PageText, chunks
from rag.layout import RunningLines
from rag.sentences import count_words
from rag.types import Outline
from tests.rag.pdf_files import book

SENTENCE = "The harbour lantern burns over the ledger and the compass until the morning ferry comes in. "


def cut(pages: list[str], outline: list[Outline] | None = None) -> list[Chunk]:
    running = RunningLines()
    for number, text in enumerate(pages):
        running.add(number, text)
    return list(chunks((PageText(n, text) for n, text in enumerate(pages)), outline or [], running))


def test_passages_are_of_the_wanted_size_and_even() -> None:
    sizes = [count_words(chunk.text) for chunk in cut([SENTENCE * 41])]
    assert len(sizes) == 3
    assert max(sizes) <= PASSAGE_WORDS + 16
    assert max(sizes) - min(sizes) <= 2 * 16


def test_pieces_say_where_the_text_stands() -> None:
    pages = ["\n".join(lines) for lines in book(5)]
    for chunk in cut(pages):
        assert chunk.text == "\n".join(pages[p.page_index][p.start : p.start + p.count] for p in chunk.pieces)


def test_windows_cover_the_passage_with_one_sentence_of_overlap() -> None:
    (chunk,) = cut([" ".join(f"Sentence number {n} of this page says a little about harbours." for n in range(20))])
    windows = [chunk.text[w.start : w.start + w.count] for w in chunk.windows]
    assert len(windows) > 3
    assert windows[0].startswith("Sentence number 0")
    assert windows[-1].endswith("harbours.")
    for before, after in pairwise(windows):
        assert before.endswith(after[: after.index(".") + 1])
    assert all(40 <= count_words(window) <= 70 for window in windows[:-1])


def test_a_passage_does_not_cross_a_heading() -> None:
    page = "Opening\n" + SENTENCE * 5 + "\n1.1 The trash\n" + SENTENCE * 5
    outline = [Outline("Opening", 0, 0), Outline("1.1 The trash", 0, 1)]
    first, second = cut([page], outline)
    assert "trash" not in first.text
    assert second.text.startswith("1.1 The trash")
    assert (first.heading, second.heading) == ("Opening", "Opening > 1.1 The trash")


def test_headings_last_until_the_next_of_their_level() -> None:
    outline = [Outline("One", 0, 0), Outline("One A", 1, 1), Outline("Two", 2, 0)]
    pages = [f"{title}\n{SENTENCE * 4}" for title in ("One", "One A", "Two", "more of it")]
    assert [chunk.heading for chunk in cut(pages, outline)] == ["One", "One > One A", "Two", "Two"]


def test_a_sentence_over_the_page_end_is_completed() -> None:
    first = SENTENCE * 4 + "The last one is about a bridge that"
    second = "was built of timber and granite. " + SENTENCE * 4
    before, _ = cut([first, second])
    assert before.text.endswith("a bridge that\nwas built of timber and granite.")
    assert [piece.page_index for piece in before.pieces] == [0, 1]
    window = before.windows[-1]
    assert before.text[window.start :].endswith("was built of timber and granite.")


def test_pages_without_text_give_nothing() -> None:
    assert cut(["", "  \n", SENTENCE]) != []
    assert [chunk.pieces[0].page_index for chunk in cut(["", "  \n", SENTENCE])] == [2]
