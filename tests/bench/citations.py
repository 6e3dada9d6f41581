"""Answers over a corpus, and an independent check of what stands under them as citations.

    PAGEKEEP_CORPUS=FOLDER python tests/bench/citations.py --model MODEL.gguf --set SET.jsonl [--set ...] [--out FILE]
        [--embedder FOLDER] [--home FOLDER]
    PAGEKEEP_CORPUS=FOLDER python tests/bench/citations.py --answers FILE [--answers ...]

Two checks: app/core/citation_check.py compares an answer's words with the marked characters, and here they are looked
for in the whole text of the pages that are named, nothing but white space and hyphens set aside. FILE is of an earlier
--out, or what `pagekeep index evaluate SET --answers --json` printed. The second check is also tried on citations that
name the page after the right one, where it has to fail. Prints one JSON object.

A run that was stopped goes on with the first question that has no answer in --out; --home keeps its library. With an
embedder the documents are searched by meaning too.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pypdfium2

from app.cli.evaluate_answers import greedy
from app.core.citation_check import Answered, figures
from app.core.events import ImportDone, ImportFailed, TurnDone, TurnError
from app.core.paths import Paths
from app.core.records import Message, StoredCitation
from app.core.settings import Settings
from app.core.workspace import Workspace
from engine.messages import ModelFailed, ModelLoaded

MARKS = re.compile(r"\[[\d,; ]+\]")  # of passages, as the model writes them
SET_ASIDE = re.compile(r"[\s\ufffe\u00ad\u2010\u2011-]+")  # white space, PDFium's mark of a hyphen, hyphens


class Run:
    def __init__(self, home: Path, model: Path, tokens: int, embedder: Path | None) -> None:
        self.events: queue.SimpleQueue[object] = queue.SimpleQueue()
        settings = greedy(Settings(embedder=embedder), tokens)
        self.workspace = Workspace(
            Paths.below(home).create(), self.events.put, settings,
            make_vectors=embedder is not None, wait_for_vectors=embedder is not None,
        )  # fmt: skip
        self.workspace.load_model(model)
        self.until(ModelLoaded, ModelFailed)

    def until(self, *kinds: type) -> object:
        while True:
            event = self.events.get(timeout=600)
            if isinstance(event, kinds):
                return event

    def add(self, path: Path) -> int:
        self.workspace.documents.add(path)
        event = self.until(ImportDone, ImportFailed)
        assert isinstance(event, ImportDone), event
        return int(event.document.id)

    def wait_for_vectors(self) -> None:
        while not all(document.embedded for document in self.workspace.library.documents()):
            time.sleep(1)

    def ask(self, document: int, question: str) -> Message | None:
        conversation = self.workspace.chats.new(documents=(document,))
        self.workspace.chats.set_mode(conversation.id, "passages")
        self.workspace.ask(conversation.id, question)
        event = self.until(TurnDone, TurnError)
        self.workspace.states.drop(conversation.id, disk=True)
        return event.message if isinstance(event, TurnDone) else None

    def line(self, document: int, question: dict[str, Any]) -> dict[str, Any]:
        """The question with its answer (None where there came an error) and citations."""
        message = self.ask(document, question["question"])
        citations = [asdict(citation) for citation in message.citations] if message else []
        quoted = message.report.pages_say if message and message.report else ()
        answer = message.text if message else None
        return {**question, "answer": answer, "citations": citations, "pages_say": list(map(asdict, quoted))}


def answered(options: argparse.Namespace, corpus: Path) -> list[dict[str, Any]]:
    """A line per question: what was asked, the answer, its citations. Each is added to --out as it comes."""
    asked = [json.loads(line) for path in options.set for line in path.read_text().splitlines() if line.strip()]
    lines = read_answers(options.out) if options.out and options.out.exists() else []
    left = asked[len(lines) :]
    with tempfile.TemporaryDirectory() as home:
        run = Run(options.home or Path(home), options.model, options.tokens, options.embedder)
        documents = {name: run.add(corpus / name) for name in dict.fromkeys(question["pdf"] for question in asked)}
        if options.embedder:
            run.wait_for_vectors()
        for number, question in enumerate(left, len(lines) + 1):
            lines.append(run.line(documents[question["pdf"]], question))
            if options.out:
                with options.out.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(lines[-1], ensure_ascii=False) + "\n")
            print(f"{number} of {len(asked)}", end="\r", file=sys.stderr, flush=True)
        run.workspace.close()
    return [line for line in lines if line["answer"] is not None]


@dataclass
class WholePages:
    """Texts of pages without white space and hyphens, by PDF below `corpus` and index."""

    corpus: Path
    _texts: dict[tuple[str, int], str] = field(default_factory=dict)

    def text(self, pdf: str, page: int) -> str:
        if (pdf, page) not in self._texts:
            with pypdfium2.PdfDocument(self.corpus / pdf) as document:
                found = document[page].get_textpage().get_text_range() if page < len(document) else ""
            self._texts[pdf, page] = SET_ASIDE.sub("", found)
        return self._texts[pdf, page]


def not_on_their_pages(lines: Sequence[dict[str, Any]], pages: WholePages, beside: int = 0) -> Iterator[str]:
    """Citations shown as exact whose words of the answer do not stand on the pages they name, or `beside` those."""
    for line in lines:
        for citation in line["citations"]:
            if citation["verified"] == "exact":
                start = citation["answer_start"]
                claim = MARKS.sub("", line["answer"][start : start + citation["answer_count"]])
                named = dict.fromkeys(part["page_index"] + beside for part in citation["ranges"])
                text = "".join(pages.text(citation["document"], page) for page in named)
                wanted = SET_ASIDE.sub("", claim)
                if not wanted or wanted not in text:
                    yield f"{citation['document']} {[*named]}: {claim!r}"


def read_answers(path: Path) -> list[dict[str, Any]]:
    text = path.read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    return lines[0]["lines"] if len(lines) == 1 and "lines" in lines[0] else lines


def _answer(line: dict[str, Any]) -> Answered:
    cited, quoted = (
        tuple(StoredCitation.from_json(citation) for citation in line.get(key, ()))
        for key in ("citations", "pages_say")
    )
    return Answered(line["question"], line["answer"], cited, quoted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, help="makes the answers")
    parser.add_argument("--set", type=Path, action="append", default=[])
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--out", type=Path, help="gets an answer a line")
    parser.add_argument("--embedder", type=Path, help="searches by meaning too")
    parser.add_argument("--home", type=Path, help="keeps the documents there")
    parser.add_argument("--answers", type=Path, action="append", help="checks these instead")
    options = parser.parse_args()
    corpus, started = Path(os.environ["PAGEKEEP_CORPUS"]), time.time()
    if options.answers:
        lines = [line for path in options.answers for line in read_answers(path)]
    else:
        lines = answered(options, corpus)
    found = figures([_answer(line) for line in lines], lambda citation: corpus / citation.document)
    pages = WholePages(corpus)
    result = {
        **asdict(found),
        "exact_not_on_page": [*not_on_their_pages(lines, pages)],
        "exact_not_on_next_page": sum(1 for _ in not_on_their_pages(lines, pages, beside=1)),
        "seconds": round(time.time() - started),
    }
    print(json.dumps(result, ensure_ascii=False))


if __name__ == "__main__":
    main()
