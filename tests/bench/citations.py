"""Answers over a corpus, and an independent check of what stands under them as citations.

    PAGEKEEP_CORPUS=FOLDER python tests/bench/citations.py --model MODEL.gguf --set SET.jsonl [--set ...] [--out FILE]
    PAGEKEEP_CORPUS=FOLDER python tests/bench/citations.py --answers FILE

The check is app/core/citation_check.py; `pagekeep index evaluate SET --answers` does the same over the library. Prints
one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from app.core.citation_check import Answered, figures
from app.core.events import ImportDone, ImportFailed, TurnDone, TurnError
from app.core.paths import Paths
from app.core.records import Message, StoredCitation
from app.core.settings import Settings
from app.core.workspace import Workspace
from engine.messages import ModelFailed, ModelLoaded, Sampling


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
        self.workspace.documents.add(path)
        event = self.until(ImportDone, ImportFailed)
        assert isinstance(event, ImportDone), event
        return int(event.document.id)

    def ask(self, document: int, question: str) -> Message | None:
        conversation = self.workspace.chats.new(documents=(document,))
        self.workspace.chats.set_mode(conversation.id, "passages")
        self.workspace.ask(conversation.id, question)
        event = self.until(TurnDone, TurnError)
        self.workspace.states.drop(conversation.id, disk=True)
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


def _answer(line: dict[str, Any]) -> Answered:
    citations = tuple(StoredCitation.from_json(citation) for citation in line["citations"])
    return Answered(line["question"], line["answer"], citations)


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
    paths = {line["pdf"]: corpus / line["pdf"] for line in lines}
    found = figures([_answer(line) for line in lines], lambda citation: paths[citation.document])
    result = {**asdict(found), "seconds": round(time.time() - started)}
    print(json.dumps(result, ensure_ascii=False))


if __name__ == "__main__":
    main()
