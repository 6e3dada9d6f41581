import pytest

from rag.pdf.text import CharMap, clean


@pytest.mark.parametrize(
    ("raw", "text", "origin"),
    [
        ("plain", "plain", [0, 1, 2, 3, 4]),
        ("al\ufffeter", "alter", [0, 1, 3, 4, 5]),
        ("e\ufb03cient", "efficient", [0, 1, 1, 1, 2, 3, 4, 5, 6]),
        ("a\r\nb\rc", "a\nb\nc", [0, 2, 3, 4, 5]),
        ("soft\u00adly\x00", "softly", [0, 1, 2, 3, 5, 6]),
        ("F\ufffe16", "F-16", [0, 1, 2, 3]),
        ("\ufeea", "ه", [0]),
        ("", "", []),
    ],
)
def test_cleaned_text_keeps_the_way_back(raw: str, text: str, origin: list[int]) -> None:
    cleaned, positions = clean(raw)
    assert cleaned == text
    assert [positions.index(n) for n in range(len(cleaned))] == origin


def test_a_span_covers_what_was_removed_inside_it() -> None:
    cleaned, positions = clean("an e\ufb03\ufffecient way")
    start = cleaned.index("efficient")
    assert positions.span(start, len("efficient")) == (3, 8)


def test_the_map_survives_packing() -> None:
    _, positions = clean("one\r\ntwo\ufffethree \ufb01ve\r\n" * 7)
    assert CharMap.unpack(positions.pack()) == positions


def test_an_ordinary_page_needs_few_runs() -> None:
    _, positions = clean("\r\n".join(["forty characters of text on every line.."] * 30))
    assert len(positions.clean) == 30
