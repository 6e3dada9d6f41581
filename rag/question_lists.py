"""Questions for entries: lists, and numbers of what a text tells one by one."""

from __future__ import annotations

import re

from rag import question_foreign as foreign
from rag.late_patterns import late
from rag.question_words import DOCUMENT, TELLER, clauses, only_clause, plural

_ALL = r"(?:of\s+)?(?:all|every|each|any and all)\b(?!\s+of\s+(?:it|this|that)\b)"
_ASKS_FOR = (
    r"(?:list|name|find|show|give|tell|identify|collect|extract|gather|compile|write down|note|get|pull out|pick out"
    r"|point out|highlight|quote|cite|locate|mention|state|output|return|report|mark)"
)
_MAKE = (
    r"(?:(?:give|make|create|write|provide|produce|compile|prepare|draw up|build|generate|show|put together)"
    r"\s+(?:me\s+|us\s+)?)"
)
_ADJECTIVES = r"(?:(?!(?:of|in|on|from|for|about)\b)[\w'-]+\s+){0,3}?"
_LISTING = r"(?:lists?|tables?|timeline|chronology|inventory|glossary|register|catalogue)"
REQUEST = late(
    r"^(?:list|enumerate|itemi[sz]e)\s+(?!price)\S"
    rf"|^{_ASKS_FOR}(?:\s+(?:me|us))?\s+{_ALL}\s+\S"
    rf"|^(?:{_MAKE}(?:an?|the)\s+|an?\s+){_ADJECTIVES}{_LISTING}\s+(?:of|with|that|containing|showing)\b"
    r"|^(?:extract|collect|gather|compile)\s+(?P<plural>[^,]+)"
    rf"|^(?:what|which)\s+are\s+{_ALL}",
    re.IGNORECASE,
)
# What a text tells one by one, and ways of saying that it does.
_CORE = (
    r"(?:mentioned|listed|named|described|defined|discussed|covered|shown|introduced|distinguished|documented|cited"
    r"|quoted)"
)
_INSIDE = r"(?:compared|presented|proposed|explained|contained|given|treated|recommended)"
_CORE_VERBS = r"(?:mention|list|name|describe|define|discuss|cover|introduce|distinguish|document|cite|quote)"
_MORE_VERBS = rf"(?:{_CORE_VERBS}|have|contain|include|give|present|propose|explain|recommend|compare|set out|lay down)"
_THINGS = r"(?P<things>[^?.;:,]+?)"
# Topics of a document are its summary, differences are compared.
_NO_TOPICS = r"(?!(?:\w+\s+)?(?:topics|themes|subjects|differences|similarities)\b)"
_WHERE = rf"(?:in|on|by|throughout)\s+{DOCUMENT}"
_TOLD = rf"(?:(?:{_CORE}|{_INSIDE}(?=\s+{_WHERE}))\b[^?.;:,]*)"
_TELLS = rf"(?!have|include){_MORE_VERBS}(?:\s+(?:in|on|for)\b.*)?"
_NUMBER_OF = r"(?:what\s+is\s+the|the)\s+(?:total\s+)?(?:number|count)\s+of"
_TAIL = r"(?P<tail>(?:\s+(?:in|on|for|about)\b[^?.;:,]*)?)"
WHICH = (
    late(rf"^(?:what|which)\s+{_NO_TOPICS}{_THINGS}\s+(?:are|were)\s+(?P<rest>{_TOLD}|there\b[^?.;:,]*)$", re.I),
    late(rf"^(?:what|which)\s+{_NO_TOPICS}{_THINGS}\s+do(?:es)?\s+{TELLER}\s+{_TELLS}$", re.I),
)
INSIDE = late(rf"^how many {_THINGS}\s+(?:are|is|were)\s+(?P<rest>{_WHERE})$", re.IGNORECASE)
COUNTS = (
    late(rf"^how many {_THINGS}\s+(?:are|is|were)\s+(?P<rest>(?:there\b[^?.;:,]*|{_TOLD}))$", re.I),
    late(rf"^how many {_THINGS}\s+do(?:es)?\s+(?P<who>[^?.;:,]+?)\s+(?P<verb>{_CORE_VERBS}){_TAIL}$", re.I),
    late(rf"^how many {_THINGS}\s+do(?:es)?\s+(?P<who>{TELLER})\s+(?P<verb>{_MORE_VERBS})(?P<tail>)$", re.I),
    late(rf"^how many {_THINGS}\s+(?P<verb>appear|occur|feature)\s+(?P<rest>{_WHERE})$", re.I),
    INSIDE,
    late(rf"^{_NUMBER_OF}\s+{_THINGS}\s+(?P<rest>{_WHERE}|{_TOLD})$", re.I),
    late(rf"^count\s+(?:all|every|each|the)\s+(?:of\s+the\s+)?{_THINGS}(?P<rest>)$", re.I),
)
_OCCURS = r"(?:mention(?:ed)?|named?|occurs?|appears?|referred to|refers? to|cited?|quoted?|comes? up)"
OCCURRENCES = late(
    rf"^how (?:often|many times)\b.*\b{_OCCURS}\b|^how (?:often|many times)\b.*\b(?:word|term|name|phrase)\b.*\bused\b"
    rf"|^(?:what\s+is\s+the|the)\s+number\s+of\s+(?:times|mentions|occurrences|references)\b",
    re.IGNORECASE,
)
# Their number stands in the text: so many of these are said to be, instead of told one by one.
NUMBERED = late(
    r"\b(?:(?:milli|micro|nano)?seconds|minutes|hours|days|nights|weeks|fortnights|months|quarters|years|decades|centuries"
    r"|times|euros?|dollars|pounds|cents|francs|yen|percent|per\s*cent|percentages?|degrees|(?:kilo|centi|milli)?met(?:er|re)s"
    r"|miles|feet|inches|yards|(?:kilo|milli)?grams|tons|tonnes|lit(?:er|re)s|bits|(?:kilo|mega|giga)?bytes|[kmg]b"
    r"|volts|watts|calories|seats|beds|copies|votes)\b",
    re.IGNORECASE,
)
MANY = late(
    r"\b(?:people|persons?|men|women|children|inhabitants|residents|citizens|members|employees|workers|staff|students|pupils"
    r"|teachers|guests|visitors|participants|subjects|users|customers|patients|points|words|lines|letters|pages)\b",
    re.IGNORECASE,
)
# What a text tells one by one, wherever it is "there" for.
TOLD_ONE_BY_ONE = late(
    r"\b(?:ways|kinds|types|sorts|forms|categories|methods|options|reasons|arguments|examples|steps|rules|exceptions"
    r"|conditions|requirements|principles|criteria)\b",
    re.IGNORECASE,
)
IN_TEXT = late(rf"(?:about|concerning|regarding|{_CORE})\b|(?:in|on)\s+(?:all\s+)?{DOCUMENT}$", re.IGNORECASE)
MORE_ASKED = late(
    r"\b(?:how|what|which|who|whose|when|where|why)\b|\b(?:and|or|but)\s+(?:is|are|do|does)\b", re.IGNORECASE
)
HOLDS = frozenset(("have", "contain", "include"))
NOBODY = late(r"^(?:i|you|we|one)$", re.IGNORECASE)


