"""Questions about a document as such, and others that only look like them."""

import pytest

from rag.question_document import asks_about_document

ABOUT = """
Who wrote it?
Who wrote this paper?
who is the author
Who are the authors of this document?
Who is the editor of the manual?
Please tell me who wrote the book.
What is the title?
What is the title of this paper?
What is its version?
Which version is this?
When was it published?
When was this manual last updated?
In which year was the report written?
By whom was it written?
Who published the policy?
What is the publication date of avr-libc.pdf?
What kind of document is this?
What is this document?
What is this book called?
How old is this document?
Who maintains this document?
Wer hat dieses Buch geschrieben?
Wer ist der Autor dieses Dokuments?
Wer sind die Verfasser?
Von wem ist dieser Bericht?
Wann wurde das Handbuch zuletzt aktualisiert?
Wie lautet der Titel des Dokuments?
Wie heißt dieses Buch?
Welche Version hat dieses Handbuch?
Aus welchem Jahr stammt das Dokument?
Was für ein Dokument ist das?
Qui a écrit ce livre ?
Qui est l’auteur de ce document ?
Qui sont les auteurs du rapport ?
Quel est le titre de ce document ?
Quand ce manuel a-t-il été publié ?
En quelle année a été publié ce rapport ?
De quand date ce document ?
Comment s'appelle ce livre ?
¿Quién escribió este libro?
¿Quién es el autor del documento?
¿Quiénes son los autores?
¿Cuál es el título de este documento?
¿Cuándo fue publicado este informe?
¿Cuándo se publicó este manual?
¿De qué año es este documento?
¿Cómo se titula este libro?
¿Qué tipo de documento es este documento?
"""
OTHER = """
Who wrote the boot loader?
Who is the author of the GNU linker?
Who maintains a package that was orphaned?
What is the title field of a bibliography entry?
When was the interrupt vector table written to flash?
What is the version of GCC that is needed?
What is this register for?
When is it updated by hardware?
Who is the maintainer of a package, and what must they do?
How is the date of a file set?
What is the editor used for?
Wer hat den Bootloader geschrieben?
Wer ist der Autor von GNU ld?
Wann wurde die Tabelle ins Flash geschrieben?
Was ist die Version eines Pakets?
Wie heißt der Befehl zum Drucken?
Was ist das Register für Unterbrechungen?
Qui a écrit le chargeur d'amorçage ?
Quel est le titre du deuxième champ ?
Quand le registre a-t-il été écrit par le matériel ?
¿Quién escribió el gestor de arranque?
¿Cuál es la versión de GCC necesaria?
¿Cuándo fue escrito el vector de interrupciones?
"""


@pytest.mark.parametrize("question", ABOUT.strip().splitlines())
def test_questions_about_a_document(question: str) -> None:
    assert asks_about_document(question)


@pytest.mark.parametrize("question", OTHER.strip().splitlines())
def test_questions_about_what_stands_in_it(question: str) -> None:
    assert not asks_about_document(question)
