"""The commands and their options; those about models and measurements are in `parser_models`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from app.cli.arguments import COUNT, POSITIVE, Parser, add_engine_options, add_model_options, command, given, group
from app.cli.numbers import number, size
from app.cli.parser_models import add_bench, add_model

if TYPE_CHECKING:
    from app.cli.arguments import Commands

REASONING = ("on", "off", "low", "medium", "high")
WAYS = ("recompute", "shift", "fork", "summary", "larger")
MODES = (
    "whole: read all at once; retrieve: look passages up; survey: read all of it part by part, with notes; "
    "default: auto"
)


def build_parser() -> Parser:
    parser = Parser(
        prog="pagekeep",
        description="Chat with long PDFs on your own machine; nothing is read twice. "
        "Without a command the window opens.",
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_ask(commands)
    _add_start(commands)
    _add_index(commands)
    _add_chat(commands)
    _add_trash(commands)
    _add_cache(commands)
    add_model(commands)
    add_bench(commands)
    return parser


def _add_ask(commands: Commands) -> None:
    ask = command(commands, "ask", "Answer a question about documents, with citations")
    ask.add_argument("files", nargs="*", metavar="FILE", help="PDF files or names of documents it is about")
    ask.add_argument("-q", "--question", metavar="TEXT", help="needed unless --resume or --rest is given")
    ask.add_argument("--conversation", metavar="NAME", help="continue it, or begin it under this name")
    ask.add_argument("--mode", choices=("whole", "retrieve", "survey", "auto"), help=MODES)
    ask.add_argument("--resume", action="store_true", help="go on with the last answer of --conversation that was cut")
    ask.add_argument("--rest", action="store_true", help="read the pages that the last answer did not rest on")
    ask.add_argument("--pages", type=given, metavar="PAGES", help="look only into these printed pages: 10-20,35 or iv")
    ask.add_argument("--chapter", type=given, metavar="NAME", help="look only into this chapter: its number or title")
    ask.add_argument("--collection", type=given, metavar="NAME", help="look into all documents of a collection")
    ask.add_argument("--everywhere", action="store_true", help="look into whole documents again")
    ask.add_argument(
        "--overflow", type=_way, metavar="WAY",
        help="where the conversation is full: recompute (leave the oldest turns out), shift (the same, approximate and "
        "faster), fork or summary (a new conversation with a summary) or larger (load with a larger context)",
    )  # fmt: skip
    ask.add_argument("--limit-citations", action="store_true", help="no number without a passage can be written")
    ask.add_argument("--edit", type=POSITIVE, metavar="N", help="instead of message N and all that follows it")
    ask.add_argument("--reasoning", choices=REASONING, help="what the model takes; default: as it likes")
    ask.add_argument("--template", metavar="NAME", help="another of the model file's chat templates")
    ask.add_argument("--max-tokens", type=POSITIVE, metavar="N", help="length of the answer")
    _add_sampling_options(ask)
    add_model_options(ask)


def _way(name: str) -> str:
    """A way out of a full context; what it does is a name of it too."""
    if name not in WAYS:
        raise argparse.ArgumentTypeError(f"'{name}' is none of {', '.join(WAYS)}")
    return "fork" if name == "summary" else name


def _add_sampling_options(ask: Parser) -> None:
    """Names as in engine.messages.Sampling; what is not given is taken from the preferences."""
    ask.add_argument("--temperature", type=number(0), metavar="T", help="0: always the likeliest word")
    ask.add_argument("--seed", type=COUNT, metavar="N")
    ask.add_argument("--top-k", type=COUNT, metavar="N", help="only the N likeliest words; 0: all")
    ask.add_argument("--top-p", type=number(0, 1), metavar="P", help="only the likeliest words that make up P")
    ask.add_argument("--min-p", type=number(0, 1), metavar="P", help="only words P times as likely as the best")
    ask.add_argument("--repetition-penalty", type=number(0.01), metavar="R", help="1: none")
    ask.add_argument("--frequency-penalty", type=number(-2, 2), metavar="R", help="0: none")
    ask.add_argument("--presence-penalty", type=number(-2, 2), metavar="R", help="0: none")
    ask.add_argument("--stop", action="append", metavar="TEXT", help="end the answer before it (repeatable)")


def _add_start(commands: Commands) -> None:
    start = command(commands, "start", "Answer a question over the sample document, then open the window")
    start.add_argument("--no-window", action="store_true", help="only the answer on the terminal")
    add_engine_options(start)


def _add_index(commands: Commands) -> None:
    actions = group(commands, "index", "The documents in the library")
    add = command(actions, "add", "Take PDF files into the library")
    add.add_argument("files", nargs="+", metavar="FILE")
    add.add_argument("--words-only", action="store_true", help="no vectors: searched by words only")
    add.add_argument("--password", metavar="TEXT", help="for a protected file")
    remove = command(actions, "remove", "Move documents to the trash")
    remove.add_argument("names", nargs="+", metavar="NAME", help="a document's name, or its file")
    listed = command(actions, "ls", "List the documents")
    listed.add_argument("--collection", type=given, metavar="NAME", help="only those of this collection")
    collect = command(actions, "collect", "Put documents into a collection, or follow a folder with one")
    collect.add_argument("name", metavar="NAME", help="the collection; made if it is not there")
    collect.add_argument("files", nargs="*", metavar="FILE", help="PDF files, or names of documents")
    collect.add_argument("--follow", metavar="FOLDER", help="PDFs in it and below belong to the collection from now on")
    collect.add_argument("--remove", action="store_true", help="take FILEs out; without any: forget the collection")
    command(actions, "collections", "List the collections")
    command(actions, "scan", "Take in what is new in followed folders")
    model = command(actions, "model", "The model that finds by meaning; another one, once it has read all documents")
    model.add_argument("folder", nargs="?", metavar="FOLDER", help="in sentence-transformers' format; or 'default'")
    again = command(actions, "again", "Read anew what an older version read (the window does it by itself)")
    again.add_argument("names", nargs="*", metavar="NAME", help="these documents, whichever version read them")
    command(actions, "vectors", "Make what is missing for finding by meaning (the window does it by itself)")
    report = command(actions, "report", "What could be read of each page")
    report.add_argument("file", metavar="FILE", help="a PDF file, or the name of a document")
    ocr = command(actions, "ocr", "Read the scanned pages of a document (needs the extra 'ocr')")
    ocr.add_argument("file", metavar="FILE", help="a PDF file, or the name of a document")
    ocr.add_argument("--pages", type=given, metavar="PAGES", help="only these printed pages (3-7,12), else all scans")
    search = command(actions, "search", "Find passages")
    search.add_argument("text", metavar="TEXT")
    search.add_argument("--document", action="append", type=given, metavar="NAME", help="only in this one (repeatable)")
    search.add_argument("--collection", type=given, metavar="NAME", help="only in documents of this collection")
    search.add_argument("--pages", type=given, metavar="PAGES", help="only these printed pages of the one --document")
    search.add_argument("--chapter", type=given, metavar="NAME", help="only this chapter of the one --document")
    search.add_argument("--top", type=POSITIVE, default=10, metavar="K")
    evaluate = command(actions, "evaluate", "Recall of the search over a set of questions")
    evaluate.add_argument("set", metavar="SET.jsonl", help="a line each: pdf, question, pages (from 0), kind")
    evaluate.add_argument("--alone", action="store_true", help="search only the question's own document")
    evaluate.add_argument("--words-only", action="store_true", help="without vectors")
    evaluate.add_argument("--answers", action="store_true", help="ask the questions and check the answers' citations")
    evaluate.add_argument("--model", metavar="PATH", help="answers; a GGUF file or the name of a known model")
    evaluate.add_argument("--max-tokens", type=POSITIVE, default=48, metavar="N", help="of an answer (default 48)")


def _add_chat(commands: Commands) -> None:
    actions = group(commands, "chat", "Conversations, and changes to their history")
    command(actions, "ls", "List the conversations")
    named = {
        "show": "The messages of a conversation, numbered",
        "fork": "A copy, up to a message, that shares the state",
        "trim": "Remove what comes after a message",
        "remove": "Take a turn, question and answer, out of the model's context",
        "undo": "Take the last edit, trim, remove or other answer back",
        "redo": "Take the last undo back",
        "rename": "Give a conversation another name",
        "instruct": "Show or set what the model is told in a conversation",
        "delete": "Move a conversation to the trash",
    }
    made = {name: command(actions, name, help) for name, help in named.items()}
    for action in made.values():
        action.add_argument("conversation", metavar="NAME", help="its title or id")
    made["rename"].add_argument("name", metavar="NEW", help="the new name")
    made["instruct"].add_argument("text", nargs="?", metavar="TEXT", help="'' removes them; without it they are shown")
    made["instruct"].add_argument("--anyway", action="store_true", help="keep what looks like a clock or a random id")
    made["fork"].add_argument("--name", metavar="NAME", help="of the copy")
    for name in ("fork", "trim", "remove"):
        wanted = name != "fork"
        made[name].add_argument("--at", type=POSITIVE, metavar="N", required=wanted, help="the message's number")
    made["remove"].add_argument("--shift", action="store_true", help="move the rest up instead (approximate)")


def _add_trash(commands: Commands) -> None:
    actions = group(commands, "trash", "Deleted conversations and documents")
    command(actions, "ls", "What is in the trash")
    restore = command(actions, "restore", "Take something out of the trash again")
    restore.add_argument("names", nargs="+", metavar="NAME", help="a conversation's title or id, a document's name")
    empty = command(actions, "empty", "Delete for good, with what the model has read of it")
    empty.add_argument("names", nargs="*", metavar="NAME", help="only these; default: all that is in the trash")


def _add_cache(commands: Commands) -> None:
    actions = group(commands, "cache", "What is kept of what the model has read")
    command(actions, "ls", "Kept state by conversation")
    remove = command(actions, "rm", "Remove what is kept of conversations or of imported states; texts stay")
    remove.add_argument("names", nargs="+", metavar="NAME", help="as 'cache ls' shows them, or ids")
    remove.add_argument("--force", action="store_true", help="also what is pinned")
    show = command(actions, "show", "The pages of a conversation")
    show.add_argument("conversation", metavar="NAME", help="its title or id")
    diff = command(actions, "diff", "Where two conversations part")
    diff.add_argument("first", metavar="NAME")
    diff.add_argument("second", metavar="NAME")
    log = command(actions, "log", "What was done with the kept state, latest last")
    log.add_argument("conversation", nargs="?", metavar="NAME", help="only what concerns it")
    log.add_argument("--last", type=POSITIVE, default=50, metavar="N")
    log.add_argument("--level", choices=("warn", "info", "debug"), default="info")
    export = command(actions, "export", "Write a conversation's state into one file, for another machine")
    export.add_argument("conversation", metavar="NAME")
    export.add_argument("file", metavar="FILE")
    taken = command(actions, "import", "Take an exported state in; it is checked first")
    taken.add_argument("file", metavar="FILE")
    pin = command(actions, "pin", "Never evict a conversation's pages")
    pin.add_argument("conversation", metavar="NAME")
    pin.add_argument("--off", action="store_true", help="let them be evicted again")
    command(actions, "stat", "Sizes of the store")
    budget = command(actions, "budget", "Show or set how much memory and disk state may take")
    budget.add_argument("--ram", type=size(0.1, 4096), metavar="SIZE", help="memory, as 4G or 500M; the model on top")
    budget.add_argument("--disk", type=size(0.1, 65536), metavar="SIZE", help="disk, as 50G")
    command(actions, "verify", "Check every page of the store")
    command(actions, "gc", "Remove what nobody needs")
