"""A model's chat template in a sandbox: the variables and functions that templates in GGUF files expect.

The environment is that of transformers' chat templates (its documentation: "Writing a chat template"):
trimmed blocks, loop controls, `raise_exception`, `strftime_now`, `tojson`, `{% generation %}`. Template
code comes with the model file and is not trusted: see `chat_sandbox`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date as Date
from datetime import datetime, time
from typing import Any, NoReturn

from jinja2 import TemplateError

from engine.chat_sandbox import Sandbox, bounded_steps

Message = Mapping[str, object]

CLOCK = "strftime_now"  # how a template asks for the date
_MAX_OUTPUT = 4 << 20  # characters


class ChatTemplate:
    """A compiled template. jinja2.TemplateError: its source does not compile.

    `date`: what `strftime_now` shows, at 0:00; it belongs to the conversation: no prompt changes at midnight.
    `variables`: passed to every rendering (bos_token, eos_token, enable_thinking, ...).
    """

    def __init__(self, source: str, date: Date, variables: Mapping[str, object]) -> None:
        environment = Sandbox()
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _raise
        environment.globals[CLOCK] = datetime.combine(date, time()).strftime
        self._template = environment.from_string(source)
        self._variables = dict(variables)

    def render(self, messages: Sequence[Message], *, generation_prompt: bool = True) -> str:
        """The text of a conversation. Any exception may come out: the template is code of others."""
        with bounded_steps():
            return self._rendered(messages, generation_prompt)

    def _rendered(self, messages: Sequence[Message], generation_prompt: bool) -> str:
        chunks: list[str] = []
        length = 0
        for chunk in self._template.generate(
            messages=messages,
            add_generation_prompt=generation_prompt,
            tools=None,
            documents=None,
            **self._variables,
        ):
            length += len(chunk)
            if length > _MAX_OUTPUT:
                raise TemplateError(f"the template writes more than {_MAX_OUTPUT} characters")
            chunks.append(chunk)
        return "".join(chunks)


def _raise(message: str) -> NoReturn:
    raise TemplateError(message)


def _to_json(value: object, indent: int | None = None, ensure_ascii: bool = False, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **options)
