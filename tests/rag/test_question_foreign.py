"""Questions in German, French and Spanish: kinds, catalogue, pages and chapters."""

import pytest

from rag.followup import complete
from rag.inventory import subjects
from rag.page_names import named_pages
from rag.question_kinds import question_kind, wants_summary
from rag.question_lists import collects, counted
from rag.question_sides import compared
from rag.scope import chapters, named_chapter
from rag.types import Outline

NAMES = ["pagekeep-sample.pdf", "Handbuch-2.pdf"]
SUMMARIES = [
    "Fasse das Dokument zusammen.",
    "Bitte fassen Sie Kapitel 2 kurz zusammen",
    "Kannst du den Text zusammenfassen?",
    "Eine kurze Zusammenfassung, bitte",
    "Gib mir einen Überblick über das Buch",
    "Worum geht es in diesem Dokument?",
    "Wovon handelt das Buch?",
    "Was sind die wichtigsten Punkte?",
    "Résume le document.",
    "Résumez ce chapitre, s'il vous plaît",
    "Peux-tu résumer le texte ?",
    "Fais un bref résumé du document",
    "De quoi parle ce livre ?",
    "Quels sont les points principaux ?",
    "Resume el documento.",
    "¿Puedes resumir el capítulo 3?",
    "Haz un breve resumen del libro, por favor",
    "¿De qué trata el documento?",
    "¿Cuáles son las ideas principales?",
]
LISTS = [
    "Liste alle Gebühren auf",
    "Nenne mir alle Ausnahmen",
    "Welche Dateien werden in dem Kapitel erwähnt?",
    "Welche Regeln nennt das Handbuch?",
    "Erstelle eine Liste aller Personen",
    "Liste toutes les exceptions",
    "Énumérez tous les frais.",
    "Fais une liste des personnes mentionnées",
    "Quelles règles sont mentionnées dans le document ?",
    "Enumera todas las excepciones",
    "Dime todos los plazos",
    "Haz una lista de las personas",
    "¿Qué reglas se mencionan en el documento?",
]
COUNTS = [
    "Wie viele Regeln werden erwähnt?",
    "Wie viele Regeln nennt das Handbuch?",
    "Wie viele Ausnahmen gibt es?",
    "Wie oft wird der Schlüssel erwähnt?",
    "Combien de règles sont mentionnées ?",
    "Combien d'exceptions y a-t-il ?",
    "Combien de fois la clé est-elle mentionnée ?",
    "¿Cuántas reglas se mencionan?",
    "¿Cuántas excepciones hay?",
    "¿Cuántas veces se menciona la llave?",
]
COMPARISONS = {
    "Vergleiche Gäste mit Mitgliedern": ("Gäste", "Mitgliedern"),
    "Was ist der Unterschied zwischen einem Gast und einem Mitglied?": ("Gast", "Mitglied"),
    "Worin unterscheiden sich Regeln und Ausnahmen?": ("Regeln", "Ausnahmen"),
    "Compare les invités et les membres": ("invités", "membres"),
    "Quelle est la différence entre un invité et un membre ?": ("invité", "membre"),
    "Compara los invitados con los miembros": ("invitados", "miembros"),
    "¿Cuál es la diferencia entre un invitado y un miembro?": ("invitado", "miembro"),
}
NORMAL = [
    "Was ist die Kaution für Gäste?",
    "Wie viel kostet ein verlorener Schlüssel?",
    "Wie viele Tage darf ein Gast bleiben?",
    "Wie viele Euro kostet der Schlüssel?",
    "Was sagt das Dokument über Gäste?",
    "Welche Farbe hat das Boot?",
    "Wer hat den Vertrag unterschrieben?",
    "Wo steht die Liste der Gebühren?",
    "Quel est le montant de la caution ?",
    "Combien de jours un invité peut-il rester ?",
    "Combien coûte une clé perdue ?",
    "Qui a signé le contrat ?",
    "Que dit le document sur les invités ?",
    "¿Cuánto cuesta una llave perdida?",
    "¿Cuántos días puede quedarse un invitado?",
    "¿Qué dice el documento sobre los invitados?",
    "¿Quién firmó el contrato?",
    "Resume the download after an error: how?",
    "On page 12 a list is given. Why?",
    "Liste",
]
CATALOGUE = {
    "Wie viele Kapitel hat das Handbuch?": ("chapters",),
    "Welche Dateien gibt es hier?": ("files",),
    "Wie viele Seiten hat das Dokument?": ("pages",),
    "Zeige mir das Inhaltsverzeichnis": ("chapters",),
    "Wie viele Dokumente und Kapitel gibt es?": ("files",),
    "Combien de chapitres y a-t-il ?": ("chapters",),
    "Combien de pages a ce livre ?": ("pages",),
    "Quels documents sont ici ?": ("files",),
    "¿Cuántos capítulos tiene el libro?": ("chapters",),
    "¿Cuántas páginas tiene este documento?": ("pages",),
    "¿Qué documentos hay aquí?": ("files",),
    "Wie viele Kapitel handeln von Schiffen?": (),
    "Welche Seiten sind leer?": (),
    "Combien de documents faut-il pour un visa ?": (),
    "¿Qué documentos se necesitan para un visado?": (),
}


