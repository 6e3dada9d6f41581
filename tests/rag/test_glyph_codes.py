"""Codes without letters, read in TeX's encodings where the words prove which; counted as lost elsewhere."""

import pytest

from rag.pdf.classify import Drawn, classify
from rag.pdf.glyph_codes import read_codes
from rag.pdf.text import clean


def places(text: str) -> list[int]:
    return [at for at, c in enumerate(text) if ord(c) < 32 and c not in "\r\n\t"]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("the \x02rst \x02le is a \x03ag, it shouldn\x1ft", "the first file is a flag, it shouldn't"),
        ("the \x0crst o\x0ece is di\x0berent", "the first office is different"),
        ("the \x1crst e\x1bect \x15 of a work\x1dow", "the first effect – of a workflow"),
    ],
)
def test_the_words_show_which_encoding_it_is(text: str, read: str) -> None:
    found, lost = read_codes(text, places(text))
    assert (clean(found)[0], lost) == (read, 0)
    assert len(found) == len(text)


def test_what_nothing_proves_is_lost_and_told() -> None:
    text = "x\x01y \x05z\x07 " * 30
    found, lost = read_codes(text, places(text))
    assert (found, lost) == (text, 90)
    kind, reason = classify(clean("plain words of a page " * 40 + found)[0], Drawn(), lost=lost)
    assert (kind, reason) == ("text", "90 letters are missing: their font does not say which they are.")


def test_a_page_of_lost_letters_is_garbled() -> None:
    assert classify("%FCJBO 1PMJDZ " * 20, Drawn(), lost=230)[0] == "garbled"


def test_a_hyphen_at_a_line_end_is_no_lost_letter() -> None:
    assert read_codes("exam\x02ple", []) == ("exam\x02ple", 0)
