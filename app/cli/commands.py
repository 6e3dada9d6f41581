"""Finds the command, runs it, tells errors. The parts of the product are imported by the command that needs them."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from app.cli.console import Console
from app.cli.parser import build_parser
from app.core.errors import EXIT_ERROR, UserError, as_user_error

EXIT_INTERRUPTED = 130
MODULES = {
    "ask": "app.cli.ask",
    "start": "app.cli.start",
    "index": "app.cli.index",
    "cache": "app.cli.cache",
    "chat": "app.cli.chat",
    "trash": "app.cli.trash",
    "model": "app.cli.model",
    "bench": "app.cli.bench",
}


def run(arguments: Sequence[str]) -> int:
    """The exit status of a command line (without the program's name)."""
    console = Console("--json" in arguments)
    try:
        return _run(arguments, console)
    except KeyboardInterrupt:
        _tell_stop(console)
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # whoever read it (head, less) has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        _log(error)
        console.error(as_user_error(error))
        return EXIT_ERROR


def _run(arguments: Sequence[str], console: Console) -> int:
    options = build_parser().parse_args(arguments)
    if options.version:
        return _version(console)
    _start_log()
    if options.command is None:
        return open_window(console)
    module = importlib.import_module(MODULES[options.command])
    status: int | None = module.run(options, console)
    return status or 0


def _tell_stop(console: Console) -> None:
    if console.as_json:
        why, way_out = "It was interrupted.", "Run it again to go on; what was done so far is kept."
        console.error(UserError("The command was stopped.", why, way_out))
    else:
        console.note("Stopped.")


def open_window(console: Console | None = None) -> int:
    """Raises UserError where there is no display, before Qt aborts the process."""
    if console is not None and console.as_json:
        raise UserError("There is no command.", "The window has no --json.", "See 'pagekeep --help' for the commands.")
    if not has_display():
        raise UserError(
            "The window cannot open.",
            "There is no display (DISPLAY and WAYLAND_DISPLAY are not set).",
            "Use 'pagekeep ask FILE -q QUESTION' on the terminal.",
        )
    gui = importlib.import_module("app.gui")
    return int(gui.run())


def has_display() -> bool:
    if not sys.platform.startswith("linux"):
        return True
    if os.environ.get("QT_QPA_PLATFORM", "").split(":")[0] in ("offscreen", "minimal", "vnc", "linuxfb", "eglfs"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _version(console: Console) -> int:
    from importlib.metadata import PackageNotFoundError, version

    try:
        number = version("pagekeep")
    except PackageNotFoundError:
        number = "(not installed)"
    console.result({"version": number})
    console.text(f"pagekeep {number}")
    return 0


def _start_log() -> None:
    from app.core.logs import start_logging
    from app.core.paths import Paths

    start_logging(Paths.default().logs)


def _log(error: Exception) -> None:
    """Faults of ours with their trace; what the reader was told about already, without."""
    import logging

    log = logging.getLogger(__name__)
    if hasattr(error, "what"):
        log.info("command failed: %s", type(error).__name__)
    else:
        log.error("command failed", exc_info=error)
