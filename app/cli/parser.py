"""The commands and their options."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NoReturn

from app.cli.numbers import number, whole_number
from app.core.errors import UserError

KV_TYPES = ("f32", "f16", "bf16", "q8", "q4")
BACKENDS = ("cpu", "reference", "gpu", "fake")
PEERS = ("llama-cpp-python", "ik-llama-cpp-python", "xllamacpp")
MODES = (
    "whole: read all at once; retrieve: look passages up; survey: read all of it part by part, with notes; "
    "default: auto"
)
COUNT = whole_number(0)
POSITIVE = whole_number(1)


class Parser(argparse.ArgumentParser):
    """Wrong usage is told as every other error is."""

    def error(self, message: str) -> NoReturn:
        raise UserError("The command is not understood.", f"{message}.", f"See '{self.prog} --help'.")


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
    _add_cache(commands)
    _add_model(commands)
    _add_bench(commands)
    return parser


if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[Parser]


def _command(commands: Commands, name: str, help: str) -> Parser:
    parser: Parser = commands.add_parser(name, help=help, description=help)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _group(commands: Commands, name: str, help: str) -> Commands:
    parser = commands.add_parser(name, help=help, description=help)
    return parser.add_subparsers(dest="action", metavar="ACTION", required=True)


def _add_model_options(parser: Parser) -> None:
    parser.add_argument("--model", metavar="PATH", help="a GGUF file or the name of a known model")
    _add_engine_options(parser)


def _add_engine_options(parser: Parser) -> None:
    """Fields of engine.messages.EngineSettings (`app.cli.session.engine_options`); what is not given is taken from the
    preferences."""
    parser.add_argument("--threads", type=POSITIVE, metavar="N", help="default: physical cores")
    parser.add_argument("--speculation", choices=("on", "off"), help="draft from earlier text; default: on")
    parser.add_argument("--backend", choices=BACKENDS, help="default: cpu; 'fake' is a slow stand-in for a GPU")
    _add_sizes(parser)
    _add_placement(parser)


def _add_ask(commands: Commands) -> None:
    ask = _command(commands, "ask", "Answer a question about documents, with citations")
    ask.add_argument("files", nargs="*", metavar="FILE", help="PDF files the conversation is about")
    ask.add_argument("-q", "--question", metavar="TEXT", help="needed unless --resume or --rest is given")
    ask.add_argument("--conversation", metavar="NAME", help="continue it, or begin it under this name")
    ask.add_argument("--mode", choices=("whole", "retrieve", "survey", "auto"), help=MODES)
    ask.add_argument("--resume", action="store_true", help="go on with the last answer of --conversation that was cut")
    ask.add_argument("--rest", action="store_true", help="read the pages that the last answer did not rest on")
    ask.add_argument("--pages", metavar="RANGE", help="look only into these printed pages, as 10-20 or iv")
    ask.add_argument("--chapter", metavar="NAME", help="look only into this chapter: its number or title")
    ask.add_argument("--collection", metavar="NAME", help="look into all documents of a collection")
    ask.add_argument("--everywhere", action="store_true", help="look into whole documents again")
    ask.add_argument(
        "--overflow", choices=("recompute", "shift", "fork", "larger"), metavar="WAY",
        help="where the conversation is full: recompute (leave the oldest turns out), shift (the same, approximate and "
        "faster), fork (a new conversation with a summary) or larger (load with a larger context)",
    )  # fmt: skip
    ask.add_argument("--limit-citations", action="store_true", help="no number without a passage can be written")
    ask.add_argument("--edit", type=POSITIVE, metavar="N", help="instead of message N and all that follows it")
    ask.add_argument("--reasoning", choices=("on", "off"), help="for models that can switch it; default: as they like")
    ask.add_argument("--template", metavar="NAME", help="another of the model file's chat templates")
    ask.add_argument("--max-tokens", type=POSITIVE, metavar="N", help="length of the answer")
    _add_sampling_options(ask)
    _add_model_options(ask)


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
    start = _command(commands, "start", "Answer a question over the sample document, then open the window")
    start.add_argument("--no-window", action="store_true", help="only the answer on the terminal")


def _add_index(commands: Commands) -> None:
    actions = _group(commands, "index", "The documents in the library")
    add = _command(actions, "add", "Take PDF files into the library")
    add.add_argument("files", nargs="+", metavar="FILE")
    add.add_argument("--words-only", action="store_true", help="no vectors: searched by words only")
    add.add_argument("--password", metavar="TEXT", help="for a protected file")
    remove = _command(actions, "remove", "Move documents to the trash")
    remove.add_argument("names", nargs="+", metavar="NAME", help="a document's name, or its file")
    listed = _command(actions, "ls", "List the documents")
    listed.add_argument("--collection", metavar="NAME", help="only those of this collection")
    collect = _command(actions, "collect", "Put documents into a collection, or follow a folder with one")
    collect.add_argument("name", metavar="NAME", help="the collection; made if it is not there")
    collect.add_argument("files", nargs="*", metavar="FILE", help="PDF files, or names of documents")
    collect.add_argument("--follow", metavar="FOLDER", help="PDFs in it and below belong to the collection from now on")
    collect.add_argument("--remove", action="store_true", help="take FILEs out; without any: forget the collection")
    _command(actions, "collections", "List the collections")
    _command(actions, "scan", "Take in what is new in followed folders")
    report = _command(actions, "report", "What could be read of each page")
    report.add_argument("file", metavar="FILE", help="a PDF file, or the name of a document")
    ocr = _command(actions, "ocr", "Read the scanned pages of a document (needs the extra 'ocr')")
    ocr.add_argument("file", metavar="FILE", help="a PDF file, or the name of a document")
    search = _command(actions, "search", "Find passages")
    search.add_argument("text", metavar="TEXT")
    search.add_argument("--document", action="append", metavar="NAME", help="only in this one (repeatable)")
    search.add_argument("--collection", metavar="NAME", help="only in documents of this collection")
    search.add_argument("--pages", metavar="RANGE", help="only these printed pages of the one --document")
    search.add_argument("--chapter", metavar="NAME", help="only this chapter of the one --document")
    search.add_argument("--top", type=POSITIVE, default=10, metavar="K")
    evaluate = _command(actions, "evaluate", "Recall of the search over a set of questions")
    evaluate.add_argument("set", metavar="SET.jsonl", help="a line each: pdf, question, pages (from 0), kind")
    evaluate.add_argument("--alone", action="store_true", help="search only the question's own document")
    evaluate.add_argument("--words-only", action="store_true", help="without vectors")
    evaluate.add_argument("--answers", action="store_true", help="ask the questions and check the answers' citations")
    evaluate.add_argument("--model", metavar="PATH", help="answers; a GGUF file or the name of a known model")
    evaluate.add_argument("--max-tokens", type=POSITIVE, default=48, metavar="N", help="of an answer (default 48)")


def _add_chat(commands: Commands) -> None:
    actions = _group(commands, "chat", "Conversations, and changes to their history")
    _command(actions, "ls", "List the conversations")
    named = {
        "show": "The messages of a conversation, numbered",
        "fork": "A copy, up to a message, that shares the state",
        "trim": "Remove what comes after a message",
        "remove": "Take a turn, question and answer, out of the model's context",
        "undo": "Take the last trim or remove back",
        "rename": "Give a conversation another name",
        "delete": "Move a conversation to the trash",
    }
    made = {name: _command(actions, name, help) for name, help in named.items()}
    for action in made.values():
        action.add_argument("conversation", metavar="NAME", help="its title or id")
    made["rename"].add_argument("name", metavar="NEW", help="the new name")
    made["fork"].add_argument("--name", metavar="NAME", help="of the copy")
    for name in ("fork", "trim", "remove"):
        wanted = name != "fork"
        made[name].add_argument("--at", type=POSITIVE, metavar="N", required=wanted, help="the message's number")
    made["remove"].add_argument("--shift", action="store_true", help="move the rest up instead (approximate)")


def _add_cache(commands: Commands) -> None:
    actions = _group(commands, "cache", "What is kept of what the model has read")
    _command(actions, "ls", "Kept state by conversation")
    show = _command(actions, "show", "The pages of a conversation")
    show.add_argument("conversation", metavar="NAME", help="its title or id")
    diff = _command(actions, "diff", "Where two conversations part")
    diff.add_argument("first", metavar="NAME")
    diff.add_argument("second", metavar="NAME")
    log = _command(actions, "log", "What was done with the kept state, latest last")
    log.add_argument("conversation", nargs="?", metavar="NAME", help="only what concerns it")
    log.add_argument("--last", type=POSITIVE, default=50, metavar="N")
    log.add_argument("--level", choices=("warn", "info", "debug"), default="info")
    export = _command(actions, "export", "Write a conversation's state into one file, for another machine")
    export.add_argument("conversation", metavar="NAME")
    export.add_argument("file", metavar="FILE")
    taken = _command(actions, "import", "Take an exported state in; it is checked first")
    taken.add_argument("file", metavar="FILE")
    pin = _command(actions, "pin", "Never evict a conversation's pages")
    pin.add_argument("conversation", metavar="NAME")
    pin.add_argument("--off", action="store_true", help="let them be evicted again")
    _command(actions, "stat", "Sizes of the store")
    _command(actions, "verify", "Check every page of the store")
    _command(actions, "gc", "Remove what nobody needs")


def _add_model(commands: Commands) -> None:
    actions = _group(commands, "model", "Models")
    _command(actions, "ls", "List the models")
    info = _command(actions, "info", "What a model file says about itself")
    info.add_argument("file", nargs="?", metavar="FILE", help="default: the chosen model")
    fetch = _command(actions, "fetch", "Get a model: 'starter', or owner/repo/file.gguf from the hub")
    fetch.add_argument("what", metavar="WHAT")
    _add_plan(actions)
    check = _command(actions, "check", "Whether a model file is sound: structure, sampled weights, a short run")
    check.add_argument("file", metavar="FILE")
    _add_engine_options(check)
    logits = _command(actions, "logits", "Logits of a list of tokens, for comparisons")
    logits.add_argument("file", metavar="FILE")
    logits.add_argument("--tokens", required=True, metavar="TOKENS.json", help="a list of ids")
    logits.add_argument("--out", required=True, metavar="OUT.npz")
    logits.add_argument("--greedy", type=COUNT, default=0, metavar="N", help="also the N ids that follow")
    _add_engine_options(logits)


def _add_plan(actions: Commands) -> None:
    plan = _command(actions, "plan", "Weights, KV and compute memory per device, before anything is loaded")
    plan.add_argument("file", metavar="FILE")
    plan.add_argument("--vram", type=number(0), default=0.0, metavar="GB", help="the best plan for so much GPU memory")
    _add_engine_options(plan)


def _add_placement(parser: Parser) -> None:
    parser.add_argument("-ngl", "--gpu-layers", metavar="N", help="the last N layers on the GPU, or 'all'")
    parser.add_argument("--cpu-moe", action="store_true", default=None, help="all experts stay on the CPU")
    parser.add_argument("--n-cpu-moe", type=COUNT, metavar="N", help="those of the first N layers")
    parser.add_argument(
        "-ot", "--override-tensor", action="append", metavar="REGEX=DEVICE", help="by tensor name (repeatable)"
    )


def _add_sizes(parser: Parser) -> None:
    parser.add_argument("--ctx", type=POSITIVE, metavar="N", help="context length in tokens")
    parser.add_argument("--batch", type=POSITIVE, metavar="N", help="prompt tokens of a step")
    parser.add_argument("--ubatch", type=POSITIVE, metavar="N", help="tokens that pass through the layers at once")
    parser.add_argument("--kv", choices=KV_TYPES, help="type of the KV state")
    parser.add_argument("--kv-v", choices=KV_TYPES, help="of the V state, where it is to be another")


def _add_bench(commands: Commands) -> None:
    actions = _group(commands, "bench", "Measure this machine and a model")
    sweep = _command(actions, "sweep", "Prompt and answer rates over the depth of the context")
    sweep.add_argument("--prompt", type=POSITIVE, default=512, metavar="N")
    sweep.add_argument("--generate", type=POSITIVE, default=32, metavar="N")
    _add_model_options(sweep)
    switch = _command(actions, "switch", "What coming back to a conversation costs, from memory and from disk")
    switch.add_argument("--tokens", type=POSITIVE, default=4096, metavar="N", help="length of the conversation")
    switch.add_argument("--question-tokens", type=POSITIVE, default=16, metavar="N")
    _add_model_options(switch)
    _add_machine_benches(actions)
    perplexity = _command(actions, "perplexity", "How well a model foresees a text; how far it is from a reference")
    perplexity.add_argument("file", metavar="FILE", help="a model file")
    perplexity.add_argument("text", metavar="TEXT", help="a text file (UTF-8)")
    perplexity.add_argument("--window", type=whole_number(8), default=512, metavar="N", help="tokens judged together")
    perplexity.add_argument(
        "--reference", metavar="LOGITS.npz", help="'tokens' and 'logits', as 'pagekeep model logits' writes them"
    )
    _add_engine_options(perplexity)


def _add_machine_benches(actions: Commands) -> None:
    compare = _command(actions, "compare", "This engine and another one, run alternately on the same file")
    compare.add_argument("file", nargs="?", metavar="FILE", help="a model file; default: the chosen model")
    compare.add_argument("--peer", required=True, choices=PEERS)
    compare.add_argument("--rounds", type=POSITIVE, default=7, metavar="N", help="pairs of runs (default 7)")
    compare.add_argument("--prompt", type=POSITIVE, default=512, metavar="N")
    compare.add_argument("--generate", type=POSITIVE, default=64, metavar="N")
    compare.add_argument("--depth", type=COUNT, default=0, metavar="N", help="tokens in the context beforehand")
    roofline = _command(actions, "roofline", "What this machine gives, and what share of it a model reaches")
    roofline.add_argument("file", nargs="?", metavar="FILE", help="a model file; without it only the machine")
    roofline.add_argument("--prompt", type=POSITIVE, default=512, metavar="N")
    roofline.add_argument("--generate", type=POSITIVE, default=64, metavar="N")
    parallel = _command(actions, "parallel", "Several conversations on one prefix")
    parallel.add_argument("file", nargs="?", metavar="FILE", help="a model file; default: the chosen model")
    parallel.add_argument("--counts", type=POSITIVE, nargs="+", default=[1, 2, 4, 8, 10], metavar="N")
    parallel.add_argument("--prefix", type=POSITIVE, default=2048, metavar="N", help="tokens that all have in common")
    parallel.add_argument("--question-tokens", type=POSITIVE, default=16, metavar="N")
    parallel.add_argument("--generate", type=POSITIVE, default=64, metavar="N")
    parallel.add_argument("--peer", choices=PEERS[:1], help="the same with another engine")
    for bench in (compare, parallel):
        bench.add_argument("--peer-python", metavar="PATH", help="interpreter of the environment that has the peer")
    for bench in (compare, roofline, parallel):
        _add_engine_options(bench)
