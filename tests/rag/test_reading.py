"""What is read of pages of many kinds: the text, its order, and the way back to PDFium's characters."""

import random
from pathlib import Path

import pypdfium2
import pytest

from rag.pdf import worker
from rag.pdf.text import CharMap
from tests.rag.pdf_files import at, drawn_pdf

LEFT = [
    "The keeper of the tower lights the",
    "great lamp before the sun goes down",
    "and writes the hour in a green book",
    "that lies on the table by the stairs",
    "He counts the ships that come home",
    "and those that stay away until spring",
    "Nobody has ever seen him leave on a",
    "Sunday, whatever the weather may be",
]
RIGHT = [
    "In winter the harbour freezes for six",
    "weeks and the boats lie on the shore",
    "The children skate between the masts",
    "and the old men mend their torn nets",
    "A merchant from the south sells figs",
    "and lanterns at the corner of the pier",
    "until the first warm wind of the year",
    "breaks the ice and opens the way out",
]


def read(data: bytes, index: int = 0) -> tuple[str, str, CharMap, list[str]]:
    """(text, kind, map, PDFium's characters one by one)."""
    document = pypdfium2.PdfDocument(data)
    message = worker.page(document, index)
    textpage = document[index].get_textpage()
    raw = [textpage.get_text_range(n, 1) for n in range(textpage.count_chars())]
    positions = CharMap(tuple(message["clean"]), tuple(message["raw"]))
    return message["text"], message["kind"], positions, raw


def cited(data: bytes, words: str) -> str:
    """What PDFium has at the ranges of `words`, white space collapsed and end-of-line hyphens left out."""
    text, _, positions, raw = read(data)
    spans = positions.spans(text.index(words), len(words))
    return " ".join(" ".join("".join(raw[first : first + count]) for first, count in spans).split())


def rows(*columns: list[str], left: float = 50, width: float = 180) -> list[str]:
    """The columns' lines as files draw them that print row by row."""
    lines = []
    for number, row in enumerate(zip(*columns, strict=True)):
        lines += [at(left + place * width, 700 - 13 * number, text) for place, text in enumerate(row)]
    return lines


@pytest.mark.parametrize("shift", [0, 4])
def test_two_columns_drawn_row_by_row(shift: int) -> None:
    """With the rows of both at the same height, and at others."""
    lines = []
    for number, (left, right) in enumerate(zip(LEFT, RIGHT, strict=True)):
        lines += [at(50, 700 - 13 * number, left), at(250, 700 - shift - 13 * number, right)]
    data = drawn_pdf(["\n".join([at(120, 730, "A year at the northern harbour", size=16), *lines])])
    text, _, _, _ = read(data)
    assert text.split("\n") == ["A year at the northern harbour", *LEFT, *RIGHT]
    assert cited(data, "by the stairs\nHe counts") == "by the stairs He counts"
    assert len(read(data)[2].spans(text.index("by the stairs"), 23)) == 2


def test_three_columns_drawn_row_by_row() -> None:
    data = drawn_pdf(["\n".join(rows(LEFT, RIGHT, LEFT[::-1]))])
    assert read(data)[0].split() == " ".join([*LEFT, *RIGHT, *LEFT[::-1]]).split()


def test_columns_in_order_are_left_alone() -> None:
    lines = [
        at(50 + 200 * side, 700 - 13 * n, text) for side, c in enumerate((LEFT, RIGHT)) for n, text in enumerate(c)
    ]
    text, _, positions, _ = read(drawn_pdf(["\n".join(lines)]))
    assert text.split() == " ".join(LEFT + RIGHT).split()
    assert list(positions.raw) == sorted(positions.raw)


def test_words_broken_at_line_ends_are_joined_in_columns() -> None:
    left = [*LEFT[:3], "that lies on the table by the stair-", "case. " + LEFT[5], *LEFT[5:]]
    data = drawn_pdf(["\n".join(rows(left, RIGHT, width=220))])
    assert "by the staircase. and those" in read(data)[0]
    assert cited(data, "staircase") == "stair case"


def test_rows_of_a_table_stay_rows() -> None:
    table = [
        ("Part", "Metal", "Weight"),
        ("anchor", "iron", "120 kg"),
        ("bell", "bronze", "44 kg"),
        ("lamp", "brass", "9 kg"),
    ]
    lines = [
        at(60 + 140 * n, 700 - 15 * row, cell) for row, cells in enumerate(table * 3) for n, cell in enumerate(cells)
    ]
    text = read(drawn_pdf(["\n".join(lines)]))[0]
    assert [line.split() for line in text.splitlines()] == [" ".join(cells).split() for cells in table * 3]


def test_cells_drawn_column_by_column_at_one_height_are_one_row() -> None:
    data = drawn_pdf([at(60, 700, "anchor") + at(60, 600, "see below") + at(200, 600.5, "120 kg", size=9)])
    assert read(data)[0].splitlines()[1].split() == ["see", "below", "120", "kg"]


def test_an_exponent_does_not_break_its_row() -> None:
    parts = [
        at(60, 700, "The energy is mc"),
        at(134.5, 704, "2", size=7),
        at(139, 700, " + a"),
        at(156, 704, "n+1", size=7),
    ]
    text = read(drawn_pdf(["\n".join([*parts, at(170, 700, " for all n.")])]))[0]
    assert text == "The energy is mc2 + an+1 for all n."


