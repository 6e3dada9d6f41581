"""Where a chat template comes from: the file's own ones by name, or a built-in form by the vocabulary's tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date as Date
from types import MappingProxyType

from engine.chat_template import ChatTemplate
from engine.gguf import GgufFile
from engine.messages import Reasoning
from engine.tokenizer import Tokenizer

_KEY = "tokenizer.chat_template"

_CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_LLAMA3 = (
    "{{ bos_token }}{% for message in messages %}<|start_header_id|>{{ message.role }}<|end_header_id|>\n\n"
    "{{ message.content | trim }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
_GEMMA = (
    "{{ bos_token }}{% for message in messages %}{% if message.role == 'system' %}{{ raise_exception('no system') }}"
    "{% endif %}<start_of_turn>{{ 'model' if message.role == 'assistant' else message.role }}\n"
    "{{ message.content | trim }}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
_HARMONY = (
    "{% for message in messages %}{% if message.role == 'assistant' %}"
    "<|start|>assistant<|channel|>final<|message|>{{ message.content }}<|end|>{% else %}"
    "<|start|>{{ 'developer' if message.role == 'system' else message.role }}<|message|>{{ message.content }}<|end|>"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}"
)
_PLAIN = (
    "{{ bos_token }}{% for message in messages %}{{ message.role | capitalize }}:"
    "{% if message.role == 'assistant' %}{{ message.content + eos_token }}"
    "{% else %}{{ ' ' + message.content }}{% endif %}{{ '\n\n' }}{% endfor %}"
    "{% if add_generation_prompt %}Assistant:{% endif %}"
)
_PLAIN_STOPS = ("\n\nUser:", "\nUser:")
# The first form whose token the vocabulary has; base models have those of the second row too, and never saw them.
_BY_TOKEN = (("<|im_start|>", _CHATML), ("<|channel|>", _HARMONY))
_SHARED_WITH_BASE = (("<|start_header_id|>", _LLAMA3), ("<start_of_turn>", _GEMMA))


def chat_templates(gguf: GgufFile) -> Mapping[str, str]:
    """The file's templates by name; the unnamed one is "default"."""
    found = {}
    for key, value in gguf.metadata.items():
        if key.startswith(_KEY) and isinstance(value, str) and value.strip():
            name = key.removeprefix(_KEY).lstrip(".") or "default"
            found[name] = value
    return found


# Variables by which templates turn reasoning on and off (Qwen 3, GLM), or say how much there is to be (gpt-oss).
REASONING_VARIABLES: Mapping[Reasoning, tuple[str, object]] = MappingProxyType(
    {
        "on": ("enable_thinking", True),
        "off": ("enable_thinking", False),
        "low": ("reasoning_effort", "low"),
        "medium": ("reasoning_effort", "medium"),
        "high": ("reasoning_effort", "high"),
    }
)


def reasoning_choices(source: str | None, variables: Mapping[str, object], date: Date) -> tuple[Reasoning, ...]:
    """Those whose variable the template names and with which it renders: some know other levels."""
    return tuple(
        choice
        for choice, (name, value) in REASONING_VARIABLES.items()
        if source is not None and name in source and _renders(source, {**variables, name: value}, date)
    )


def _renders(source: str, variables: Mapping[str, object], date: Date) -> bool:
    for content in ("q", [{"type": "text", "text": "q"}]):
        try:
            ChatTemplate(source, date, variables).render([{"role": "user", "content": content}])
        except Exception:  # whatever the template, code of others, raises
            continue
        return True
    return False


@dataclass(frozen=True)
class BuiltIn:
    """For files whose own template is missing or fails. `stops`: texts that end an answer, where no token does."""

    source: str
    stops: tuple[str, ...] = ()


def fallback_template(tokenizer: Tokenizer, *, absent: bool = False) -> BuiltIn:
    """By the vocabulary's tokens. `absent`: the file has no template; a base model then, where all others have one."""
    forms = _BY_TOKEN if absent else _BY_TOKEN + _SHARED_WITH_BASE
    known = next((form for token, form in forms if tokenizer.token_id(token) is not None), None)
    return BuiltIn(known) if known else BuiltIn(_PLAIN, _PLAIN_STOPS)
