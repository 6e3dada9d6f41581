"""Questions in German, French and Spanish: those that want a summary, a list, a number, a comparison, or what the
catalogue knows. As in English only the plain ways to ask are known; of all others a few passages are looked up."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from rag.late_patterns import late

_LEAD = (
    r"^\W*(?:(?:bitte|also|nun|und|kurz|kannst du|können sie|könntest du|könnten sie|würdest du|ich möchte"
    r"|s'il (?:te|vous) plaît|peux-tu|pouvez-vous|pourrais-tu|pourriez-vous|je voudrais|et|alors"
    r"|por favor|puedes|puede|podrías|podría|quiero|y)\b[\s,]*(?:mir|uns|me|nous|nos)?\s*)*"
)
LEAD = late(_LEAD, re.IGNORECASE)
TAIL = late(r"[\s,]*\b(?:bitte|s'il (?:te|vous) plaît|por favor|danke|merci|gracias)[\s.!]*$", re.IGNORECASE)

_DE_DOC = (
    r"(?:(?:das|der|die|den|dem|dieses|dieser|diese|diesem|im|in|vom|des|mein\w*|unser\w*)\s+)*(?:\w+\s+)?"
    r"(?:dokument\w*|datei\w*|buch\w*|bücher\w*|handbuch\w*|text\w*|vertrag\w*|bericht\w*|kapitel\w*|abschnitt\w*"
    r"|anhang\w*"
    r"|seiten?|autor\w*|verfasser\w*|anleitung\w*|artikel\w*|pdf\w*|es|er|sie)(?:\s+(?:\d[\d.]*|[A-Z])\b)?"
)
_FR_DOC = (
    r"(?:(?:le|la|les|l'|ce|cet|cette|ces|dans|du|de|des|mon|ma|notre)\s*)*(?:document|fichier|livre|manuel|texte"
    r"|contrat"
    r"|rapport|chapitre|section|annexe|page|auteur|guide|article|pdf|il|elle)s?(?:\s+(?:\d[\d.]*|[A-Z])\b)?"
)
_ES_DOC = (
    r"(?:(?:el|la|los|las|este|esta|estos|estas|en|del|de|mi|nuestro)\s+)*(?:documento|archivo|libro|manual|texto"
    r"|contrato"
    r"|informe|capítulo|sección|anexo|apéndice|página|autor|autora|guía|artículo|pdf)s?(?:\s+(?:\d[\d.]*|[A-Z])\b)?"
)
_DE_DONE = (
    r"(?:erwähnt|genannt|aufgeführt|aufgelistet|beschrieben|behandelt|besprochen|definiert|vorgestellt|eingeführt"
    r"|dokumentiert|zitiert|unterschieden)"
)
_DE_DOES = (
    r"(?:erwähnt|erwähnen|nennt|nennen|beschreibt|beschreiben|behandelt|behandeln|definiert|definieren|unterscheidet"
    r"|listet|zitiert|enthält|enthalten)"
)
_FR_DONE = r"(?:mentionné|cité|nommé|décrit|défini|listé|énuméré|présenté|traité|distingué|documenté)e?s?"
_FR_DOES = r"(?:mentionne|cite|nomme|décri|défini|énumère|présente|traite|contien)(?:nt|t)?"
_ES_DOES = r"(?:menciona|nombra|cita|describe|define|enumera|presenta|trata|distingue|lista|contiene)n?"
_POINTS_DE = r"(?:punkte|aussagen|thesen|ergebnisse|erkenntnisse|themen|gedanken|argumente|inhalte|botschaften)"
_POINTS_FR = r"(?:points|idées|conclusions|thèmes|arguments|résultats|thèses|messages|sujets)"
_POINTS_ES = r"(?:puntos|ideas|conclusiones|temas|argumentos|resultados|tesis|mensajes)"
_SUMMARY_DE = r"(?:zusammenfassung|kurzfassung|inhaltsangabe|übersicht|überblick)"
_OF_DE, _OF_FR, _OF_ES = (
    r"(?=$|\s+(?:von|des|der|über|zu|vom|für))",
    r"(?=$|\s+(?:de|du|des|sur)\b|\s+d')",
    r"(?=$|\s+(?:de|del|sobre)\b)",
)
SUMMARY = late(
    rf"^fass(?:e|t|en sie)?\b.*\bzusammen$|^.{{0,80}}\bzusammenfassen$"
    rf"|^(?:(?:gib|geben sie|schreib\w*|erstell\w*|mach\w*)\s+(?:mir\s+|uns\s+)?)?(?:eine[nr]?\s+"
    rf"|die\s+)?(?:\w+\s+)?{_SUMMARY_DE}{_OF_DE}"
    rf"|^worum geht es(?:\s+(?:in|im)\s+{_DE_DOC}|\s+hier)?$|^(?:wovon|wo?rüber) (?:handelt|berichtet"
    rf"|spricht)\s+{_DE_DOC}$"
    rf"|^(?:was|welche[s]?)\s+(?:sind|ist)\s+(?:die|das)\s+(?:wichtigste\w*|zentrale\w*|wesentliche\w*"
    rf"|haupt\w*)\s+{_POINTS_DE}\b"
    rf"|^(?:was|welche)\s+sind\s+die\s+haupt{_POINTS_DE}\b"
    r"|^résum(?:e|ez|er)(?:-moi|-nous)?\s+\S"
    rf"|^(?:(?:fai[st]|faites|donne[rz]?|écri[st]|écrivez|rédige[rz]?)(?:-moi|-nous)?\s+)?(?:une?\s+"
    rf"|le\s+)?(?:\w+\s+)?(?:résumé|synthèse|aperçu){_OF_FR}"
    rf"|^de quoi (?:parle(?:-t-(?:il|elle))?|traite|s'agit-il|est-il question"
    rf"|est-ce que .{{1,60}} parle)(?:\s+(?:dans\s+)?{_FR_DOC})?$"
    rf"|^quel(?:le)?s sont les (?:(?:principa\w+|grand\w+)\s+{_POINTS_FR}|{_POINTS_FR}\s+(?:principa\w+|clés?"
    rf"|essentiel\w+|important\w+))"
    r"|^(?:resúme(?:me|nos|lo)?|resum(?:a|ir)|resume\s+(?=(?:el|la|los|las|este|esta|todo|mi)\b))"
    rf"|^(?:(?:haz(?:me)?|haga(?:me)?|da(?:me)?|escribe(?:me)?|prepara)\s+)?(?:un\s+|el\s+"
    rf"|una\s+)?(?:\w+\s+)?(?:resumen|sinopsis|síntesis){_OF_ES}"
    rf"|^de qué (?:trata|habla|va|se trata)(?:\s+{_ES_DOC})?$"
    rf"|^cuáles son (?:los|las) (?:principales\s+{_POINTS_ES}|{_POINTS_ES}\s+(?:principales|clave|centrales"
    rf"|más importantes))",
    re.IGNORECASE,
)
LISTS = late(
    r"^(?:liste|listen sie|zähle?|zählen sie|nenne?|nennen sie|gib|geben sie|zeige?|zeigen sie|finde|sammle|suche"
    r"|schreib)"
    r"\s+(?:mir\s+|uns\s+)?(?:alle|jede[nrs]?|sämtliche)\s+\S"
    r"|^(?:alle|sämtliche)\s+\S.*\b(?:auflisten|aufzählen|nennen)$"
    r"|^(?:(?:gib|geben sie|erstelle?|mache?|schreibe?)\s+(?:mir\s+"
    r"|uns\s+)?)?(?:eine\s+)?(?:\w+\s+)?liste\s+(?:aller|der|mit|von)\b"
    rf"|^welche\s+(?P<de>[^?.;:,]+?)\s+(?:werden|sind|wurden)\s+(?:\S+\s+){{0,6}}{_DE_DONE}$"
    rf"|^welche\s+(?P<de2>[^?.;:,]+?)\s+{_DE_DOES}\s+{_DE_DOC}$"
    r"|^(?:list(?:e|ez|er)|énumér(?:ez|er)|énumère|nomm(?:e|ez|er)|cit(?:e|ez|er)|donn(?:e|ez|er)|montr(?:e|ez|er)"
    r"|trouv(?:e|ez|er)|indiqu(?:e|ez|er)|relev(?:ez|er)|relève)(?:-moi|-nous)?\s+(?:tous|toutes|chaque)\s+\S"
    r"|^(?:(?:fai[st]|faites|donne[rz]?|dresse[rz]?)(?:-moi|-nous)?\s+)?(?:une\s+"
    r"|la\s+)?liste\s+(?:complète\s+)?(?:de|des)\b"
    rf"|^quel(?:le)?s\s+(?:sont\s+les\s+)?(?P<fr>[^?.;:,]+?)\s+sont\s+{_FR_DONE}(?:\s+dans\s+{_FR_DOC})?$"
    rf"|^quel(?:le)?s\s+sont\s+(?:tous|toutes)\s+les\s+\S"
    rf"|^quel(?:le)?s\s+sont\s+les\s+[^?.;:,]+?\s+{_FR_DONE}(?:\s+dans\s+{_FR_DOC})?$"
    rf"|^quel(?:le)?s\s+(?P<fr2>[^?.;:,]+?)\s+{_FR_DOC}\s+{_FR_DOES}(?:-t)?-(?:il|elle)s?$"
    r"|^(?:lista|listar|liste|enumera|enumere|enumerar|nombra|nombre|menciona|di|da|muestra|muestre|encuentra"
    r"|indica|cita)"
    r"(?:me|nos)?\s+(?:todos|todas|cada)\s+\S|^(?:dime|muéstrame|dame)\s+(?:todos|todas|cada)\s+\S"
    r"|^(?:(?:haz(?:me)?|da(?:me)?|escribe)\s+)?(?:una\s+|la\s+)?lista\s+(?:completa\s+)?(?:de|con)\b"
    rf"|^(?:qué|cuáles)\s+(?:son\s+(?:todos|todas)\s+\S|(?P<es>[^?.;:,]+?)\s+se\s+{_ES_DOES}(?:\s+{_ES_DOC})?$)"
    rf"|^qué\s+(?P<es2>[^?.;:,]+?)\s+{_ES_DOES}\s+{_ES_DOC}$",
    re.IGNORECASE,
)
_NO_NUMBER = (
    r"(?!(?:\S+\s+)?(?:euro|dollar|tage|stunden|minuten|jahre|wochen|monate|sekunden|meter|kilo|liter|prozent"
    r"|leute|personen|menschen"
    r"|jours|heures|minutes|années|ans|semaines|mois|secondes|mètres|personnes|gens"
    r"|días|horas|minutos|años|semanas|meses|segundos|metros|personas|gente|euros)\b)"
)
COUNTS: Mapping[str, re.Pattern[str]] = {
    # What is asked for as a list, by what is put before the things that are counted.
    "Liste alle {} auf, die im Text stehen.": late(
        rf"^wie viele\s+{_NO_NUMBER}(?P<things>[^?.;:,]+?)\s+(?:(?:werden|sind|wurden)\s+(?:\S+\s+){{0,6}}{_DE_DONE}"
        rf"|{_DE_DOES}\s+{_DE_DOC}|gibt es(?:\s+(?:in|im)\s+{_DE_DOC})?|(?:kommen|stehen)\s+(?:in|im"
        rf"|auf)\s+{_DE_DOC}(?:\s+vor)?)$",
        re.IGNORECASE,
    ),
    "Liste toutes les mentions du texte : {}.": late(
        rf"^combien (?:de |d')\s*{_NO_NUMBER}(?P<things>[^?.;:,]+?)\s+(?:sont(?:-ils"
        rf"|-elles)?\s+{_FR_DONE}(?:\s+dans\s+{_FR_DOC})?"
        rf"|{_FR_DOC}\s+{_FR_DOES}(?:-t)?-(?:il|elle)s?|y a-t-il(?:\s+dans\s+{_FR_DOC})?"
        rf"|est-ce qu.{{1,40}}{_FR_DOES})$",
        re.IGNORECASE,
    ),
    "Lista todos los casos del texto: {}.": late(
        rf"^cuánt[oa]s\s+{_NO_NUMBER}(?P<things>[^?.;:,]+?)\s+(?:se\s+{_ES_DOES}(?:\s+{_ES_DOC})?"
        rf"|{_ES_DOES}\s+{_ES_DOC}"
        rf"|hay(?:\s+{_ES_DOC})?|son\s+mencionad[oa]s(?:\s+{_ES_DOC})?)$",
        re.IGNORECASE,
    ),
}
OCCURRENCES = late(
    r"^wie oft\b.*\b(?:erwähnt|genannt|vor|zitiert|auf)$|^combien de fois\b.*\b(?:mentionn\w+|cit\w+"
    r"|appara[iî]\w*|nomm\w+)\b"
    r"|^cuántas veces\b.*\b(?:menciona\w*|aparece\w*|cita\w*|nombra\w*)\b",
    re.IGNORECASE,
)
_ONE, _OTHER = r"(?P<one>[^?.;:,]+?)", r"(?P<other>[^?.;:,]+?)"
SIDES = tuple(
    late(pattern, re.IGNORECASE)
    for pattern in (
        rf"^vergleich(?:e|en sie)?\s+{_ONE}\s+(?:und|mit)\s+{_OTHER}$",
        rf"^(?:(?:was ist|was sind|worin besteh(?:t|en)|worin lieg(?:t|en)|welche|nenne?|erkläre?"
        rf"|gibt es)\s+)?(?:der|die|den|einen)?\s*"
        rf"unterschiede?(?:\s+(?:gibt es|bestehen))?\s+zwischen\s+{_ONE}\s+und\s+{_OTHER}$",
        rf"^(?:wie|worin|wodurch|inwiefern)\s+unterscheide(?:t|n)\s+sich\s+{_ONE}\s+(?:von|und)\s+{_OTHER}$",
        rf"^was haben\s+{_ONE}\s+und\s+{_OTHER}\s+gemeinsam$",
        rf"^compar(?:e|ez|er)\s+{_ONE}\s+(?:et|avec|à|aux?)\s+{_OTHER}$",
        rf"^(?:(?:quelles? (?:est|sont)|explique[rz]?|donne[rz]?|y a-t-il)\s+)?(?:la|les"
        rf"|une)?\s*différences?(?:\s+y a-t-il)?\s+entre\s+{_ONE}\s+et\s+{_OTHER}$",
        rf"^en quoi\s+{_ONE}\s+(?:diffère|se distingue)(?:-t-(?:il|elle))?\s+(?:de|du|des)\s+{_OTHER}$",
        rf"^qu'ont\s+{_ONE}\s+et\s+{_OTHER}\s+en commun$",
        rf"^compar(?:a|ar|e)\s+{_ONE}\s+(?:y|con|e)\s+{_OTHER}$",
        rf"^(?:(?:cuál es|cuáles son|qué|explica|hay)\s+)?(?:la|las|una)?\s*diferencias?(?:\s+(?:hay"
        rf"|existen?))?\s+entre\s+{_ONE}\s+y\s+{_OTHER}$",
        rf"^en qué se diferencian?\s+{_ONE}\s+(?:de|y)\s+{_OTHER}$",
        rf"^qué tienen en común\s+{_ONE}\s+y\s+{_OTHER}$",
    )
)
TOGETHER = late(
    r"^vergleich(?:e|en sie)?\s|\bunterschiede?\b.*\bzwischen\b|^compar(?:ez|er)\s|^compare\s+(?:les|des|ces|tous"
    r"|toutes)\s"
    r"|\bdifférences?\b.*\bentre\b|^compara[r]?\s|^compare\s+(?:los|las|estos|estas)\s|\bdiferencias?\b.*\bentre\b",
    re.IGNORECASE,
)
ARTICLE = late(
    r"^(?:(?:der|die|das|den|dem|des|eine?[mnrs]?|les?|la|une?|el|los|las|un|una|unos|unas|du|de la|al?|del)\s+|l')",
    re.IGNORECASE,
)
NO_TOPIC = late(
    r"\b(?:kapiteln?|abschnitte?n?|teilen?|anhang|anhänge|seiten?|dokumente?n?|dateien?|bücher|buch|texte?n?"
    r"|ausgaben?|es|sie|beiden?"
    r"|chapitres?|parties?|annexes?|documents?|fichiers?|livres?|textes?|éditions?|deux|capítulos?|secci(?:ón"
    r"|ones)|partes?"
    r"|anexos?|páginas?|documentos?|archivos?|libros?|textos?|edici(?:ón|ones)|ambos|ambas)\b",
    re.IGNORECASE,
)
_NO_TOPIC_WORDS = """
fasse fass fassen sie bitte zusammen zusammenfassung zusammenfassen kurz kurze kurzen kurzfassung inhaltsangabe
übersicht überblick das der die den dem des dieses diesem dieser diese dokument dokuments datei buch buches handbuch
text textes vertrag bericht kapitel abschnitt anhang seite teil pdf worum geht es in im hier wovon handelt gib mir
uns eine einen ein von über was sind ist wichtigsten zentralen wesentlichen punkte aussagen thesen ergebnisse themen
hauptpunkte hauptaussagen kannst du können ganze ganzen artikel résume résumez résumer résumé moi nous le la les l
un une du de ce cet cette document fichier livre manuel texte contrat rapport chapitre section annexe page partie
article fais faites donne donnez bref brève court synthèse aperçu quoi parle t il elle traite s agit quels quelles
sont points idées conclusions thèmes principaux principales clés essentiels dans plaît te vous peux tu pouvez resume
resúmeme resumir resumen resumas el los las este esta documento archivo libro manual texto contrato informe capítulo
sección anexo página parte artículo haz hazme dame breve corto qué trata habla va cuáles son puntos ideas temas
conclusiones principales clave favor por puedes un una del en síntesis sinopsis todo
"""
NO_TOPIC_WORDS = frozenset(_NO_TOPIC_WORDS.split())

_CATALOGUE_WORDS = """
wie viele welche was ist sind zeige zeig zeigen nenne liste gib mir uns alle die der das den des dem ein eine
dateien datei dokumente dokument dokuments bücher buch buches handbuch handbuchs bericht vertrag text pdf pdfs
kapitel kapiteln abschnitte seiten hat haben gibt es hier in im auf sind enthält enthalten bibliothek du hast ich
habe geladen lang inhaltsverzeichnis gliederung und bitte dieses diesem diese von vom anleitung combien de d quels
quelles est sont liste listez montre montrez donne donnez moi nous tous toutes les le la l des du un une fichiers
fichier documents document livres livre manuel rapport contrat texte chapitres chapitre sections pages page a t il
elle y dans ici contient contiennent bibliothèque as tu ai je ce cet cette table matières et plaît s te vous long
longue cuántos cuántas qué cuáles son es hay lista muestra muéstrame dame nombra todos todas los las el la un una
archivos archivo documentos documento libros libro informe contrato texto capítulos capítulo secciones páginas
página tiene tienen aquí en del contiene contienen biblioteca he cargado este esta estos índice y por favor largo
larga
"""
CATALOGUE_WORDS = frozenset(_CATALOGUE_WORDS.split())
_ASKED = (
    r"(?:wie viele|welche|nenne|liste|zeige?|gib mir|was sind|combien d(?:e|es)?|quel(?:le)?s|list(?:e|ez)"
    r"|montre[z]?|donne[z]?"
    r"|cuánt[oa]s|qué|cuáles|lista|muestra|muéstrame|nombra)"
)
_BETWEEN = r"(?: (?:alle|die|der|mir|uns|moi|nous|les|des|tous|toutes|sont|los|las|todos|todas|son|me))*"
_FILES = r"(?:dateien|dokumente|bücher|pdfs|fichiers|documents|livres|archivos|documentos|libros)"
_CHAPTERS = r"(?:kapitel|abschnitte|chapitres|sections|capítulos|secciones)"
CATALOGUE: Mapping[str, re.Pattern[str]] = {
    "files": late(rf"\b{_ASKED}{_BETWEEN} {_FILES}\b"),
    "chapters": late(
        rf"\b{_ASKED}{_BETWEEN} {_CHAPTERS}\b|\b(?:inhaltsverzeichnis|gliederung|table des matières)\b"
        r"|\b(?:muestra|muéstrame|dame)(?: el)? índice\b"
    ),
    "pages": late(
        r"\b(?:wie viele seiten|combien de pages|cuántas páginas)\b|\bwie lang (?:ist|sind)\b"
        r"|\bquelle est la longueur\b"
    ),
}
# One of these must be there: "Documents" and "page" are English too.
_TELLING = late(
    r"\b(?:wie|welche|zeige?|nenne|gib|inhaltsverzeichnis|gliederung|was|combien|quel(?:le)?s|listez|montrez?"
    r"|donnez?|table des"
    r"|cuánt[oa]s|qué|cuáles|muestra|muéstrame|lista|nombra|liste|dame)\b"
)
WORD = late(r"\w+")


def bare(clause: str) -> str:
    """The clause without politeness and opening marks."""
    return TAIL.sub("", LEAD.sub("", clause.strip().lstrip("¿¡ "))).strip()


def summarises(clause: str) -> bool:
    return SUMMARY.search(bare(clause)) is not None


def lists(clause: str) -> bool:
    return LISTS.search(bare(clause)) is not None


def counted(clause: str) -> str:
    """What the clause has counted, asked for as a list in its language; "" for others."""
    asked = bare(clause)
    for words, pattern in COUNTS.items():
        if (found := pattern.search(asked)) is not None:
            return words.format(found["things"])
    return ""


def counts(clause: str) -> bool:
    return bool(counted(clause)) or OCCURRENCES.search(bare(clause)) is not None


def sides(clause: str) -> tuple[str, str] | None:
    """The two topics that are compared; None for parts of documents."""
    asked = bare(clause)
    match = next((found for pattern in SIDES if (found := pattern.search(asked))), None)
    if match is None or any(NO_TOPIC.search(side) for side in match.group("one", "other")):
        return None
    one, other = (ARTICLE.sub("", side.strip()) for side in match.group("one", "other"))
    return (one, other) if one.casefold() != other.casefold() else None


def compares(clause: str) -> bool:
    return TOGETHER.search(bare(clause)) is not None


def catalogue(question: str, known: Collection[str]) -> tuple[str, ...]:
    """What of the catalogue it asks for: "files", "chapters", "pages"; `known`: words of documents' names."""
    words = [word.casefold() for word in WORD.findall(question)]
    text = " ".join(words)
    if not _all_known(words, known) or not _TELLING.search(text):
        return ()
    return tuple(name for name, pattern in CATALOGUE.items() if pattern.search(text))


def _all_known(words: Iterable[str], known: Collection[str]) -> bool:
    return all(word in CATALOGUE_WORDS or word in known for word in words)
