"""The model of a bench, given either way: `bench sweep MODEL`, `bench sweep --model MODEL`."""

from __future__ import annotations

from argparse import Namespace

from app.cli.arguments import Parser, add_engine_options
from app.core.errors import UserError


def add_model(bench: Parser, otherwise: str = "default: the chosen model") -> None:
    """And the options of the engine."""
    help = f"a GGUF file or the name of a known model; {otherwise}"
    bench.add_argument("positional_model", nargs="?", metavar="MODEL", help=help)
    bench.add_argument("--model", metavar="MODEL", help="the same as an option")
    add_engine_options(bench)


def wanted_model(options: Namespace) -> str | None:
    """What stands by itself, or behind --model; None: neither. UserError: both."""
    if options.positional_model and options.model:
        raise UserError(
            "Two models are named.",
            f"{options.positional_model}, and behind --model {options.model}.",
            "Name one of them.",
        )
    named: str | None = options.positional_model or options.model
    return named
