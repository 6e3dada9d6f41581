"""Entry point `pagekeep`: the window without arguments, else a command. Imports little; see app/cli."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

PRIVATE_UMASK = 0o077
SWITCH_INTERVAL_S = 0.001


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, 2 after an error that was told, 130 after an interrupt."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    os.umask(PRIVATE_UMASK)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    from app.cli.commands import run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
