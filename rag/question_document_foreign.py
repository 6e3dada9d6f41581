"""Questions about a document as such (its author, title, date) in German, French and Spanish."""

from __future__ import annotations

import re

from rag.late_patterns import late
from rag.question_foreign import bare

_FILE = r"|\S+\.pdf"
_DE_NOUN = (
    r"(?:dokument\w*|datei\w*|buch(?:es|s)?|handbuch\w*|text(?:es|s)?|berichts?|vertrags?|artikels?|anleitung|pdfs?|papiers?"
    r"|schrift|arbeit|studie|richtlinie)"
)
_DE_DOC = (
    rf"(?:(?:das|der|die|den|dem|des|dieses|dieser|diese|diesen|diesem|mein\w*|unser\w*)\s+{_DE_NOUN}"
    rf"|es|er|sie|das|dies|das hier{_FILE})"
)
_DE_MAKERS = (
    r"(?:(?:haupt)?autor(?:en|in|innen)?|verfasser(?:in|innen)?|herausgeber(?:in|innen)?"
    r"|übersetzer(?:in|innen)?|verlag)"
)
_DE_MADE = (
    r"(?:geschrieben|verfasst|verfaßt|veröffentlicht|herausgegeben|herausgebracht|übersetzt|erstellt|gemacht|erschienen|publiziert"
    r"|gedruckt|(?:zuletzt\s+)?(?:aktualisiert|geändert|überarbeitet|bearbeitet))"
)
_DE_DATA = (
    r"(?:titel|untertitel|name|datum|veröffentlichungsdatum|erscheinungsdatum|erscheinungsjahr|jahr|version|auflage|ausgabe|stand"
    rf"|fassung|lizenz|isbn|doi|{_DE_MAKERS})"
)
_FR_NOUN = r"(?:document|fichier|livre|manuel|texte|contrat|rapport|guide|article|pdf|ouvrage|mémoire)s?"
_FR_DOC = (
    rf"(?:(?:le|ce|cet|mon|notre)\s+{_FR_NOUN}|l'\s*(?:article|ouvrage)|la\s+brochure|cette\s+(?:étude|brochure|thèse)|il|elle"
    rf"|cela|ceci{_FILE})"
)
_FR_OF = rf"(?:\s+(?:de\s+{_FR_DOC}|du\s+{_FR_NOUN}))?"
_FR_MAKERS = r"(?:auteur(?:e|s|es)?|autrices?|éditeurs?|éditrices?|traducteurs?|traductrices?|rédacteurs?|rédactrices?)"
_FR_MADE = r"(?:écrit|rédigé|publié|édité|traduit|créé|imprimé|paru|sorti|(?:mis|mise)\s+à\s+jour|modifié|révisé)e?s?"
_FR_DATA = (
    r"(?:titre|sous-titre|nom|date(?:\s+de\s+(?:publication|parution))?|année(?:\s+de\s+(?:publication|parution))?|version|édition"
    rf"|licence|isbn|doi|{_FR_MAKERS})"
)
_ES_NOUN = r"(?:documento|archivo|libro|manual|texto|contrato|informe|artículo|pdf|fichero|estudio)s?"
_ES_DOC = rf"(?:(?:el|este|mi|nuestro|ese)\s+{_ES_NOUN}|(?:la|esta)\s+(?:guía|tesis|obra|novela)|esto{_FILE})"
_ES_OF = rf"(?:\s+(?:de\s+{_ES_DOC}|del\s+{_ES_NOUN}))?"
_ES_MAKERS = r"(?:autor(?:a|es|as)?|editor(?:a|es|as|ial)?|traductor(?:a|es|as)?|redactor(?:a|es|as)?)"
_ES_MADE = (
    r"(?:escrit[oa]|publicad[oa]|editad[oa]|traducid[oa]|cread[oa]|impres[oa]|redactad[oa]|actualizad[oa]|modificad[oa]"
    r"|revisad[oa])"
)
_ES_DID = r"(?:escribi(?:ó|eron)|publicó|publicaron|editó|tradujo|creó|redactó|actualizó|modificó|revisó|imprimió)"
_ES_DATA = (
    r"(?:título|subtítulo|nombre|fecha(?:\s+de\s+publicación)?|año(?:\s+de\s+publicación)?|versión|edición|licencia|isbn|doi"
    rf"|{_ES_MAKERS})"
)
ABOUT_DOCUMENT = late(
    "|".join(
        (
            rf"^wer\s+(?:hat|hatte|haben)\s+{_DE_DOC}\s+{_DE_MADE}$",
            rf"^wer\s+(?:schrieb|verfasste|veröffentlichte|übersetzte)\s+{_DE_DOC}$",
            rf"^wer\s+(?:ist|sind|war|waren)\s+(?:(?:der|die|das|seine?|ihre?)\s+)?{_DE_MAKERS}(?:\s+(?:von\s+)?{_DE_DOC}|\s+davon)?$",
            rf"^von\s+wem\s+(?:ist|wurde|stammt)\s+{_DE_DOC}(?:\s+{_DE_MADE}(?:\s+worden)?)?$",
            rf"^(?:wann|wo|in\s+welchem\s+jahr)\s+(?:ist|wurde)\s+{_DE_DOC}\s+{_DE_MADE}(?:\s+worden)?$",
            rf"^(?:wann|wo)\s+erschien\s+{_DE_DOC}$",
            rf"^(?:was|wie)\s+(?:ist|sind|lautet|lauten|heißt)\s+(?:(?:der|die|das|sein|seine?|ihre?)\s+)?{_DE_DATA}"
            rf"(?:\s+(?:von\s+)?{_DE_DOC}|\s+davon)?$",
            rf"^welche[nrs]?\s+{_DE_DATA}\s+(?:hat|ist|trägt)\s+{_DE_DOC}$",
            rf"^wie\s+(?:heißt|alt\s+ist|neu\s+ist|aktuell\s+ist)\s+{_DE_DOC}$|^(?:aus|von)\s+(?:welchem\s+jahr|wann)\s+(?:ist|stammt)"
            rf"\s+{_DE_DOC}$",
            rf"^was\s+für\s+eine?n?\s+\w+\s+ist\s+{_DE_DOC}$|^was\s+ist\s+(?:dieses|das|diese)\s+{_DE_NOUN}$",
            rf"^qui\s+(?:a|ont)\s+{_FR_MADE}\s+{_FR_DOC}$|^qui\s+l'a\s+{_FR_MADE}$",
            rf"^qui\s+(?:est|sont|était)\s+(?:l'\s*|les?\s+|la\s+|son\s+|ses\s+){_FR_MAKERS}{_FR_OF}$",
            rf"^par\s+qui\s+(?:a|est)\s+(?:été\s+)?{_FR_MADE}\s+{_FR_DOC}$|^par\s+qui\s+{_FR_DOC}\s+(?:a|est)-t-(?:il|elle)\s+été"
            rf"\s+{_FR_MADE}$",
            rf"^(?:quand|où|en\s+quelle\s+année)\s+(?:a\s+été|est|a)\s+{_FR_MADE}\s+{_FR_DOC}$",
            rf"^(?:quand|où|en\s+quelle\s+année)\s+(?:{_FR_DOC}\s+)?(?:a|est)-t?-?(?:il|elle)\s+(?:été\s+)?{_FR_MADE}$",
            rf"^quel(?:le)?s?\s+(?:est|sont)\s+(?:l'\s*|les?\s+|la\s+|son\s+|sa\s+|ses\s+){_FR_DATA}{_FR_OF}$",
            rf"^(?:de\s+quand|de\s+quelle\s+année)\s+date\s+{_FR_DOC}$|^quel\s+âge\s+a\s+{_FR_DOC}$|^comment\s+s'appelle\s+{_FR_DOC}$",
            rf"^quel(?:le)?\s+(?:type|genre|sorte)\s+de\s+\w+\s+est(?:-ce|\s+{_FR_DOC})$|^qu'est-ce\s+que\s+{_FR_DOC}$",
            rf"^quién(?:es)?\s+(?:{_ES_DID}|(?:ha|han)\s+{_ES_MADE})\s+{_ES_DOC}$|^quién\s+lo\s+{_ES_DID}$",
            rf"^quién(?:es)?\s+(?:es|son|fue|fueron)\s+(?:el|la|los|las|sus?)\s+{_ES_MAKERS}{_ES_OF}$",
            rf"^por\s+quién\s+(?:fue|está|ha\s+sido)\s+{_ES_MADE}\s+{_ES_DOC}$",
            rf"^(?:cuándo|dónde|en\s+qué\s+año)\s+(?:fue|ha\s+sido|se\s+ha)\s+{_ES_MADE}(?:\s+{_ES_DOC})?$",
            rf"^(?:cuándo|dónde|en\s+qué\s+año)\s+se\s+{_ES_DID}(?:\s+{_ES_DOC})?$",
            rf"^(?:cuál|cuáles|qué)\s+(?:es|son)\s+(?:el|la|los|las|sus?)\s+{_ES_DATA}{_ES_OF}$",
            rf"^qué\s+{_ES_DATA}\s+(?:tiene|es|lleva)(?:\s+{_ES_DOC})?$|^cómo\s+se\s+(?:llama|titula)\s+{_ES_DOC}$",
            rf"^de\s+(?:cuándo|qué\s+año)\s+es(?:\s+{_ES_DOC})?$|^qué\s+(?:tipo|clase)\s+de\s+\w+\s+es(?:\s+{_ES_DOC})?$"
            rf"|^qué\s+es\s+{_ES_DOC}$",
        )
    ),
    re.IGNORECASE,
)  # fmt: skip


def asks_about_document(clause: str) -> bool:
    """One clause of a question asks for the author, title, date, publisher or kind of a document."""
    return ABOUT_DOCUMENT.match(bare(clause)) is not None
