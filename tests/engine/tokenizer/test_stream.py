"""TokenStream: the pieces add up to the whole text and never show half a character."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.gguf import GgufFile
from engine.tokenizer import Tokenizer, TokenStream
from tests.engine.parity import DATA

with GgufFile.open(DATA / "models" / "llama-yarn-f32.gguf") as _file:
    TOKENIZER = Tokenizer.from_gguf(_file)


def streamed(ids: list[int], *, special: bool = False) -> list[str]:
    stream = TokenStream(TOKENIZER, special=special)
    return [*(stream.push(i) for i in ids), stream.flush()]


@given(st.text(alphabet="aé東🙂👍🏽\n ", max_size=30))
@settings(max_examples=200, deadline=None)
def test_pieces_are_whole_characters(text: str) -> None:
    pieces = streamed(TOKENIZER.encode(text))
    assert "".join(pieces) == text
    assert pieces[-1] == ""


@given(st.lists(st.integers(0, TOKENIZER.vocabulary - 1), max_size=30))
@settings(max_examples=200, deadline=None)
def test_any_ids_add_up_to_their_decoding(ids: list[int]) -> None:
    assert "".join(streamed(ids, special=True)) == TOKENIZER.decode(ids)
    assert "".join(streamed(ids)) == TOKENIZER.decode(ids, special=False)


def test_a_character_of_four_tokens_comes_at_once() -> None:
    ids = TOKENIZER.encode("🙂")
    assert len(ids) > 1
    assert streamed(ids) == [""] * (len(ids) - 1) + ["🙂", ""]


def test_an_unfinished_character_is_shown_at_the_end_only() -> None:
    stream = TokenStream(TOKENIZER)
    first = TOKENIZER.encode("🙂")[0]
    assert stream.push(first) == ""
    assert stream.flush() == "�"
    assert "".join(streamed(TOKENIZER.encode("next"))) == "next"


def test_control_tokens_are_silent_unless_asked_for() -> None:
    ids = TOKENIZER.encode("a<|im_end|>", special=True)
    assert "".join(streamed(ids)) == "a"
    assert "".join(streamed(ids, special=True)) == "a<|im_end|>"
