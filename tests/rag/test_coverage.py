from dataclasses import replace

import pytest

from rag.coverage import Coverage, not_found_note, page_ranges, says_not_found


def test_notes() -> None:
    some = Coverage(1, "a.pdf", 520, tuple(range(34)))  # type: ignore[arg-type]
    assert not_found_note([some]) == "Not found in the 34 of 520 pages read."
    scanned = replace(some, unreadable=(100, 101))
    assert not_found_note([scanned]).endswith("2 pages are scans or have no readable text.")
    all_read = Coverage(1, "a.pdf", 3, (0, 2), (1,))  # type: ignore[arg-type]
    assert all_read.whole
    assert not_found_note([all_read]) == "1 page is a scan or has no readable text."
    assert not_found_note([Coverage(1, "a.pdf", 2, (0, 1))]) == ""  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "missing"),
    [
        ("The passages do not mention a deposit.", True),
        ("I could not find this in the document.", True),
        ("There is no information about fees.", True),
        ("The document doesn't specify the price.", True),
        ("The deposit is 20 euros [1].", False),
        ("Not before nine.", False),
        ("The price is not given.", True),
        ("None of the passages mentions it.", True),
        ("This question cannot be answered from the text.", True),
        ("Yes. I don't know more, as the passages say nothing about it and do not state a price.", True),
        ("The maintainer must not include a file without a description.", False),
        ("The document must not contain passwords.", False),
        ("Packages without a description are not included in the archive.", False),
        ("If a file is not given, the command reads its input.", False),
        ("An error is shown when the name is not found.", False),
        ("We do not provide support for old releases.", False),
        ("Das Dokument erwähnt keinen Preis.", True),
        ("Dazu konnte ich in den Passagen nichts finden.", True),
        ("Im Text gibt es keine Angaben dazu.", True),
        ("Der Betreuer darf keine Datei ohne Beschreibung aufnehmen.", False),
        ("Der Schlüssel wird nicht im Archiv gespeichert.", False),
        ("Le document ne mentionne pas le prix.", True),
        ("Je n'ai rien trouvé dans les passages.", True),
        ("Il n'y a aucune information sur le prix.", True),
        ("Le paquet ne doit pas contenir de fichier sans description.", False),
        ("Le fichier n'est pas signé.", False),
        ("It opens at nine. " * 30 + "The closing time is not given.", False),
    ],
)
def test_answers_that_found_nothing(answer: str, missing: bool) -> None:
    assert says_not_found(answer) == missing


def test_pages_as_a_reader_names_them() -> None:
    labels = ["i", "ii", "iii", "1", "2", "3", "4"]
    assert page_ranges((0, 1, 2, 3, 6), labels) == "i–1, 4"
    assert page_ranges((1,), labels) == "ii"
    assert page_ranges((), labels) == ""
