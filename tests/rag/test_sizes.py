import pytest

from rag.sizes import plural, size_text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1_048_576, "1.05 MB"), (40_000, "40.0 kB"),
     (999_700, "1.00 MB"), (9_996_000, "10.0 MB"), (98_362_432, "98.4 MB"), (2_340_000_000, "2.34 GB"),
     (1_234_000_000_000, "1,234 GB")],
)  # fmt: skip
def test_sizes_are_decimal_and_small_ones_are_not_nothing(size: int, text: str) -> None:
    assert size_text(size) == text


def test_counts() -> None:
    assert [plural(n, "page") for n in (0, 1, 2, 1158)] == ["0 pages", "1 page", "2 pages", "1,158 pages"]
