"""Words of documents in other languages are found in other forms."""

from pathlib import Path

import pytest

from rag import Document, Library
from rag.expressions import match_expression
from rag.index import records
from rag.languages import COMMON, Stemmer, language_of
from tests.rag import pdf_files
from tests.rag.pdf_files import at, drawn_pdf

TEXTS = {
    "german": [
        "Die Einstellungen werden in einer Datei gesichert, und der Rechner liest sie beim nächsten Start von dort.",
        "Das Gehäuse ist mit zwei Schrauben befestigt. Zum Öffnen der Häuser braucht man auch einen Schlüssel.",
        "Der Drucker wird über ein Kabel angeschlossen, das nicht länger als drei Meter ist.",
    ],
    "french": [
        "Les fichiers sont enregistrés dans le dossier de l'utilisateur, et le programme ne les efface pas.",
        "Pour installer une imprimante il faut un câble. Les chevaux du moteur sont dans la notice.",
        "La clé est donnée par le gardien de la maison, qui est dans le jardin avec sa famille.",
    ],
    "spanish": [
        "Los archivos se guardan en la carpeta del usuario, y el programa no los borra por la noche.",
        "Para instalar una impresora es necesario un cable que no sea más largo que el de la pantalla.",
        "Las llaves son del dueño de la casa, que está en el jardín con su familia y los perros.",
    ],
    "italian": [
        "I file sono salvati nella cartella dell'utente, e il programma non li cancella per la notte.",
        "Per installare una stampante è necessario un cavo che non sia più lungo di quello dello schermo.",
        "Le chiavi sono del custode della casa, che è nel giardino con la famiglia e i cani.",
    ],
}
# Words of questions, page: none stands on the page as it is written, and English rules do not join them.
ASKED = {
    "german": [("Einstellung", 0), ("Haus", 1), ("Druckern", 2)],
    "french": [("enregistrait", 0), ("cheval", 1), ("donner", 2)],
    "spanish": [("guardado", 0), ("instalando", 1), ("dueñas", 2)],
    "italian": [("salvato", 0), ("installato", 1), ("giardini", 2)],
}
ARABIC = [
    "المَكْتَبَةُ في وسط المدينة وهي من أقدم ما كان في البلاد كما قد كتب",
    "الحارس كان على البرج مع المصباح ولا يترك هذا المكان إلى الصباح",
    "السفن لا تدخل إلى الميناء في الليل أو عند الريح غير الهادئة",
]
PERSIAN = [
    "کِتابخانه در میان شهر است و از آن برای هر که به این جا می آید باز است",
    "نگهبان برج را با چراغ روشن کرد و تا صبح بر آن بود",
    "کشتی ها در شب به بندر نیز نمی آیند اگر باد باشد یا باران",
]
TABLES = ("page_stems", "window_stems")


def add(library: Library, folder: Path, language: str) -> Document:
    pages = [[line] for line in TEXTS[language]]
    return library.add(pdf_files.write_pdf(folder / f"{language}.pdf", pages))


def rows(library: Library, table: str, expression: str = "") -> int:
    where, values = (f" WHERE {table} MATCH ?", (expression,)) if expression else ("", ())
    return int(library._shelf.db.tuples(f"SELECT count(*) FROM {table}{where}", values)[0][0])


@pytest.mark.parametrize("language", TEXTS)
def test_other_forms_are_found(library: Library, tmp_path: Path, language: str) -> None:
    document = add(library, tmp_path, language)
    assert document.language == language
    for word, page in ASKED[language]:
        assert [hit.page_index for hit in library.search(word)] == [page]
        assert rows(library, "page_words", match_expression(word)) == 0


def test_a_mixed_library_by_each_language(library: Library, sample: Document, tmp_path: Path) -> None:
    german, french = add(library, tmp_path, "german"), add(library, tmp_path, "french")
    assert sample.language == ""
    assert [hit.document_id for hit in library.search("Häusern")] == [german.id]
    assert [hit.document_id for hit in library.search("enregistrait")] == [french.id]
    assert library.search("How much does a lost key cost?")[0].document_id == sample.id


