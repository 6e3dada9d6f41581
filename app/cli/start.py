"""`pagekeep start`: the first minute. A question over the sample document on the terminal, then the window."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from app.cli.ask import answer, report
from app.cli.commands import has_display, open_window
from app.cli.console import Console
from app.cli.opening import opened
from app.cli.session import Session, engine_options, open_session, stored_settings, with_engine_options
from app.cli.vectors import after_answer
from app.core.settings import Settings
from assets import sample_pdf
from rag.sizes import plural
from rag.types import Document

CONVERSATION = "First steps"
QUESTION = "How long is a deleted document kept?"


def run(options: Namespace, console: Console) -> None:
    settings = with_engine_options(stored_settings(_settings), **engine_options(options))
    with open_session(console, settings) as session:
        document, window = ask_about_sample(session, sample_pdf()), has_display() and not options.no_window
        if not window or console.as_json:  # the window does it by itself
            after_answer(session, [document.id], told=True)
    if options.no_window or console.as_json:
        return
    if window:
        open_window()
    else:
        console.note("There is no display, so no window opens: go on with 'pagekeep ask FILE -q QUESTION'.")


def _settings(settings: Settings) -> Settings:
    """The likeliest words, and not many: the starter model is small."""
    return replace(settings, sampling=replace(settings.sampling, temperature=0.0, max_tokens=120))


def ask_about_sample(session: Session, sample: Path) -> Document:
    console = session.console
    document = session.import_file(sample)
    session.workspace.load_model(session.model_path(None))
    loaded = session.wait_for_model()
    console.clear()
    console.text(f"{document.name}, {plural(document.pages, 'page')}; {loaded.name}")
    console.text(f"> {QUESTION}")
    with opened(session, CONVERSATION, [document]) as conversation:
        report(session, answer(session, conversation, QUESTION), conversation)
    return document
