"""A library in a folder that cannot be written."""

import errno
import os
from pathlib import Path

import pytest

from rag import DocumentError, Library
from tests.rag.conftest import sample_pdf

REFUSED = (errno.EACCES, errno.EROFS)


@pytest.fixture(params=REFUSED)
def closed(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library's folder that nothing can be made in; its owner may be root, whom rights do not stop."""
    folder = tmp_path / "library"
    library = Library(folder)
    library.add(sample_pdf())
    library.close()
    for part in ("locks", "vectors"):
        for path in (folder / part).iterdir():
            path.unlink()
        (folder / part).rmdir()
    opened, make, access = os.open, Path.mkdir, os.access

    def refuse(path: object) -> None:
        if Path(str(path)).is_relative_to(folder):
            raise OSError(request.param, os.strerror(request.param), str(path))

    def open_(path: object, flags: int, *more: int, **named: object) -> int:
        if flags & os.O_CREAT:
            refuse(path)
        return opened(path, flags, *more, **named)  # type: ignore[arg-type]

    def mkdir(path: Path, *more: object, **named: object) -> None:
        if not path.exists():
            refuse(path)
        make(path, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", open_)
    monkeypatch.setattr(Path, "mkdir", mkdir)
    monkeypatch.setattr(os, "access", lambda path, mode: access(path, mode & ~os.W_OK) and not mode & os.W_OK)
    return folder


def test_it_is_listed_and_searched(closed: Path) -> None:
    library = Library(closed)
    assert [document.name for document in library.documents()] == ["pagekeep-sample.pdf"]
    assert library.search("deposit")
    library.close()


def test_what_would_change_it_says_why_it_cannot(closed: Path, tmp_path: Path) -> None:
    library = Library(closed)
    other = tmp_path / "other.pdf"
    other.write_bytes(sample_pdf().read_bytes() + b"\n")
    with pytest.raises(DocumentError) as told:
        library.add(other)
    assert told.value.what == "The library cannot be changed."
    assert str(closed) in told.value.why
    assert "PAGEKEEP_HOME" in told.value.next
    library.close()


def test_a_folder_without_a_library_says_why_none_can_be_made(closed: Path) -> None:
    (closed / "library.sqlite").unlink()
    with pytest.raises(DocumentError, match="cannot be changed"):
        Library(closed)
