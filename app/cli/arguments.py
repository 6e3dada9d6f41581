"""What all commands' parsers are made of: usage errors, groups, and the options of the engine."""

from __future__ import annotations

import argparse
from itertools import takewhile
from typing import TYPE_CHECKING, NoReturn

from app.cli.numbers import whole_number
from app.cli.usage import wrong_usage

KV_TYPES = ("f32", "f16", "bf16", "q8", "q4")
BACKENDS = ("cpu", "reference", "gpu", "fake")
COUNT = whole_number(0)
POSITIVE = whole_number(1)
THREADS = whole_number(1, 512)


def given(text: str) -> str:
    """A choice that is not empty: with "" everything would be searched without a word."""
    if not text.strip():
        raise argparse.ArgumentTypeError("is empty; give a value, or leave the option out")
    return text


class Parser(argparse.ArgumentParser):
    """Wrong usage is told as every other error is, by the command that was meant."""

    _mixed = False

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def, override]
        """A command refuses what it does not know itself: the parser above knows no help for it. Its arguments may
        stand between options; argparse looks for them in one piece."""
        found, unknown = super().parse_known_args(args, namespace)
        if not unknown or self._mixed or any(isinstance(one, argparse._SubParsersAction) for one in self._actions):
            return found, unknown
        if not any(one.startswith("-") for one in takewhile(lambda one: one != "--", unknown)):
            self._mixed = True
            try:
                found, unknown = self.parse_known_intermixed_args(args)
            finally:
                self._mixed = False
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        raise wrong_usage(self, message)


if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[Parser]


def command(commands: Commands, name: str, help: str) -> Parser:
    parser: Parser = commands.add_parser(name, help=help, description=help)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def group(commands: Commands, name: str, help: str) -> Commands:
    parser = commands.add_parser(name, help=help, description=help)
    return parser.add_subparsers(dest="action", metavar="ACTION", required=True)


def add_model_options(parser: Parser) -> None:
    parser.add_argument("--model", metavar="PATH", help="a GGUF file or the name of a known model")
    add_engine_options(parser)


def add_engine_options(parser: Parser) -> None:
    """Fields of engine.messages.EngineSettings (`app.cli.session.engine_options`); what is not given is taken from the
    preferences."""
    parser.add_argument("--threads", type=THREADS, metavar="N", help="default: physical cores")
    parser.add_argument("--speculation", choices=("on", "off"), help="draft from earlier text; default: on")
    parser.add_argument("--backend", choices=BACKENDS, help="default: cpu; 'fake' is a slow stand-in for a GPU")
    _add_sizes(parser)
    _add_placement(parser)


def _add_placement(parser: Parser) -> None:
    parser.add_argument("-ngl", "--gpu-layers", metavar="N", help="the last N layers on the GPU, or 'all'")
    parser.add_argument("--cpu-moe", action="store_true", default=None, help="all experts stay on the CPU")
    parser.add_argument("--n-cpu-moe", type=COUNT, metavar="N", help="those of the first N layers")
    parser.add_argument(
        "-ot", "--override-tensor", action="append", metavar="REGEX=DEVICE", help="by tensor name (repeatable)"
    )


def _add_sizes(parser: Parser) -> None:
    parser.add_argument("--ctx", type=POSITIVE, metavar="N", help="context length in tokens")
    parser.add_argument("--batch", type=POSITIVE, metavar="N", help="prompt tokens of a step")
    parser.add_argument("--ubatch", type=POSITIVE, metavar="N", help="tokens that pass through the layers at once")
    parser.add_argument("--kv", choices=KV_TYPES, help="type of the KV state")
    parser.add_argument("--kv-v", choices=KV_TYPES, help="of the V state, where it is to be another")
