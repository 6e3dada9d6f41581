from pathlib import Path

import pytest

from rag import DocumentError, Library
from rag.collections import SeenFile
from rag.types import DocumentId


def test_a_collection_holds_documents_under_any_case_of_its_name(library: Library, sample: object) -> None:
    (document,) = library.documents()
    library.make_collection("Papers of  2024")
    library.put_in("papers of 2024", [document.id])
    library.put_in("Papers of 2024", [document.id])
    assert library.in_collection("PAPERS OF 2024") == [document]
    library.trash(document.id)
    assert library.in_collection("Papers of 2024") == []
    library.restore(document.id)
    library.take_out("Papers of 2024", [document.id])
    assert library.collection("Papers of 2024").documents == ()


def test_an_unknown_collection_is_told_with_the_known_ones(library: Library) -> None:
    library.make_collection("Reports")
    with pytest.raises(DocumentError, match="no collection") as told:
        library.collection("Letters")
    assert "Reports" in told.value.why
    library.drop_collection("reports")
    assert library.collections() == []


def test_purging_a_document_leaves_no_trace_in_collections(library: Library, sample: object, tmp_path: Path) -> None:
    (document,) = library.documents()
    library.make_collection("Inbox", tmp_path)
    library.put_in("Inbox", [document.id])
    library.note_file("Inbox", SeenFile(tmp_path / "a.pdf", 7, 11, document.id))
    library.purge(document.id)
    assert library.collection("Inbox").documents == ()
    assert library.seen_files("Inbox") == {tmp_path / "a.pdf": SeenFile(tmp_path / "a.pdf", 7, 11, None)}
    library.forget_file("Inbox", tmp_path / "a.pdf")
    assert library.seen_files("Inbox") == {}
    assert library.collection("Inbox").folder == tmp_path
    assert DocumentId(1) not in library.collection("Inbox").documents
