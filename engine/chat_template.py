"""A model's chat template in a sandbox: the variables and functions that templates in GGUF files expect.

The environment is that of transformers' chat templates (its documentation: "Writing a chat template"):
trimmed blocks, loop controls, `raise_exception`, `strftime_now`, `tojson`, `{% generation %}`. Template
code comes with the model file and is not trusted: no attribute access beyond the sandbox, bounded output
and products.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date as Date
from datetime import datetime, time
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

Message = Mapping[str, object]

CLOCK = "strftime_now"  # how a template asks for the date
_MAX_OUTPUT = 4 << 20  # characters
_MAX_PRODUCT = 1 << 20


class _Generation(Extension):
    """`{% generation %} ... {% endgeneration %}` marks answers for training; here it is its body."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" and not (abs(left) <= 1 << 16 and abs(right) <= 16):
            raise TemplateError("power out of bounds")
        if operator == "*" and max(_extent(left), 1) * max(_extent(right), 1) > _MAX_PRODUCT:
            raise TemplateError("product out of bounds")
        return super().call_binop(context, operator, left, right)


def _extent(value: Any) -> int:
    return int(abs(value)) if isinstance(value, int | float) else len(value)


class ChatTemplate:
    """A compiled template. jinja2.TemplateError: its source does not compile.

    `date`: what `strftime_now` shows, at 0:00; it belongs to the conversation: no prompt changes at midnight.
    `variables`: passed to every rendering (bos_token, eos_token, enable_thinking, ...).
    """

    def __init__(self, source: str, date: Date, variables: Mapping[str, object]) -> None:
        environment = _Environment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, "jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _raise
        environment.globals[CLOCK] = datetime.combine(date, time()).strftime
        self._template = environment.from_string(source)
        self._variables = dict(variables)

    def render(self, messages: Sequence[Message], *, generation_prompt: bool = True) -> str:
        """The text of a conversation. Any exception may come out: the template is code of others."""
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
