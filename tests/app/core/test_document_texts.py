"""Texts of documents that the window keeps, and another process that reads a document anew."""

from pathlib import Path

from app.core.documents import DocumentTexts
from assets import sample_pdf
from rag import Library


def test_text_that_another_process_read_anew_is_noticed(tmp_path: Path) -> None:
    library, other = Library(tmp_path / "library"), Library(tmp_path / "library")
    document = library.add(sample_pdf())
    texts = DocumentTexts(lambda: library)
    before = texts.whole(int(document.id))
    assert texts.whole(int(document.id)) is before, "kept"
    first = before.passages[0]
    other._shelf.db.run("UPDATE pages SET text = 'Old text.' WHERE page_index = ?", (first.pages[0],))
    other._shelf.db.run("UPDATE passages SET text = 'Old text.' WHERE id = ?", (first.id,))
    texts = DocumentTexts(lambda: library)
    assert texts.whole(int(document.id)).passages[0].text == "Old text."
    other.read_again([document.id])
    assert other.index_words().read_anew == (document.id,)
    assert texts.whole(int(document.id)).passages[0] == first
    library.close()
    other.close()