def test_stems_go_with_their_document(library: Library, tmp_path: Path) -> None:
    german, french = add(library, tmp_path, "german"), add(library, tmp_path, "french")
    held = [rows(library, table) for table in TABLES]
    library.purge(german.id)
    assert [rows(library, table) for table in TABLES] == [n // 2 for n in held] == [3, 3]
    assert library.search("cheval")[0].document_id == french.id
    assert library.search("Haus") == []
    for table in TABLES:
        library._shelf.db.run(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")


def test_a_page_read_anew_loses_its_stems(library: Library, tmp_path: Path) -> None:
    german = add(library, tmp_path, "german")
    with library._shelf.db.transaction():
        records.remove_passages(library._shelf.db, german.id)
        records.remove_pages(library._shelf.db, german.id, [1])
        library._shelf.db.run("UPDATE documents SET phase = 'text' WHERE id = ?", (german.id,))
    assert [rows(library, table) for table in TABLES] == [2, 0]
    library.embed_missing()
    assert library.document(german.id).language == "german"
    assert [rows(library, table) for table in TABLES] == [3, 3]
    assert library.search("Haus")[0].page_index == 1


def test_an_import_that_was_begun_without_stems_gets_them(library: Library, tmp_path: Path) -> None:
    """By a version before them, which was ended between two passages."""
    german, db = add(library, tmp_path, "german"), library._shelf.db
    with db.transaction():
        for table in TABLES:
            db.run(f"DELETE FROM {table}")
        db.run("UPDATE documents SET phase = 'words', language = '' WHERE id = ?", (german.id,))
    library.embed_missing()
    assert [rows(library, table) for table in TABLES] == [3, 3]
    assert library.search("Haus")[0].page_index == 1


def test_the_language_is_told_by_common_words() -> None:
    assert {language: language_of(texts) for language, texts in TEXTS.items()} == {name: name for name in TEXTS}
    english = "The desk is open in the morning, and a reader who is late can ask for the key at the other door."
    assert language_of([english] * 3) == ""
    assert language_of(["Haus Garten und"]) == ""  # too few words
    assert language_of(["def main(argv): return 0 if run(argv) else 1  # exit status, x = y + z"] * 9) == ""
    assert language_of([*TEXTS["german"], english]) == "german"


@pytest.mark.parametrize("language", sorted(COMMON))
def test_there_is_a_stemmer_for_each(language: str) -> None:
    stemmer = Stemmer(language)
    assert stemmer("AB-12 & 34_cd") == stemmer("ab-12 & 34_CD")
    assert "12 & 34_" in stemmer("AB-12 & 34_cd")


def test_hebrew_is_found_with_points_and_without(library: Library, tmp_path: Path) -> None:
    pointed = "בְּרֵאשִׁית בָּרָא אֱלֹהִים אֵת הַשָּׁמַיִם, וְהוּא עַל כָּל הָאָרֶץ אֲשֶׁר לֹא"
    plain = "השומר של המגדל כתב את הכול בספר, כי הוא לא זוכר על מה"
    lines = [pointed, plain, "הנמל של העיר סגור אם אין רוח, או כי הים לא רגוע"]
    drawn = ["\n".join(at(60, 700 - 20 * n, part[::-1], "U") for n, part in enumerate([line] * 3)) for line in lines]
    path = tmp_path / "hebrew.pdf"
    path.write_bytes(drawn_pdf(drawn))
    document = library.add(path)
    assert document.language == "hebrew"
    for word, page in (("אלהים", 0), ("אֱלֹהִים", 0), ("השמים", 0), ("השומר", 1), ("סגור", 2)):
        assert [hit.page_index for hit in library.search(word)] == [page]
    assert language_of([pointed] * 3) == "hebrew"
    assert Stemmer("hebrew")("אֱלֹהִים and packages") == "אלהים and packag"


@pytest.mark.parametrize(
    ("language", "lines", "asked"),
    [
        ("arabic", ARABIC, [("المكتبة", 0), ("مَكْتَبَة", 0), ("مدينة", 0), ("الحَارِسُ", 1), ("السفن", 2)]),
        ("persian", PERSIAN, [("کتابخانه", 0), ("كتابخانه", 0), ("نگهبان", 1), ("کشتی", 2), ("كشتي", 2)]),
    ],
)
def test_arabic_letters_are_found_with_vowels_and_without(
    library: Library, tmp_path: Path, language: str, lines: list[str], asked: list[tuple[str, int]]
) -> None:
    drawn = ["\n".join(at(60, 700 - 20 * n, part[::-1], "U") for n, part in enumerate([line] * 3)) for line in lines]
    path = tmp_path / "letters.pdf"
    path.write_bytes(drawn_pdf(drawn))
    document = library.add(path)
    assert document.language == language
    for word, page in asked:
        assert [hit.page_index for hit in library.search(word)] == [page], word


def test_english_words_in_a_russian_text() -> None:
    text = (
        "Пакеты ставит программа apt-get, и она не удаляет packages, если на них ссылаются другие пакеты. Как и dpkg."
    )
    assert language_of([text] * 2) == "russian"
    assert Stemmer("russian")("удалить пакетов packages") == "удал пакет packag"


def test_expressions_of_a_language() -> None:
    assert match_expression("Wo sind die Häuser mit den Einstellungen?", "german") == '"haus" OR "einstell"'
    assert match_expression("Wo sind die Ha\u0308user?", "german") == '"haus"'
    assert match_expression("DEB_GAIN_ROOT_CMD setzen", "german") == '"deb_gain_root_cmd" OR "setz"'
    assert match_expression("der die das", "german") == '"der" OR "die" OR "das"'
