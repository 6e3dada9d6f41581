"""The rotating log in the state folder. Never write text of documents, questions or answers to it."""

from __future__ import annotations

import faulthandler
import logging
import os
import sys
import threading
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType

from app.core.paths import PRIVATE_FILE, make_private_folder

LOG_BYTES = 1 << 20
LOG_FILES = 4


class _PrivateRotatingHandler(RotatingFileHandler):
    """Log files closed to other users from the moment they exist."""

    def handleError(self, record: logging.LogRecord) -> None:
        """A line that cannot be written (a full disk) is lost, and nothing else."""

    def _open(self):  # type: ignore[no-untyped-def]
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
        return os.fdopen(descriptor, "a", encoding="utf-8")


def start_logging(folder: Path, level: int = logging.INFO) -> Path | None:
    """Logs to `folder`/pagekeep.log, uncaught exceptions and crashes of native code included.

    None: the folder cannot be written; there is no log then, and all else goes on.
    """
    path = folder / "pagekeep.log"
    root = logging.getLogger()
    try:
        make_private_folder(folder)
        handler = _PrivateRotatingHandler(path, maxBytes=LOG_BYTES, backupCount=LOG_FILES, delay=False)
    except OSError:
        root.addHandler(logging.NullHandler())  # else warnings would go to standard error
        return None
    handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"))
    root.addHandler(handler)
    root.setLevel(level)
    faulthandler.enable(handler.stream or sys.__stderr__)  # type: ignore[arg-type]
    sys.excepthook = _log_uncaught
    threading.excepthook = _log_uncaught_in_thread
    return path


def stop_logging() -> None:
    """Closes the file; for tests and for a clean end."""
    root = logging.getLogger()
    for handler in [h for h in root.handlers if isinstance(h, _PrivateRotatingHandler)]:
        faulthandler.disable()
        root.removeHandler(handler)
        handler.close()


def _log_uncaught(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        logging.getLogger("pagekeep").error("uncaught", exc_info=(kind, error, traceback))
    sys.__excepthook__(kind, error, traceback)


def _log_uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None:
        _log_uncaught(args.exc_type, args.exc_value, args.exc_traceback)
