"""Wrong usage in words: what is wrong, why, and what to write instead of what argparse says."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from app.core.errors import UserError

_MISSING = re.compile(r"the following arguments are required: (?P<names>.+)")
_CHOICE = re.compile(r"argument (?P<name>.+?): invalid choice: (?P<given>.+?) \(choose from (?P<known>.+)\)")
_UNKNOWN = re.compile(r"unrecognized arguments: (?P<given>.+)")
_NO_VALUE = re.compile(r"argument (?P<name>.+?): expected .*")
_AMBIGUOUS = re.compile(r"ambiguous option: (?P<given>\S+) could match (?P<known>.+)")
_WRONG = re.compile(r"argument (?P<name>.+?): (?P<why>.+)", re.DOTALL)


def wrong_usage(parser: argparse.ArgumentParser, message: str) -> UserError:
    """`message`: as argparse words it."""
    for pattern, told in (
        (_MISSING, _missing),
        (_CHOICE, _choice),
        (_UNKNOWN, _unknown),
        (_AMBIGUOUS, _ambiguous),
        (_NO_VALUE, _no_value),
        (_WRONG, _wrong),
    ):
        if (found := pattern.fullmatch(message)) is not None:
            what, why = told(parser, found)
            return UserError(what, why, f"Write: {_usage(parser)} ('{parser.prog} --help' explains it).")
    return UserError("The command is not understood.", f"{message}.", f"See '{parser.prog} --help'.")


def _missing(parser: argparse.ArgumentParser, found: re.Match[str]) -> tuple[str, str]:
    optional = [_name(action) for action in parser._actions if action.nargs == "*"]  # argparse names these too
    names = [name for name in found["names"].split(", ") if name not in optional] or optional
    verb = "is" if len(names) == 1 else "are"
    actions = [action for action in parser._actions if _name(action) in names]
    helps = [f"{_name(action)}: {action.help}" for action in actions if action.help]
    commands = _commands(parser)
    why = f"'{parser.prog}' needs {'it' if len(names) == 1 else 'them'}"
    if commands:
        return f"{_list(names)} {verb} missing.", f"{why}: {_list(commands, 'or')}."
    return f"{_list(names)} {verb} missing.", f"{why}{' (' + '; '.join(helps) + ')' if helps else ''}."


def _choice(parser: argparse.ArgumentParser, found: re.Match[str]) -> tuple[str, str]:
    given, known = found["given"].strip("'"), [one.strip(" '") for one in found["known"].split(",")]
    commands = _commands(parser)
    if found["name"] in ("COMMAND", "ACTION") and commands:
        return f"There is no '{parser.prog} {given}'.", f"'{parser.prog}' knows {_list(known)}.{_near(given, known)}"
    return f"{found['name']} cannot be '{given}'.", f"It takes {_list(known, 'or')}.{_near(given, known)}"


def _unknown(parser: argparse.ArgumentParser, found: re.Match[str]) -> tuple[str, str]:
    first = found["given"].split()[0]
    options = [option for action in parser._actions for option in action.option_strings]
    if first.startswith("-"):
        option = first.split("=")[0]
        return f"There is no option {option}.", f"'{parser.prog}' does not know it.{_near(option, options)}"
    return f"There is too much: {found['given']}.", f"'{parser.prog}' takes no more; a text with spaces needs quotes."


def _ambiguous(parser: argparse.ArgumentParser, found: re.Match[str]) -> tuple[str, str]:
    return f"{found['given']} is not clear.", f"It may be {_list(found['known'].split(', '), 'or')}."


def _no_value(parser: argparse.ArgumentParser, found: re.Match[str]) -> tuple[str, str]:
    action = next((one for one in parser._actions if _name(one) == found["name"]), None)
    value = f" ({action.metavar}: {action.help})" if action is not None and action.metavar and action.help else ""
    return f"{found['name']} has no value.", f"One must follow it{value}; one that begins with - is written after '='."


def _wrong(parser: argparse.ArgumentParser, found: re.Match[str]) -> tuple[str, str]:
    why = found["why"]
    if why.startswith("ignored explicit argument"):
        return f"{found['name']} takes no value.", f"{why.removeprefix('ignored explicit argument ')} was given to it."
    return f"The value of {found['name']} is not right.", f"{'It ' if why.startswith(('must', 'is ')) else ''}{why}."


def _commands(parser: argparse.ArgumentParser) -> list[str]:
    groups = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return [name for group in groups for name in group.choices]


def _name(action: argparse.Action) -> str:
    """As argparse names it in its messages."""
    if action.option_strings:
        return "/".join(action.option_strings)
    return str(action.metavar or action.dest)


def _usage(parser: argparse.ArgumentParser) -> str:
    """`pagekeep index search [options] TEXT`: what has to be there, in its order."""
    parts = [parser.prog]
    if any(one.option_strings for one in parser._actions if one.dest != "help"):
        parts.append("[options]")
    for action in parser._actions:
        name = _name(action)
        if action.option_strings:
            parts += [f"{name} {action.metavar or action.dest.upper()}"] if action.required else []
        else:
            parts.append({"*": f"[{name}...]", "?": f"[{name}]", "+": f"{name}..."}.get(str(action.nargs), name))
    return " ".join(parts)


def _near(given: str, known: Sequence[str]) -> str:
    near = get_close_matches(given, known, 1, 0.6)
    return f" Did you mean '{near[0]}'?" if near else ""


def _list(names: Iterable[str], last: str = "and") -> str:
    *first, end = names
    return f"{', '.join(first)} {last} {end}" if first else end