def wants_list(question: str) -> bool:
    """It asks for entries, which are collected and not told again."""
    return any(_lists(clause) for clause in clauses(question))


def _lists(clause: str) -> bool:
    if (asked := REQUEST.search(clause)) is not None:
        return asked["plural"] is None or plural(asked["plural"])
    return foreign.lists(clause) or any(
        (found := which.search(clause)) is not None and plural(found["things"]) for which in WHICH
    )


def wants_count(question: str) -> bool:
    """It asks how many there are of what a text tells one by one, or how often it speaks of something."""
    return any(_as_list(clause) or OCCURRENCES.search(clause) or foreign.counts(clause) for clause in clauses(question))


def counted(question: str) -> str:
    """What it has counted, asked for as a list; "" for others, and where the number may stand in the text ("how many
    days may a guest stay", "how many seats are there in the hall")."""
    clause = only_clause(question)
    return _as_list(clause) or foreign.counted(clause)


def _as_list(clause: str) -> str:
    match = next((found for count in COUNTS if (found := count.search(clause))), None)
    if match is None:
        return ""
    things, said = match["things"].strip(), match.groupdict()
    rest, who, verb = (str(said.get(name) or "").strip() for name in ("rest", "who", "verb"))
    if NUMBERED.search(things) or MORE_ASKED.search(f"{things} {rest} {said.get('tail') or ''}") or NOBODY.match(who):
        return ""
    if MANY.search(things) and (match.re.pattern == INSIDE.pattern or verb.casefold() in HOLDS):
        return ""
    if who:
        does = " does " in f" {clause[match.end('things') : match.start('who')]} "
        return f"List all {things} that {who} {_third_person(verb) if does else verb}{said['tail']}."
    if verb:
        return f"List all {things} that {verb} {rest}."
    return _list_of(things, rest)


def _list_of(things: str, rest: str) -> str:
    there = re.match(r"there\b\s*", rest, re.IGNORECASE)
    inside = re.match(r"(?:in|on|by|throughout)\b", rest, re.IGNORECASE)
    told = rest[there.end() :] if there else rest if inside else rest and f"that are {rest}"
    if there and not _told_one_by_one(things, told):
        return ""
    return f"List all {things} {told}".rstrip() + "."


def _third_person(verb: str) -> str:
    first, _, more = verb.partition(" ")
    if first.casefold() == "have":
        return "has"
    ending = "es" if first.endswith(("s", "sh", "ch")) else "s"
    return f"{first}{ending} {more}".strip()


def _told_one_by_one(things: str, where: str) -> bool:
    """What "there is" is told each by itself; in doubt its number is."""
    if IN_TEXT.match(where) or TOLD_ONE_BY_ONE.search(things):
        return True
    return not where and not MANY.search(things)


def collects(question: str) -> bool:
    """Its answer is a list of entries, each from its own place."""
    return wants_list(question) or bool(counted(question))
