"""What is said about a command line that is not understood: what, why, what next."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

from app.cli.parser import build_parser
from app.core.errors import UserError

SEARCH = "Write: pagekeep index search [options] TEXT ('pagekeep index search --help' explains it)."
WRONG = {
    "index": ("ACTION is missing.", "'pagekeep index' needs it: add, remove,"),
    "index ad x": ("There is no 'pagekeep index ad'.", "Did you mean 'add'?"),
    "frobnicate": ("There is no 'pagekeep frobnicate'.", "'pagekeep' knows ask, start,"),
    "index collect": ("NAME is missing.", "(NAME: the collection; made if it is not there)"),
    "index search": ("TEXT is missing.", "needs it."),
    "index search two words": ("There is too much: words.", "needs quotes"),
    "index search x --top 0": ("The value of --top is not right.", "It must be 1 or more, not 0."),
    "index search x --top many": ("The value of --top is not right.", "'many' is no whole number."),
    "index search x --pages": ("--pages has no value.", "(PAGES: only these printed pages"),
    "index search x --documents y": ("There is no option --documents.", "Did you mean '--document'?"),
    "index search x --json=yes": ("--json takes no value.", "'yes' was given to it."),
    "index search x --c y": ("--c is not clear.", "--collection or --chapter."),
    "cache log --level wan": ("--level cannot be 'wan'.", "It takes warn, info or debug. Did you mean 'warn'?"),
    "bench compare": ("--peer is missing.", "'pagekeep bench compare' needs it."),
}


@pytest.mark.parametrize("line", WRONG)
def test_wrong_usage_says_what_why_and_what_to_write(line: str) -> None:
    told = error(line)
    what, why = WRONG[line]
    assert told.what == what
    assert why in told.why
    assert told.next.startswith("Write: pagekeep ")


def test_what_to_write_holds_what_is_needed() -> None:
    assert error("index search").next == SEARCH
    assert "bench compare [options] [MODEL] --peer PEER (" in error("bench compare").next
    assert "index add [options] FILE... (" in error("index add").next


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                yield from parsers(one)


@pytest.mark.parametrize("parser", list(parsers(build_parser())), ids=lambda parser: parser.prog)
def test_every_command_refuses_an_unknown_option_in_the_same_way(parser: argparse.ArgumentParser) -> None:
    with pytest.raises(UserError) as told:
        parser.error("unrecognized arguments: --nothing-like-this")
    assert told.value.what == "There is no option --nothing-like-this."
    assert told.value.next.startswith(f"Write: {parser.prog} ")


def error(line: str) -> UserError:
    with pytest.raises(UserError) as told:
        build_parser().parse_args(line.split())
    return told.value


def test_arguments_may_stand_between_options() -> None:
    for line in ("collect Papers --remove a.pdf b.pdf", "collect --remove Papers a.pdf b.pdf"):
        options = build_parser().parse_args(["index", *line.split()])
        assert (options.name, options.files, options.remove) == ("Papers", ["a.pdf", "b.pdf"], True)
    add = build_parser().parse_args(["index", "add", "a.pdf", "--words-only", "b.pdf"])
    assert (add.files, add.words_only) == (["a.pdf", "b.pdf"], True)
