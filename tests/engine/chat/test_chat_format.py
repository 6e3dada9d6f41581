"""Chat formats probed from templates of several styles: segments equal the template's own renderings."""

from __future__ import annotations

import json
from datetime import date as Date
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from engine.chat_format import ChatFormat
from engine.gguf import GgufFile
from engine.tokenizer import Tokenizer
from engine.tokenizer.byte_map import BYTE_TO_CHARACTER
from tests.engine.gguf_bytes import ARRAY, BOOL, I32, STRING, U32
from tests.engine.parity import DATA
from tests.engine.tiny_model import Changes, saved

CONTROL = [
    "<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
    "<start_of_turn>", "<end_of_turn>", "[INST]", "[/INST]",
]  # fmt: skip
WORDS = [*BYTE_TO_CHARACTER, *CONTROL]
ID = {word: i for i, word in enumerate(WORDS)}

CHATML = (
    "{%- for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m.content + '<|im_end|>\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{%- endif %}"
)
LLAMA3 = """{{- bos_token }}
{%- if messages[0].role == 'system' %}
    {%- set system = messages[0].content | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system = '' %}
{%- endif %}
{{- '<|start_header_id|>system<|end_header_id|>\n\nToday: ' + strftime_now('%d %b %Y') + '\n\n' }}
{{- system + '<|eot_id|>' }}
{%- for m in messages %}
    {{- '<|start_header_id|>' + m.role + '<|end_header_id|>\n\n' + m.content | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}"""
GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}{{ '<start_of_turn>' + "
    "('model' if m.role == 'assistant' else m.role) + '\\n' + m.content | trim + '<end_of_turn>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"
)
MISTRAL = """{%- if messages[0].role == 'system' %}{%- set system = messages[0].content %}
{%- set messages = messages[1:] %}{%- endif %}{{- bos_token }}{%- for m in messages %}{%- if m.role == 'user' %}
{%- if loop.last and system is defined %}{{- '[INST] ' + system + '\n\n' + m.content + '[/INST]' }}
{%- else %}{{- '[INST] ' + m.content + '[/INST]' }}{%- endif %}
{%- else %}{{- ' ' + m.content + eos_token }}{%- endif %}{%- endfor %}"""
THINKING = (
    "{% for m in messages %}{% set text = m.content.split('</think>')[-1].lstrip('\n') %}"
    "<|im_start|>{{ m.role }}\n{{ text }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}"
    "<|im_start|>assistant\n{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n"
    "{% endif %}{% endif %}"
)
PARTS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% for part in m.content %}{{ part['text'] }}{% endfor %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
NO_SYSTEM_SHOWN = (
    "{% for m in messages %}{% if m.role == 'system' %}{% continue %}{% endif %}{% generation %}{{ m.role }}: "
    "{{ m.content }}\n{% endgeneration %}{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"
)


def format_of(folder: Path, template: str | None, words: list[str] = WORDS, **options: Any) -> ChatFormat:
    types = [1] * 256 + [3] * (len(words) - 256)
    keys: Changes = {
        "tokenizer.ggml.tokens": (ARRAY, (STRING, words)),
        "tokenizer.ggml.token_type": (ARRAY, (I32, types)),
        "tokenizer.ggml.merges": None,
        "tokenizer.ggml.bos_token_id": (U32, 256),
        "tokenizer.ggml.eos_token_id": (U32, 257),
        "tokenizer.ggml.add_bos_token": (BOOL, options.pop("add_bos", False)),
        "tokenizer.chat_template": None if template is None else (STRING, template),
    }
    with GgufFile.open(saved(folder, keys)) as file:
        return ChatFormat.from_gguf(file, Tokenizer.from_gguf(file), **options)


STYLES = {"chatml": CHATML, "llama3": LLAMA3, "gemma": GEMMA, "mistral": MISTRAL, "thinking": THINKING}


@pytest.mark.parametrize("style", STYLES)
def test_without_a_system_text_common_styles_are_append_only(tmp_path: Path, style: str) -> None:
    chat = format_of(tmp_path, STYLES[style])
    assert chat.warnings == ()
    assert chat.append_only is (style != "mistral")
    turns = [chat.segments.compose(None, ["q1", "q2", "q3"][: n + 1], ["a1", "a2"][:n]) for n in range(3)]
    assert all(after.startswith(before) for before, after in pairwise(turns))


def test_chatml(tmp_path: Path) -> None:
    chat = format_of(tmp_path, CHATML)
    assert chat.segments.compose("S", ["q"], []) == (
        "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n"
    )
    assert chat.open_ids()[0] == ID["<|im_start|>"]
    assert chat.end_of_turn == ID["<|im_end|>"]
    whole, rest = chat.next_user_open_ids(False), chat.next_user_open_ids(True)
    assert whole == [ID["<|im_end|>"], *rest]
    assert chat.dated(Date(2031, 2, 3)) is chat, "it shows no date"
    assert (chat.segments.trims_user, chat.segments.trims_system) == (False, False)
    assert chat.text_ids(" <|im_end|>") == [ID[BYTE_TO_CHARACTER[byte]] for byte in b" <|im_end|>"]


def test_llama3_has_one_bos_a_fixed_date_and_trims(tmp_path: Path) -> None:
    chat = format_of(tmp_path, LLAMA3, add_bos=True, date=Date(2031, 2, 3))
    assert chat.open_ids().count(ID["<s>"]) == 1
    assert chat.first_user_open_ids(has_system=False).count(ID["<s>"]) == 1
    assert "Today: 03 Feb 2031" in chat.segments.open
    other = chat.dated(Date(2031, 2, 4))
    assert "Today: 04 Feb 2031" in other.segments.open
    assert other.open_ids() != chat.open_ids() == other.dated(Date(2031, 2, 3)).open_ids()
    assert chat.append_only
    assert chat.end_of_turn == ID["<|eot_id|>"]
    assert (chat.segments.trims_user, chat.segments.trims_system) == (True, True)
    assert chat.text_ids("  a b\n") == chat.text_ids("a b")
    assert chat.system_text_ids("\n s ") == chat.system_text_ids("s")


def test_bos_is_added_where_the_template_has_none(tmp_path: Path) -> None:
    chat = format_of(tmp_path, CHATML, add_bos=True)
    assert chat.open_ids()[:2] == [ID["<s>"], ID["<|im_start|>"]]
    assert chat.first_user_open_ids(has_system=False)[:2] == [ID["<s>"], ID["<|im_start|>"]]
    assert chat.first_user_open_ids()[0] == ID["<|im_end|>"]


def test_gemma_puts_the_system_text_into_the_first_turn(tmp_path: Path) -> None:
    chat = format_of(tmp_path, GEMMA)
    assert not chat.segments.system_role
    assert chat.append_only
    alone = chat.segments.compose(None, ["q"], [])
    assert chat.segments.compose("S", ["q"], []) == alone.replace("q", "S\n\nq")
    assert chat.end_of_turn == ID["<end_of_turn>"]


def test_mistral_keeps_the_system_text_in_the_first_turn(tmp_path: Path) -> None:
    """Its own rendering moves the text to the last turn, which would change the prefix with every turn."""
    chat = format_of(tmp_path, MISTRAL)
    assert not chat.append_only
    assert chat.segments.compose("S", ["q1", "q2"], ["a1"]) == "<s>[INST] S\n\nq1[/INST]a1</s>[INST] q2[/INST]"
    assert chat.end_of_turn == ID["</s>"]


def test_a_template_that_drops_the_system_text_has_no_system_role(tmp_path: Path) -> None:
    chat = format_of(tmp_path, NO_SYSTEM_SHOWN)
    assert (chat.warnings, chat.segments.system_role, chat.end_of_turn) == ((), False, None)
    assert chat.segments.compose("S", ["q"], []) == "user: S\n\nq\nassistant: "
    assert chat.next_user_open_ids(True) == chat.next_user_open_ids(False)


def test_thinking_switched_off_is_kept_in_every_turn(tmp_path: Path) -> None:
    chat = format_of(tmp_path, THINKING, reasoning="off")
    assert not chat.append_only
    assert chat.segments.assistant_open.endswith("<think>\n\n</think>\n\n")
    assert format_of(tmp_path, THINKING, reasoning="on").append_only


def test_contents_as_lists_of_parts(tmp_path: Path) -> None:
    chat = format_of(tmp_path, PARTS)
    assert chat.warnings == ()
    assert chat.append_only
    assert chat.segments == format_of(tmp_path, CHATML).segments


BAD = {
    "syntax": "{% for m in messages %}",
    "raises": "{{ raise_exception('no chats here') }}",
    "undefined call": "{{ messages[0].nothing.at.all() }}",
    "drops messages": "{{ messages[-1].content }}",
    "shows twice": "{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}",
    "too long": "{% for a in range(90000) %}{{ 'x' * 1000 }}{% endfor %}{{ messages[0].content }}",
    "big product": "{{ 'x' * 10000000000 }}",
    "big power": "{{ 10 ** 10 ** 10 }}",
    "escape": "{{ ''.__class__.__mro__[1].__subclasses__() }}{{ messages[0].content }}",
    "recursion": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "blank": "  \n",
    "loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "doubles": "{% set n = namespace(x='ab') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x }}",
    "adds": "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "centres": "{{ 'x'.center(2000000000) }}",
    "filters": "{{ 'x' | center(2000000000) }}",
    "widens": "{{ '%2000000000d' % 1 }}",
    "formats": "{{ '{:2000000000d}'.format(1) }}",
    "formats by argument": "{{ '{:{}}'.format(1, 2000000000) }}",
}