def test_kinds() -> None:
    wrong = {
        question: found
        for kind, questions in (("summary", SUMMARIES), ("list", LISTS), ("count", COUNTS), ("normal", NORMAL))
        for question in questions
        if (found := question_kind(question)) != kind
    }
    assert wrong == {}


def test_summaries_of_everything() -> None:
    assert [question for question in SUMMARIES if not wants_summary(question)] == []
    assert not wants_summary("Fasse zusammen, was das Dokument über Gäste sagt")


@pytest.mark.parametrize(("question", "sides"), COMPARISONS.items())
def test_comparisons(question: str, sides: tuple[str, str]) -> None:
    assert (question_kind(question), compared(question)) == ("compare", sides)


@pytest.mark.parametrize(
    "question", ["Vergleiche die beiden Kapitel", "Comparez les deux éditions", "Compara los capítulos 2 y 3"]
)
def test_parts_of_documents_are_compared_by_reading_them(question: str) -> None:
    assert (question_kind(question), compared(question)) == ("compare_all", None)


def test_what_is_counted_is_collected() -> None:
    assert collects("Wie viele Regeln nennt das Handbuch?")
    assert counted("Wie viele Regeln nennt das Handbuch?") == "Liste alle Regeln auf, die im Text stehen."
    assert counted("Combien d'exceptions y a-t-il ?") == "Liste toutes les mentions du texte : exceptions."
    assert counted("¿Cuántas reglas se mencionan?") == "Lista todos los casos del texto: reglas."


@pytest.mark.parametrize(("question", "asked"), CATALOGUE.items())
def test_questions_to_the_catalogue(question: str, asked: tuple[str, ...]) -> None:
    assert subjects(question, NAMES) == asked


@pytest.mark.parametrize(
    ("question", "pages"),
    [
        ("Was steht auf Seite 12?", [range(11, 12)]),
        ("Fasse die Seiten 12 bis 15 zusammen", [range(11, 15)]),
        ("Seiten 3, 5 und 9-11", [range(2, 3), range(4, 5), range(8, 11)]),
        ("siehe S. 7", [range(6, 7)]),
        ("S. 12-15 zusammenfassen", [range(11, 15)]),
        ("Was heißt das (S. 4)?", [range(3, 4)]),
        ("How did U.S. 10-year yields move?", None),
        ("How did U.S. 10-12 year yields move?", None),
        ("What is in the S. 12 bill?", None),
        ("von Seite 12 bis Seite 15", [range(11, 15)]),
        ("Auf Seite 3, 30 Tage Frist, stimmt das?", [range(2, 3)]),
        ("Auf Seite 3 und 30 Tage danach", [range(2, 3)]),
        ("Que dit la page 12 à 15 ?", [range(11, 15)]),
        ("les pages 3, 5 et 9", [range(2, 3), range(4, 5), range(8, 9)]),
        ("de la page 12 à la page 15", [range(11, 15)]),
        ("¿Qué dice la página 12?", [range(11, 12)]),
        ("páginas 12 a 15 y 20", [range(11, 15), range(19, 20)]),
        ("de la página 12 a la 15", [range(11, 15)]),
        ("Wie viele Seiten hat es?", None),
        ("Seite 99", None),
    ],
)
def test_pages(question: str, pages: list[range] | None) -> None:
    assert named_pages(question, [str(n) for n in range(1, 41)]) == pages


@pytest.mark.parametrize(
    ("question", "previous", "complete_one"),
    [
        ("Und für Mitglieder?", "Was ist die Kaution für Gäste?", "Und für Mitglieder? Kaution Gäste"),
        ("Wie hoch sind diese?", "Welche Gebühren gibt es?", "Wie hoch sind diese? Gebühren gibt"),
        ("Et pour les membres ?", "Quel est le montant de la caution ?", "Et pour les membres ? Quel montant caution"),
        ("¿Y para los miembros?", "¿Cuánto cuesta la llave?", "¿Y para los miembros? Cuánto cuesta llave"),
        ("Was ist die Kaution?", "Welche Gebühren gibt es?", "Was ist die Kaution?"),
        ("¿Qué es la fianza?", "¿Cuánto cuesta la llave?", "¿Qué es la fianza?"),
        ("Où est la clé ?", "Quel est le montant ?", "Où est la clé ?"),
    ],
)
def test_follow_ups(question: str, previous: str, complete_one: str) -> None:
    assert complete(question, previous) == complete_one


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("Was steht in Kapitel 3?", "Kapitel 3: Werkzeuge"),
        ("résume le chapitre 2", "Kapitel 2: Boote"),
        ("¿Qué dice el capítulo 1?", "Kapitel 1: Gäste"),
        ("Fasse Anhang A zusammen", "Anhang A: Tabellen"),
        ("Worum geht es im Kapitel Werkzeuge?", "Kapitel 3: Werkzeuge"),
        ("Welche Werkzeuge gibt es?", None),
    ],
)
def test_chapters(question: str, title: str | None) -> None:
    titles = ["Kapitel 1: Gäste", "Kapitel 2: Boote", "Kapitel 3: Werkzeuge", "Anhang A: Tabellen"]
    found = named_chapter(question, chapters([Outline(t, 4 * n, 0) for n, t in enumerate(titles)], 20))
    assert (found.title if found else None) == title