def test_hebrew_and_arabic_are_in_logical_order() -> None:
    hebrew, arabic = "שלום עולם", "المكتبة الكبيرة"
    data = drawn_pdf([at(60, 700, hebrew[::-1], "U") + at(60, 650, arabic[::-1], "U")])
    text, _, _, _ = read(data)
    assert text.split("\n") == [hebrew, arabic]
    assert cited(data, "עולם") == "עולם"
    assert cited(data, "المكتبة") == "المكتبة"


@pytest.mark.parametrize("seed", range(12))
def test_no_letter_of_any_mixture_is_lost(seed: int) -> None:
    chance = random.Random(seed)
    signs = "אבגדשל\u05b8\u05c1\u05b9 مكتبةلا\u064e\u0651 ١٢ ۳۴ aBz 0123 .,-–:()[]\\/%$\"' 。"
    lines = ["".join(chance.choices(signs, k=chance.randrange(1, 40))) for _ in range(12)]
    text = read(drawn_pdf(["\n".join(at(60, 780 - 20 * n, line, "U") for n, line in enumerate(lines))]))[0]
    assert sorted(filter(str.isalnum, text)) == sorted(filter(str.isalnum, "".join(lines)))


def test_japanese_written_downwards() -> None:
    columns = ["吾輩は猫である名前はまだ無い", "どこで生れたか頓と見当がつかぬ"]
    data = drawn_pdf(["".join(at(500 - 30 * n, 780, text, "V", 14) for n, text in enumerate(columns))])
    text = read(data)[0]
    assert [line.replace(" ", "") for line in text.split("\n")] == columns
    assert cited(data, "名前") == "名前"


def test_thai_in_unicode_and_in_its_old_encoding() -> None:
    new = "ข้อความนี้จัดแบบชิดไปทางซ้าย"
    assert read(drawn_pdf([at(60, 700, new, "U")]))[0] == new
    old = "การเขียนที่ดีต้องมีเนื้อหา และผู้อ่านจะได้รู้เรื่องที่เขียนนั้น"
    data = drawn_pdf([at(60, 700, "".join(chr(ord(c) - 0xD60) if c > "\u0e00" else c for c in old) * 2, "U")])
    text, kind, _, _ = read(data)
    assert (text, kind) == (old * 2, "text")


def test_french_is_not_taken_for_thai() -> None:
    french = "Où êtes-vous allé cet été, à l'île d'Oléron près de La Rochelle, déjà? Ç'eût été mieux là-bas. " * 2
    assert read(drawn_pdf([at(20, 700, french, size=4)]))[0].split() == french.split()


def test_letters_moved_by_a_constant_are_moved_back() -> None:
    words = "the lamp of the tower is lit by the keeper when the sun is down and it burns until the morning"
    data = drawn_pdf([at(60, 700, "".join(chr(ord(c) - 29) for c in words), "N")])
    text, kind, _, _ = read(data)
    assert (text, kind) == (words, "text")


def test_codes_that_stay_unknown_are_garbled() -> None:
    codes = "7K\x03H@T X{LF}N 3[E)U 9RZ\\Q ]IR[= M^XP V5RYH " * 4
    assert read(drawn_pdf([at(20, 700, codes, "N", 5)]))[1] == "garbled"


def test_missing_spaces_are_found_by_their_gaps() -> None:
    text, font, x = " ".join(LEFT[:3]), 10.0, 30.0
    shown = []
    for word in text.split():
        shown.append(at(round(x, 2), 700, word, "U", font))
        x += len(word) * font * 0.5 + 1.3
    assert read(drawn_pdf(["\n".join(shown)]))[0] == text


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
@pytest.mark.parametrize("page_turn", [0, 90, 180, 270])
def test_lying_lines_on_turned_pages(turn: int, page_turn: int) -> None:
    """Text turned by `turn` on a page shown turned by `page_turn`, upright to the reader or not."""
    matrix = {0: "1 0 0 1", 90: "0 1 -1 0", 180: "-1 0 0 -1", 270: "0 -1 1 0"}[turn]
    start = {0: (60, 760), 90: (60, 60), 180: (540, 60), 270: (540, 760)}[turn]
    down = {0: (0, -13), 90: (13, 0), 180: (0, 13), 270: (-13, 0)}[turn]
    lines = [*LEFT, "a word broken at its line-", "end is joined again", *RIGHT]
    shown = [at(start[0] + n * down[0], start[1] + n * down[1], line, matrix=matrix) for n, line in enumerate(lines)]
    data = drawn_pdf(["\n".join(shown)], f"/MediaBox [0 0 600 820] /Rotate {page_turn}")
    text = read(data)[0]
    assert text.split() == " ".join(lines).replace("line- end", "lineend").split()
    assert cited(data, "green book") == "green book"
    assert cited(data, "the harbour freezes") == "the harbour freezes"


def test_a_drawing(tmp_path: Path) -> None:
    lines = "".join(f"{50 + n} 100 m {60 + 3 * n} 700 l S\n" for n in range(80))
    assert read(drawn_pdf([lines + at(60, 60, "Plan of the harbour")]))[1] == "drawing"
