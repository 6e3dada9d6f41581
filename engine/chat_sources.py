"""Where a chat template comes from: the file's own ones by name, or a built-in form by the vocabulary's tokens."""

from __future__ import annotations

from collections.abc import Mapping

from engine.gguf import GgufFile
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
# The first form whose token the vocabulary has.
_BY_TOKEN = (
    ("<|im_start|>", _CHATML),
    ("<|start_header_id|>", _LLAMA3),
    ("<start_of_turn>", _GEMMA),
    ("<|channel|>", _HARMONY),
)


def chat_templates(gguf: GgufFile) -> Mapping[str, str]:
    """The file's templates by name; the unnamed one is "default"."""
    found = {}
    for key, value in gguf.metadata.items():
        if key.startswith(_KEY) and isinstance(value, str) and value.strip():
            name = key.removeprefix(_KEY).lstrip(".") or "default"
            found[name] = value
    return found


def switches_reasoning(gguf: GgufFile, variant: str = "default") -> bool:
    """Whether the template asks for `enable_thinking`, the variable by which templates turn reasoning on and off."""
    sources = chat_templates(gguf)
    return "enable_thinking" in (sources.get(variant) or sources.get("default") or "")


def fallback_template(tokenizer: Tokenizer) -> str:
    return next((form for token, form in _BY_TOKEN if tokenizer.token_id(token) is not None), _PLAIN)
