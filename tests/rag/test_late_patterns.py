from __future__ import annotations

import re
import subprocess
import sys

import pytest

from rag.late_patterns import late


def test_answers_as_a_compiled_pattern_does() -> None:
    pattern = late(r"(?P<number>\d+)|page", re.IGNORECASE)
    assert pattern.pattern == r"(?P<number>\d+)|page"
    assert [match[0] for match in pattern.finditer("Page 12, page 3")] == ["Page", "12", "page", "3"]
    assert pattern.sub("x", "Page 12") == "x x"
    assert pattern.search("none") is None
    assert pattern.flags & re.IGNORECASE


def test_an_error_in_a_pattern_comes_with_its_first_use() -> None:
    broken = late("(")
    with pytest.raises(re.error):
        broken.search("text")


def test_patterns_of_many_words_are_not_compiled_at_import() -> None:
    told = (
        "import re._compiler as c\n"
        "plain = c.compile; sizes = []\n"
        "c.compile = lambda p, flags=0: sizes.append(len(p)) or plain(p, flags)\n"
        "import app.core.workspace, app.core.turns, rag.spelled\n"
        "print(max(sizes))"
    )
    run = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert 0 < int(run.stdout) < 1000
