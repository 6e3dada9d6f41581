"""Reasoning told from the answer, for tags and for channels, token by token."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.chat_format import ChatFormat
from engine.chat_reasoning import ReplyStream, split_reasoning
from engine.gguf import GgufFile
from engine.tokenizer import Tokenizer
from engine.tokenizer.byte_map import BYTE_TO_CHARACTER
from tests.engine.gguf_bytes import ARRAY, BOOL, I32, STRING, U32
from tests.engine.tiny_model import Changes, saved

HARMONY = ["<|start|>", "<|message|>", "<|channel|>", "<|end|>", "<|return|>", "<|call|>"]
TAGS = ["<|im_start|>", "<|im_end|>", "<think>", "</think>"]
QWEN = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content.split('</think>')[-1].lstrip('\n') }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% if enable_thinking is defined and "
    "not enable_thinking %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)


def opened(folder: Path, control: list[str], template: str | None, **options: bool | str) -> ChatFormat:
    words = [*BYTE_TO_CHARACTER, "<s>", "</s>", *control]
    keys: Changes = {
        "tokenizer.ggml.tokens": (ARRAY, (STRING, words)),
        "tokenizer.ggml.token_type": (ARRAY, (I32, [1] * 256 + [3] * (len(words) - 256))),
        "tokenizer.ggml.merges": None,
        "tokenizer.ggml.bos_token_id": (U32, 256),
        "tokenizer.ggml.eos_token_id": (U32, words.index("<|return|>" if "<|return|>" in words else "</s>")),
        "tokenizer.ggml.add_bos_token": (BOOL, False),
        "tokenizer.chat_template": None if template is None else (STRING, template),
        "tokenizer.chat_template.brief": (STRING, "{% for m in messages %}{{ m.role }}>{{ m.content }};{% endfor %}"),
    }
    with GgufFile.open(saved(folder, keys)) as file:
        return ChatFormat.from_gguf(file, Tokenizer.from_gguf(file), **options)  # type: ignore[arg-type]


def reply(chat: ChatFormat, text: str) -> list[str]:
    """What the stream shows for each token of `text`, and at the end."""
    stream, tokenizer = chat.reply_stream(), chat._tokenizer
    return [*(stream.push(token) for token in tokenizer.encode(text, special=True)), stream.flush()]


def test_tags(tmp_path: Path) -> None:
    chat = opened(tmp_path, TAGS, QWEN)
    assert chat.reasons
    shown = reply(chat, "<think>\nWhy?\n</think>\n\nBecause 1 < 2.</s>")
    assert "".join(shown) == "<think>\nWhy?\n</think>\n\nBecause 1 < 2."
    assert split_reasoning("".join(shown)) == ("Why?", "Because 1 < 2.")
    assert shown[1:3] == ["<think>\n", "W"]  # token by token, nothing held back without need


def test_reasoning_off_and_reasoning_cut_short(tmp_path: Path) -> None:
    off = opened(tmp_path, TAGS, QWEN, reasoning="off")
    assert "".join(reply(off, "Yes.")) == "Yes."
    cut = "".join(reply(opened(tmp_path, TAGS, QWEN), "<think>\nHm"))
    assert cut == "<think>\nHm</think>"
    assert split_reasoning(cut) == ("Hm", "")
    assert split_reasoning("Plain <think>x</think>") == ("", "Plain <think>x</think>")


EFFORT = "{% if messages[0].role != 'system' %}r={{ reasoning_effort | default('medium') }};{% endif %}"


def test_how_much_is_what_the_template_takes(tmp_path: Path) -> None:
    chat = opened(tmp_path, TAGS, EFFORT + QWEN)
    assert chat.reasoning_choices == ("on", "off", "low", "medium", "high")
    assert chat.segments.open.startswith("<|im_start|>")
    assert chat.segments.first_user_open_alone.startswith("r=medium;")
    low = opened(tmp_path, TAGS, EFFORT + QWEN, reasoning="low")
    assert low.segments.first_user_open_alone.startswith("r=low;")


def test_levels_that_the_template_refuses_are_not_offered(tmp_path: Path) -> None:
    two = "{% if reasoning_effort | default('high') != 'high' %}{{ raise_exception('no') }}{% endif %}"
    chat = opened(tmp_path, TAGS, two + QWEN.replace("enable_thinking", "thinks"), reasoning="low")
    assert (chat.reasoning_choices, chat.warnings) == (("high",), ())
    assert opened(tmp_path, TAGS, None).reasoning_choices == ()


def test_a_prompt_that_opens_the_reasoning(tmp_path: Path) -> None:
    template = QWEN.replace("<|im_start|>assistant\n", "<|im_start|>assistant\n<think>\n")
    chat = opened(tmp_path, TAGS, template)
    assert split_reasoning("".join(reply(chat, "So.\n</think>\n\nYes."))) == ("So.", "Yes.")


CHANNELS = "<|channel|>analysis<|message|>Think.<|end|><|start|>assistant<|channel|>final<|message|>Yes.<|return|>"


def test_channels_of_harmony(tmp_path: Path) -> None:
    chat = opened(tmp_path, HARMONY, None)
    assert "".join(reply(chat, CHANNELS)) == "<think>Think.</think>Yes."
    assert "".join(reply(chat, "<|channel|>final<|message|>Yes.")) == "Yes."


def test_harmony_is_append_only_and_ends_messages_once(tmp_path: Path) -> None:
    chat = opened(tmp_path, HARMONY, None)
    ids = {token: chat._tokenizer.token_id(token) for token in HARMONY}
    assert chat.end_of_turn == ids["<|end|>"]
    assert chat.next_user_open_ids(False)[:2] == [ids["<|end|>"], ids["<|start|>"]]
    assert chat.next_user_open_ids(True)[0] == ids["<|start|>"]
    assert chat.segments.compose("S", ["q"], []) == (
        "<|start|>developer<|message|>S<|end|><|start|>user<|message|>q<|end|><|start|>assistant"
    )


def test_text_that_only_begins_like_a_mark_is_shown(tmp_path: Path) -> None:
    chat = opened(tmp_path, TAGS[:2], QWEN)
    assert reply(chat, "a</thin b")[-3:] == ["</thin ", "b", ""]


def test_models_without_reasoning_pass_text_through(tmp_path: Path) -> None:
    chat = opened(tmp_path, TAGS[:2], None)
    assert not chat.reasons
    stream = ReplyStream(chat._tokenizer, chat.marks)
    assert "".join(map(stream.push, chat._tokenizer.encode("<think>x"))) == "<think>x"


@pytest.mark.parametrize(("control", "begins"), [
    (["<start_of_turn>", "<end_of_turn>"], "<s><start_of_turn>user\nq<end_of_turn>\n<start_of_turn>model\n"),
    (["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
     "<s><|start_header_id|>user<|end_header_id|>\n\nq<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"),
])  # fmt: skip
def test_built_in_forms_follow_the_vocabulary(tmp_path: Path, control: list[str], begins: str) -> None:
    """A base model shares them, but was never shown a turn: it goes on with a dialogue."""
    chat = opened(tmp_path, control, "{% fails %}")
    assert (chat.segments.compose(None, ["q"], []), chat.stops) == (begins, ())
    base = opened(tmp_path, control, None)
    assert "has no chat template" in base.warnings[0]
    assert base.segments.compose(None, ["q"], []) == "<s>User: q\n\nAssistant:"
    assert "\n\nUser:" in base.stops


def test_named_variants(tmp_path: Path) -> None:
    assert opened(tmp_path, TAGS, QWEN, variant="brief").segments.compose(None, ["q"], []) == "user>q;"
    missing = opened(tmp_path, TAGS, QWEN, variant="nothing")
    assert missing.segments == opened(tmp_path, TAGS, QWEN).segments


def test_an_answer_that_is_continued_stays_where_it_was(tmp_path: Path) -> None:
    chat = opened(tmp_path, TAGS, QWEN)
    tokenizer = chat._tokenizer
    for so_far, rest, shown in (
        ("<think>Hm", " so</think>Yes.", "<think> so</think>Yes."),
        ("<think>Hm</think>Ye", "s.", "s."),
    ):
        stream = chat.reply_stream()
        stream.resume(tokenizer.encode(so_far, special=True))
        text = "".join(stream.push(token) for token in tokenizer.encode(rest, special=True, continues=True))
        assert text + stream.flush() == shown