@pytest.mark.parametrize("name", BAD)
def test_failing_templates_give_a_fallback_and_a_warning(tmp_path: Path, name: str) -> None:
    chat = format_of(tmp_path, BAD[name])
    assert len(chat.warnings) == 1
    assert "a built-in format is used" in chat.warnings[0]
    assert chat.segments == format_of(tmp_path, CHATML).segments
    if name == "raises":
        assert "no chats here" in chat.warnings[0]


def test_fallback_without_chatml_tokens_ends_answers_with_eos(tmp_path: Path) -> None:
    chat = format_of(tmp_path, None, words=[*BYTE_TO_CHARACTER, "<s>", "</s>"], add_bos=True)
    assert "has no chat template" in chat.warnings[0]
    assert chat.segments.compose("S", ["q"], []) == "<s>System: S\n\nUser: q\n\nAssistant:"
    assert chat.end_of_turn == ID["</s>"]
    assert chat.open_ids().count(ID["<s>"]) == 1
    assert chat.append_only


def test_tojson_keeps_letters(tmp_path: Path) -> None:
    template = (
        "{% for m in messages %}{{ {'é': m.content} | tojson }}{% endfor %}{% if add_generation_prompt %}>{% endif %}"
    )
    assert format_of(tmp_path, template).segments.compose(None, ["q"], []) == '{"é": "q"}>'


def renderings() -> list[dict[str, Any]]:
    stored = json.loads((DATA / "text" / "chat-smollm2-135m-q4_1.json").read_text())["renderings"]
    return [entry for entry in stored if entry["add_generation_prompt"]]


def split(messages: list[dict[str, str]]) -> tuple[str | None, list[str], list[str]]:
    texts = {role: [m["content"] for m in messages if m["role"] == role] for role in ("system", "user", "assistant")}
    return (texts["system"] or [None])[0], texts["user"], texts["assistant"]


def check_renderings(path: Path) -> None:
    with GgufFile.open(path) as file:
        tokenizer = Tokenizer.from_gguf(file)
        chat = ChatFormat.from_gguf(file, tokenizer)
    assert chat.append_only
    assert len(renderings()) == 4
    for entry in renderings():
        system, users, answers = split(entry["messages"])
        assert chat.segments.compose(system, users, answers) == entry["jinja"]
        if "<|im_end|>" not in users[-1]:
            ids = conversation_ids(chat, system, users, answers)
            assert ids == tokenizer.encode(entry["jinja"], special=True)
            if tokenizer.vocabulary > 40000:
                assert ids == entry["jinja_ids"]


def conversation_ids(chat: ChatFormat, system: str | None, users: list[str], answers: list[str]) -> list[int]:
    ids = [] if system is None else chat.open_ids() + chat.system_text_ids(system)
    ids += chat.first_user_open_ids(has_system=system is not None)
    for i, user in enumerate(users):
        ids += chat.text_ids(user) + chat.assistant_open_ids()
        if i < len(answers):
            ids += chat.text_ids(answers[i]) + chat.next_user_open_ids(ended_by_eog=False)
    return ids


def test_renderings_of_smollm2_over_its_first_tokens() -> None:
    check_renderings(DATA / "models" / "llama-yarn-f32.gguf")


@pytest.mark.model
def test_renderings_and_ids_of_the_starter_model(starter_model: Path) -> None:
    check_renderings(starter_model)
