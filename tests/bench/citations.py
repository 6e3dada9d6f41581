"""Answers over a corpus, and an independent check of what stands under them as citations.

    PAGEKEEP_CORPUS=FOLDER python tests/bench/citations.py --model MODEL.gguf --set SET.jsonl [--set ...] [--out FILE]
    PAGEKEEP_CORPUS=FOLDER python tests/bench/citations.py --answers FILE

Nothing of `rag` takes part in the check: pages are opened with pypdfium2, and the words of the answer are looked for
in the characters that the citation marks. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import queue
import re
import sys
import tempfile
import time
import unicodedata
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from app.core.events import ImportDone, ImportFailed, TurnDone, TurnError
from app.core.paths import Paths
from app.core.records import Message, StoredCitation
from app.core.settings import Settings
from app.core.workspace import Workspace
from engine.messages import ModelFailed, ModelLoaded, Sampling

MARKER = re.compile(r"\[\d{1,4}(?:\s*[,;]\s*\d{1,4})*\]")


def plain(text: str) -> str:
    """Letters and digits only, compatibility forms resolved: line ends, hyphens and ligatures make no difference."""
    return "".join(c for c in unicodedata.normalize("NFKC", text).casefold() if c.isalnum())


class Pages:
    """Text and labels of PDFs, straight from PDFium."""

    def __init__(self) -> None:
        self._open: dict[Path, pypdfium2.PdfDocument] = {}

    def text(self, path: Path, page: int, start: int, count: int) -> str:
        text_page = self._document(path)[page].get_textpage()
        return text_page.get_text_range(start, count, errors="ignore")

    def label(self, path: Path, page: int) -> str:
        """As printed; the file's page number where it has none."""
        document = self._document(path)
        size = pdfium.FPDF_GetPageLabel(document, page, None, 0)
        buffer = ctypes.create_string_buffer(size)
        pdfium.FPDF_GetPageLabel(document, page, buffer, size)
        return buffer.raw.decode("utf-16-le").rstrip("\0") or str(page + 1)

    def _document(self, path: Path) -> pypdfium2.PdfDocument:
        if path not in self._open:
            self._open[path] = pypdfium2.PdfDocument(path)
        return self._open[path]


def check(answer: str, citation: StoredCitation, path: Path, pages: Pages) -> list[str]:
    """What is wrong with a citation; [] when nothing is."""
    wrong = []
    for part, label in zip(citation.ranges, citation.page_labels, strict=True):
        if pages.label(path, part.page_index) != label:
            wrong.append(f"label {label!r}, the file says {pages.label(path, part.page_index)!r}")
    source = "".join(pages.text(path, r.page_index, r.char_start, r.char_count) for r in citation.ranges)
    if plain(citation.quote) != plain(source):
        wrong.append(f"the quote is not what is marked: {citation.quote!r}, {source!r}")
    if citation.verified == "exact":
        end = citation.answer_start + citation.answer_count
        claim = MARKER.sub(" ", answer[citation.answer_start : end])
        if not _same_words(claim, source):
            wrong.append(f"not verbatim: {claim!r} in {source!r}")
    return wrong


def _same_words(claim: str, source: str) -> bool:
    """All marked characters stand in the claim, or all of the claim is marked."""
    ours, theirs = plain(claim), plain(source)
    return bool(theirs) and (theirs in ours or (bool(ours) and ours in theirs))


class Run:
    def __init__(self, home: Path, model: Path, tokens: int) -> None:
        self.events: queue.SimpleQueue[object] = queue.SimpleQueue()
        sampling = Sampling(temperature=0.0, max_tokens=tokens)
        self.workspace = Workspace(
            Paths.below(home).create(), self.events.put, Settings(sampling=sampling), make_vectors=False
        )
        self.workspace.load_model(model)
        self.until(ModelLoaded, ModelFailed)

    def until(self, *kinds: type) -> object:
        while True:
            event = self.events.get(timeout=600)
            if isinstance(event, kinds):
                return event

    def add(self, path: Path) -> int:
        self.workspace.import_document(path)
        event = self.until(ImportDone, ImportFailed)
        assert isinstance(event, ImportDone), event
        return int(event.document.id)

    def ask(self, document: int, question: str) -> Message | None:
        conversation = self.workspace.new_conversation(documents=(document,))
        self.workspace.set_mode(conversation.id, "passages")
        self.workspace.ask(conversation.id, question)
        event = self.until(TurnDone, TurnError)
        self.workspace.drop_state(conversation.id, disk=True)
        return event.message if isinstance(event, TurnDone) else None


def answered(options: argparse.Namespace, corpus: Path) -> list[dict[str, Any]]:
    """A line per question: what was asked, the answer, its citations."""
    asked = [json.loads(line) for path in options.set for line in path.read_text().splitlines() if line.strip()]
    lines = []
    with tempfile.TemporaryDirectory() as home:
        run = Run(Path(home), options.model, options.tokens)
        documents = {name: run.add(corpus / name) for name in dict.fromkeys(question["pdf"] for question in asked)}
        for number, question in enumerate(asked, 1):
            message = run.ask(documents[question["pdf"]], question["question"])
            if message is not None:
                citations = [asdict(citation) for citation in message.citations]
                lines.append({**question, "answer": message.text, "citations": citations})
            print(f"{number} of {len(asked)}", end="\r", file=sys.stderr, flush=True)
        run.workspace.close()
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, help="makes the answers")
    parser.add_argument("--set", type=Path, action="append", default=[])
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--out", type=Path, help="gets an answer a line")
    parser.add_argument("--answers", type=Path, help="checks those of an earlier --out instead")
    options = parser.parse_args()
    corpus, started = Path(os.environ["PAGEKEEP_CORPUS"]), time.time()
    if options.answers:
        lines = [json.loads(line) for line in options.answers.read_text().splitlines()]
    else:
        lines = answered(options, corpus)
    if options.out:
        options.out.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    pages, verdicts, wrong, borne_out = Pages(), Counter[str](), [], 0
    for line in lines:
        citations = [StoredCitation.from_json(citation) for citation in line["citations"]]
        verdicts.update(citation.verified for citation in citations)
        borne_out += any(citation.verified != "not_found" for citation in citations)
        for citation in citations:
            faults = check(line["answer"], citation, corpus / line["pdf"], pages)
            wrong += [f"{line['question']}: {fault}" for fault in faults]
    result = {
        "answers": len(lines), "with_citation": borne_out, "citations": dict(verdicts), "wrong": wrong,
        "seconds": round(time.time() - started),
    }  # fmt: skip
    print(json.dumps(result, ensure_ascii=False))


if __name__ == "__main__":
    main()
