"""What a question wants: an answer from a few passages, or something for which everything has to be read."""

from __future__ import annotations

import re
from typing import Literal

from rag import question_foreign as foreign
from rag.late_patterns import late
from rag.question_lists import wants_count, wants_list
from rag.question_sides import compared, compares_all
from rag.question_words import DOCUMENT, NAMED_DOCUMENT, PARTS, clauses

QuestionKind = Literal["normal", "summary", "list", "count", "compare", "compare_all"]

_ADJECTIVES = r"(?:(?!(?:of|in|on|from|for|about|to)\b)[\w'-]+\s+){0,4}?"
_LENGTHS = (
    r"(?:(?:very|short|brief|quick|concise|executive|detailed|general|high-level|one-page|plain"
    r"|[\w-]+[\s-](?:sentence|page|paragraph|line|word|point))\s+){0,3}"
)
_MAKE = r"(?:give|write|provide|make|create|produce|prepare|draft|get|show|compose|generate|offer)\s+(?:me\s+|us\s+)?"
_SHORT = (
    r"(?:summar(?:y|ies)|overview|synopsis|abstract|outline|recap|digest|gist|highlights|(?:key|main)\s+\w+s\b|tl;?dr"
    r"|(?:most important|essential)\s+\w+s\b|bullet points)"
)
_ENDS = r"(?=\s*(?:of|for|from|on|about|in|with|that|covering|and|$))"
_CHIEF = r"(?:main|key|central|major|principal|core|chief|essential|crucial|most important|most interesting)"
_POINTS = (
    r"(?:points|ideas|arguments|findings|takeaways|take-aways|themes|messages|conclusions|topics|results|claims|theses"
    r"|lessons|insights|facts|things|subjects|issues|highlights|messages)"
)
_OF_ALL = rf"(?:\s+(?:of|in|from|made in|made by)\s+(?:{DOCUMENT}|the\s+authors?|all\b.*))?"
_CALLED = r"(?:gist|essence|upshot|bottom line|takeaway|synopsis|plot|storyline|message)"
_SAYS = r"(?:talk about|deal with|cover|contain|say|tell us)"
_BRIEFLY = r"(?:\s+(?:exactly|in (?:short|brief|general|a nutshell)))?"
SUMMARY = late(
    rf"^(?:summari[sz]e|sum\s+up|recap|recapitulate|condense|abridge|boil\s+down|tl;?dr)\b|^outline\s+(?:the|this|these|its|how|what|why|all|each|{PARTS})\b"
    rf"|^(?:{_MAKE}(?:(?:an?|the|some|your)\s+)?{_ADJECTIVES}|(?:an?\s+|the\s+)?{_LENGTHS}){_SHORT}{_ENDS}"
    rf"|^what\s+(?:is|are|were)\s+(?:the\s+|its\s+|some\s+)?{_CHIEF}\s+{_POINTS}\b"
    rf"|^what\s+(?:are|were)\s+(?:the\s+|its\s+)?(?:conclusions|findings|takeaways|highlights){_OF_ALL}$"
    rf"|^what\s+(?:is|are)\s+(?:the\s+)?{_CALLED}\b(?:\s+of\b|$)"
    rf"|^what\s+(?:is|are)\s+{DOCUMENT}\s+(?:all\s+)?about{_BRIEFLY}$|^what\s+{DOCUMENT}\s+(?:is|are)\s+(?:all\s+)?about$"
    rf"|^what\s+do(?:es)?\s+{NAMED_DOCUMENT}\s+{_SAYS}{_BRIEFLY}$"
    rf"|^what\s+(?:is|are)\s+(?:the\s+)?(?:topic|subject|theme|purpose|aim|goal|objective)s?\s+of\s+{DOCUMENT}$"
    rf"|^what\s+is\s+(?:this|the)\s+(?:document|manual|guide|book|paper|report|pdf)\s+for$|^tell\s+(?:me|us)\s+(?:\w+\s+)?about\s+{DOCUMENT}$"
    rf"|^(?:what|which)\s+(?:\w+\s+)?(?:topics|themes|subjects)\s+do(?:es)?\s+{DOCUMENT}\b"
    r"|^(?:what|which)\s+(?:\w+\s+)?(?:topics|themes|subjects)\s+are\s+(?:covered|discussed|treated|addressed)\b"
    rf"|^(?:briefly\s+)?(?:explain|describe|present)\s+(?:{DOCUMENT}|the\s+(?:contents?|plot|storyline|whole|entire)\b)",
    re.IGNORECASE,
)
FILE_NAME = late(r"\S+\.pdf\b", re.IGNORECASE)
_NO_TOPIC = """
a about aim all an and appendix are arguments article as book bottom brief briefly bullet can central chapter chapters
claims concise conclusion conclusions content contents contract core could cover covered deal describe detailed
discussed document documents does dr essence everything executive explain facts file files findings first five for
four general get gist give goal good highlights i ideas important in insights into is it its key last lessons like
line long main major make manual me message messages most need next novel nutshell objective of one outline overview
page pages paper paragraph part parts pdf please plot point points previous principal produce provide purpose quick
recap report results say second section sections sentence sentences short so something story study subject sum
summaries summarise summarize summary synopsis takeaway takeaways talk tell text that the theme themes thesis things
third this three tl tldr topic topics two up upshot us want was were what whole with words would write you
"""
NO_TOPIC_WORDS = frozenset(_NO_TOPIC.split())


def question_kind(question: str) -> QuestionKind:
    """What has to be read for it: two topics compared need passages of each, all else but "normal" needs everything.
    Questions about the catalogue are told apart elsewhere (`rag.inventory`)."""
    if compared(question):
        return "compare"
    if wants_count(question):
        return "count"
    if wants_list(question):
        return "list"
    if compares_all(question):
        return "compare_all"
    return "summary" if any(SUMMARY.search(c) or foreign.summarises(c) for c in clauses(question)) else "normal"


def wants_whole(question: str) -> bool:
    """A few passages cannot answer this question."""
    return question_kind(question) not in ("normal", "compare")


def wants_summary(question: str) -> bool:
    """It asks what a document says, about nothing in particular: every part of it has an answer."""
    words = {word.casefold() for word in re.findall(r"[^\W\d]+", FILE_NAME.sub("document", question))}
    return question_kind(question) == "summary" and words <= NO_TOPIC_WORDS | foreign.NO_TOPIC_WORDS
