"""Downloads from a server on this machine that answers as the hub does."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from app.core.errors import Cancelled, UserError
from app.core.hub import HubFile, fetch_from_hub

CONTENT = bytes(range(251)) * 60_000  # 15 MB: more than one block of the download
PATH = "/someone/small-GGUF/resolve/main/q4/small.Q4_0.gguf"
WHAT = HubFile("someone", "small-GGUF", "q4/small.Q4_0.gguf")


class Hub(ThreadingHTTPServer):
    """`break_after`: how many bytes of the next answer are sent before the connection is cut."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.ranges: list[str | None] = []
        self.break_after: int | None = None
        self.etag = hashlib.sha256(CONTENT).hexdigest()


class Answer(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._head(0)

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.ranges.append(wanted)
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        if not self._head(start):
            return
        body, limit = CONTENT[start:], self.server.break_after
        self.server.break_after = None
        self.wfile.write(body if limit is None else body[:limit])
        if limit is not None:
            self.close_connection = True

    def _head(self, start: int) -> bool:
        found = self.path == PATH
        self.send_response((206 if start else 200) if found else 404)
        if found:
            self.send_header("ETag", f'"{self.server.etag}"')
            self.send_header("X-Repo-Commit", "0" * 40)
            self.send_header("Accept-Ranges", "bytes")
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}")
        else:
            self.send_header("X-Error-Code", "EntryNotFound")
        self.send_header("Content-Length", str(len(CONTENT) - start if found else 0))
        self.end_headers()
        return found


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    from huggingface_hub import constants

    server = Hub()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_fetches_with_progress(hub: Hub, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    path = fetch_from_hub(WHAT, tmp_path, lambda done, total: seen.append((done, total)))
    assert path == tmp_path / "someone--small-GGUF" / "q4--small.Q4_0.gguf"
    assert path.read_bytes() == CONTENT
    assert seen[0] == (0, len(CONTENT))
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert list((tmp_path / ".fetch").iterdir()) == []
    assert fetch_from_hub(WHAT, tmp_path) == path
    assert len(hub.ranges) == 1, "a file that is there is not fetched again"


def test_a_stopped_download_goes_on_where_it_was(hub: Hub, tmp_path: Path) -> None:
    reached: list[int] = []
    with pytest.raises(Cancelled):
        fetch_from_hub(
            WHAT, tmp_path, lambda done, total: reached.append(done), lambda: bool(reached and reached[-1] > 0)
        )
    (part,) = (tmp_path / ".fetch").iterdir()
    kept = part.stat().st_size
    assert 0 < kept < len(CONTENT)
    assert part.read_bytes() == CONTENT[:kept]
    path = fetch_from_hub(WHAT, tmp_path)
    assert path.read_bytes() == CONTENT
    assert hub.ranges == [None, f"bytes={kept}-"]


def test_a_cut_connection_is_resumed(hub: Hub, tmp_path: Path) -> None:
    hub.break_after = 11_000_000
    assert fetch_from_hub(WHAT, tmp_path).read_bytes() == CONTENT
    assert len(hub.ranges) == 2
    assert hub.ranges[1] is not None


def test_a_changed_file_starts_anew(hub: Hub, tmp_path: Path) -> None:
    folder = tmp_path / ".fetch"
    folder.mkdir()
    (folder / f"someone--small-GGUF--q4--small.Q4_0.gguf.{'0' * 16}.part").write_bytes(b"old version")
    assert fetch_from_hub(WHAT, tmp_path).read_bytes() == CONTENT
    assert hub.ranges == [None]


def test_damaged_content_is_refused_and_thrown_away(hub: Hub, tmp_path: Path) -> None:
    hub.etag = "ab" * 32
    with pytest.raises(UserError, match="not the expected file"):
        fetch_from_hub(WHAT, tmp_path)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_unknown_files_are_told(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not on the hub"):
        fetch_from_hub(HubFile("someone", "small-GGUF", "other.gguf"), tmp_path)


def test_no_network_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub: Hub) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(UserError, match="could not be downloaded") as caught:
        fetch_from_hub(WHAT, tmp_path)
    assert caught.value.why.startswith("There is no connection to 127.0.0.1:9")
    assert "Error:" not in caught.value.why
    assert "kept" in caught.value.next


@pytest.mark.parametrize(
    "text",
    [
        "someone/small-GGUF/q4/small.Q4_0.gguf",
        "https://hub.example/someone/small-GGUF/resolve/main/q4/small.Q4_0.gguf?download=true",
        " https://hub.example/someone/small-GGUF/blob/main/q4/small.Q4_0.gguf ",
    ],
)
def test_names_and_addresses(text: str) -> None:
    assert HubFile.parse(text) == WHAT


@pytest.mark.parametrize("text", ["small.gguf", "a/b", "a/b/c.bin", "a/../c.gguf", "a/b/../../x.gguf", ""])
def test_other_names_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="names no model file"):
        HubFile.parse(text)
