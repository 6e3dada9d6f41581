import pytest

from rag.sizes import size_text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1_048_576, "1.0 MB"), (40_000, "40 kB"), (98_000_000, "98 MB"),
     (2_340_000_000, "2.3 GB")],
)  # fmt: skip
def test_small_sizes_are_not_nothing(size: int, text: str) -> None:
    assert size_text(size) == text
