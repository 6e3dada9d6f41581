"""The sandbox of chat templates: they come with model files and are code of others, so steps and sizes are bounded.

Jinja's sandbox keeps them from everything but values; here they are kept from running on and from making texts that
fill the memory.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

_MAX_STEPS = 500_000  # lines of Python of one rendering; templates of models need some thousand
_MAX_PRODUCT = 1 << 20
_MAX_RESULT = 1 << 26  # what the two largest arguments of a call may make together
_MAX_SUM = 1 << 22
_WIDE = re.compile(r"\d{6}|%[^a-zA-Z%]*\*")  # widths by number or argument, of % and of format
_WIDE_FORMAT = re.compile(r"\d{6}|\{[^{}]+\{")
_JOIN = "joined within bounds"


class _Generation(Extension):
    """`{% generation %} ... {% endgeneration %}` marks answers for training; here it is its body."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Joins(NodeTransformer):
    """`a ~ b` becomes a filter, because Jinja intercepts operators of two values only."""

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:
        self.generic_visit(node)
        row = nodes.List(node.nodes, lineno=node.lineno)
        return nodes.Filter(row, _JOIN, [], [], None, None, lineno=node.lineno)


class Sandbox(ImmutableSandboxedEnvironment):
    """Templates of this environment are rendered within `bounded_steps`."""

    intercepted_binops = frozenset({"*", "**", "+", "%"})

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, "jinja2.ext.loopcontrols"])
        self.filters.update({name: _guarded(made) for name, made in self.filters.items()})
        self.filters[_JOIN] = _joined

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree: nodes.Template = _Joins().visit(super()._parse(source, name, filename))
        return tree

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" and not (abs(left) <= 1 << 16 and abs(right) <= 16):
            raise TemplateError("power out of bounds")
        if operator == "*" and max(_extent(left), 1) * max(_extent(right), 1) > _MAX_PRODUCT:
            raise TemplateError("product out of bounds")
        if operator == "+" and hasattr(left, "__len__"):
            _check_sum(left, right)
        if operator == "%" and isinstance(left, str):
            _check_width(left)
        return super().call_binop(context, operator, left, right)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        owner = getattr(value, "__self__", None)
        if isinstance(owner, str) and value.__name__ in ("format", "format_map") and _WIDE_FORMAT.search(owner):
            raise TemplateError("width out of bounds")
        return super().wrap_str_format(value)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        owner = getattr(__obj, "__self__", None)
        if isinstance(owner, str):
            _check_arguments([owner, *args, *kwargs.values()])
        return super().call(__context, __obj, *args, **kwargs)


@contextmanager
def bounded_steps() -> Iterator[None]:
    """TemplateError for what runs inside and takes too many steps."""
    left, before = _MAX_STEPS, sys.gettrace()

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise TemplateError("it runs on and on")
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def _guarded(made: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(made)
    def run(*args: Any, **kwargs: Any) -> Any:
        _check_arguments([*args, *kwargs.values()])
        if made.__name__ == "do_format":
            _check_width(str(args[0]))
        return made(*args, **kwargs)

    return run


def _joined(values: list[Any]) -> str:
    texts = [str(value) for value in values]
    _check_sum(*texts)
    return "".join(texts)


def _check_arguments(values: list[Any]) -> None:
    sizes = sorted((_extent(value) for value in values if isinstance(value, int | float | str | list)), reverse=True)
    if len(sizes) > 1 and sizes[0] * sizes[1] > _MAX_RESULT:
        raise TemplateError("arguments out of bounds")


def _check_sum(*values: Any) -> None:
    if sum(_extent(value) for value in values) > _MAX_SUM:
        raise TemplateError("sum out of bounds")


def _check_width(text: str) -> None:
    if _WIDE.search(text):
        raise TemplateError("width out of bounds")


def _extent(value: Any) -> int:
    """Length of a text, of all texts of a list, of other collections; a number itself."""
    if isinstance(value, int | float):
        return int(abs(value))
    if isinstance(value, list | tuple):
        return len(value) + sum(len(item) for item in value if isinstance(item, str))
    return len(value) if hasattr(value, "__len__") else 0
