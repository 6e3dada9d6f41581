"""Reading a picture with the system's tesseract (its TSV output: one row a word, level 5)."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
from itertools import groupby
from typing import Any

PROGRAM = "tesseract"
WORD_LEVEL = "5"
LEAST_CONFIDENCE = 30.0  # of 100
MOST_LANGUAGES = 4  # each makes it slower
Found = list[tuple[str, list[list[float]]]]


def available() -> bool:
    return shutil.which(PROGRAM) is not None


def lines(picture: Any) -> list[Found]:
    """Words of each line of a grey picture [height, width], uint8, with their corners: upper left, upper right, lower
    right, lower left, in pixels. Errors: OSError, subprocess.SubprocessError."""
    height, width = picture.shape
    command = [PROGRAM, "-", "-", "-l", _languages(), "tsv"]
    data = b"P5 %d %d 255\n" % (width, height) + picture.tobytes()
    answer = subprocess.run(command, input=data, capture_output=True, check=True, env=_one_thread())
    rows = list(csv.DictReader(answer.stdout.decode().splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))
    words = [row for row in rows if row["level"] == WORD_LEVEL and float(row["conf"]) >= LEAST_CONFIDENCE]
    by_line = groupby(words, key=lambda row: (row["block_num"], row["par_num"], row["line_num"]))
    return [[(row["text"], _corners(row)) for row in line if row["text"].strip()] for _, line in by_line]


def _corners(row: dict[str, str]) -> list[list[float]]:
    left, top, width, height = (float(row[key]) for key in ("left", "top", "width", "height"))
    return [[left, top], [left + width, top], [left + width, top + height], [left, top + height]]


def _languages() -> str:
    """All that are installed, English first."""
    told = subprocess.run([PROGRAM, "--list-langs"], capture_output=True, check=True, env=_one_thread())
    names = [name.strip() for name in told.stdout.decode().splitlines()[1:]]
    known = sorted(
        {name for name in names if name and name not in ("osd", "equ")}, key=lambda name: (name != "eng", name)
    )
    return "+".join(known[:MOST_LANGUAGES]) or "eng"


def _one_thread() -> dict[str, str]:
    return {**os.environ, "OMP_THREAD_LIMIT": "1"}
