"""Takes every PDF of a folder into a fresh library (words only) and tells time, pages, kinds, or what was wrong.

`python tests/bench/intake.py FOLDER [PATTERN]`; files whose name says "user" are opened with the password "secret".
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from rag import DocumentError, Library


def main() -> None:
    folder, pattern = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "*.pdf"
    for path in sorted(folder.glob(pattern)):
        with tempfile.TemporaryDirectory() as home:
            library = Library(Path(home) / "library")
            start = time.monotonic()
            told = taken(library, path)
            library.close()
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
        print(f"{path.name[:34]:34} {time.monotonic() - start:7.2f} s  peak of readers {peak:4} MB  {told}", flush=True)


def taken(library: Library, path: Path) -> str:
    try:
        document = library.add(path, password="secret" if "user" in path.name else None)
    except DocumentError as error:
        return f"{error.kind}: {error.what} {error.why}"
    report = library.report(document.id)
    kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(page.kind for page in report.pages).items())
    return f"{document.pages} pages: {kinds}; {report.note}"


if __name__ == "__main__":
    main()
