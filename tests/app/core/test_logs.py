import logging
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.core import logs


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    import sys
    import threading

    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(logs, "LOG_BYTES", 2000)
    level = logging.getLogger().level
    yield logs.start_logging(tmp_path / "logs")
    logs.stop_logging()
    logging.getLogger().setLevel(level)


def test_it_rotates_and_stays_private(log: Path) -> None:
    for number in range(200):
        logging.getLogger("test").info("line %d of the log", number)
    files = sorted(log.parent.iterdir())
    assert len(files) == 1 + logs.LOG_FILES
    assert all(path.stat().st_size <= 2000 for path in files)
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert "line 199" in log.read_text()


def test_uncaught_errors_of_threads_are_in_it(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import threading

    def fail() -> None:
        raise ValueError("broken part")

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    assert "broken part" in log.read_text()
    assert "broken part" in capsys.readouterr().err


def test_a_folder_that_cannot_be_used_means_no_log_and_no_noise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").write_text("a file where the folder should be")
    assert logs.start_logging(tmp_path / "logs") is None
    assert capsys.readouterr().err == ""


def test_a_line_that_cannot_be_written_is_lost_quietly(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (handler,) = [h for h in logging.getLogger().handlers if isinstance(h, logs._PrivateRotatingHandler)]
    handler.stream.close()
    logging.getLogger("test").error("nobody will read this")
    assert capsys.readouterr().err == ""
    handler.stream = handler._open()
