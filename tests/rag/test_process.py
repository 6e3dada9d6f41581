"""Processes that read files: they end with whoever started them."""

import subprocess
import sys

CHILD = "import time, rag.pdf.process as p; p.end_with_parent(); print('ready', flush=True); time.sleep(3600)"
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CHILD!r}])"


def test_a_reader_ends_with_the_process_that_started_it() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "ready\n"
        parent.kill()
        assert parent.stdout.read() == ""  # ends when the child, which has it too, is gone
