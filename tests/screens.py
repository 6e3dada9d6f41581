"""Pictures of every main screen, taken from the real application with a real model and real documents.

    python tests/screens.py --model MODEL.gguf [--long LONG.pdf] [--out FOLDER] [--size 1280x800]
    python tests/screens.py --model MODEL.gguf --readme

Runs without a display. The pictures go to tests/screens (not under version control) unless told otherwise; those of
README (with the starter model) to assets/screens.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication, QWidget

from app.reader.page_view import Place
from engine.messages import Sampling
from tests.app.gui.driver import Driver
from tests.app.gui.pdf_files import add_outline, long_pages, write_pdf

SAMPLE = Path(__file__).resolve().parents[1] / "assets" / "sample" / "pagekeep-sample.pdf"
QUESTIONS = ("How long is a deleted conversation kept in the trash?", "How long is a deleted document kept?")
SAMPLING = Sampling(  # the starter answers both right, in a line
    temperature=0.2, repetition_penalty=1.1, seed=12, max_tokens=160, stop=("\n",)
)
READER, SEARCH, CACHE, TIMING = range(4)


class Camera:
    """Takes pictures of widgets into a folder, numbered in the order of taking."""

    def __init__(self, driver: Driver, out: Path, prefix: str = "") -> None:
        self.driver = driver
        self.out = out
        self.prefix = prefix
        out.mkdir(parents=True, exist_ok=True)

    def take(self, name: str, widget: QWidget | None = None, settle: float = 0.6) -> Path:
        self.driver.wait(settle)
        path = self.out / f"{self.prefix}{name}.png"
        (widget or self.driver.window).grab().save(str(path))
        print(path)
        return path

    def dialog(self, name: str, open_it: object) -> None:
        """With the window behind it, as the reader sees it."""
        open_it()
        self.driver.until(lambda: self.driver.window.dialogs.shown is not None, "no dialog")
        self.driver.wait(0.5)
        shown = self.driver.window.dialogs.shown
        picture = self.driver.window.grab()
        from PySide6.QtGui import QPainter

        painter = QPainter(picture)
        offset = self.driver.window.rect().center() - shown.rect().center()
        painter.drawPixmap(offset, shown.grab())
        painter.setPen(self.driver.desktop.theme.color("line_strong"))
        painter.drawRect(shown.rect().translated(offset))
        painter.end()
        path = self.out / f"{self.prefix}{name}.png"
        picture.save(str(path))
        print(path)
        shown.close()
        self.driver.wait(0.1)


def first_start(application: QApplication, out: Path, size: tuple[int, int]) -> None:
    with tempfile.TemporaryDirectory() as home:
        driver = Driver(application, Path(home))
        try:
            driver.show()
            driver.window.resize(*size)
            Camera(driver, out).take("01-first-start")
        finally:
            driver.quit()


def answer(driver: Driver, question: str, camera: Camera | None = None, name: str = "") -> None:
    here = driver.window.controller.on_screen
    before = len(driver.answered(here))
    driver.ask(question)
    if camera is not None:
        driver.until(lambda: _phase(driver) in ("reading", "answering"), "not asked")
        camera.take(name, settle=0.4)
    driver.until(lambda: len(driver.answered(here)) > before or driver.errors, "no answer")


def _phase(driver: Driver) -> str:
    live = driver.window.controller.live.get(driver.window.controller.on_screen)
    return live.phase.phase if live is not None and live.phase is not None else ""


def best_citation(driver: Driver) -> object:
    """A citation of the answers on the screen, checked ones first."""
    answers = driver.window.chat.transcript.answers
    cited = [c for answer in answers for c in answer.message.citations if c.ranges]
    order = ("exact", "altered", "matched")
    return min(cited, key=lambda c: order.index(c.verified), default=None) if cited else None


def open_sample(driver: Driver, model: Path, size: tuple[int, int]) -> None:
    """The window with the model loaded and the sample document in a conversation."""
    driver.show()
    driver.window.resize(*size)
    driver.desktop.workspace.update_settings(sampling=SAMPLING)
    driver.use_model(model)
    driver.add(SAMPLE)
    driver.until(driver.documents, "not attached")


def tour(application: QApplication, home: Path, out: Path, model: Path, long: Path, size: tuple[int, int]) -> None:
    driver = Driver(application, home)
    camera = Camera(driver, out)
    window = driver.window
    try:
        open_sample(driver, model, size)
        camera.take("02-ready")
        answer(driver, QUESTIONS[0], camera, "03-reading")
        answer(driver, QUESTIONS[1])
        citation = best_citation(driver)
        if citation is not None:
            window.open_citation(citation)
        camera.take("04-citation", settle=1.5)
        window.tabs.setCurrentIndex(CACHE)
        camera.take("05-cache", settle=1.0)
        window.tabs.setCurrentIndex(TIMING)
        camera.take("06-timing")
        window.tabs.setCurrentIndex(SEARCH)
        camera.take("06-search", settle=1.0)
        long_import(driver, camera, long)
        dialogs(driver, camera)
        priced_draft(driver, camera, "Which of these rules came first, and where is it written?")
        driver.desktop.theme.choose("dark")
        window.tabs.setCurrentIndex(READER)
        camera.take("13-dark", settle=1.0)
        window.tabs.setCurrentIndex(TIMING)
        camera.take("14-dark-timing", settle=1.0)
        window.tabs.setCurrentIndex(SEARCH)
        camera.take("14-dark-search", settle=1.0)
        camera.dialog("14-dark-preferences", window.dialogs.preferences)
        driver.desktop.theme.choose("light")
        window._drop.setGeometry(window.rect())
        window._drop.show()
        window._drop.raise_()
        camera.take("15-drop")
        window._drop.hide()
    finally:
        driver.quit()


def readme(application: QApplication, home: Path, out: Path, model: Path, size: tuple[int, int]) -> None:
    """A citation, light, and the timing panel, dark."""
    driver = Driver(application, home / "home")
    camera, window = Camera(driver, out), driver.window
    try:
        open_sample(driver, model, size)
        first = window.controller.on_screen
        for question in QUESTIONS:
            answer(driver, question)
        driver.new_conversation()
        driver.add(write_pdf(home / "harbour rules.pdf", long_pages("harbour", 6)))
        driver.until(driver.documents, "not attached")
        answer(driver, "After how many days is item 42 checked?")
        driver.until(lambda: not window.library.rows.imports(), "still importing")
        driver.choose(first)
        window.open_citation(best_citation(driver))
        camera.take("citation", settle=1.5)
        driver.desktop.theme.choose("dark")
        window.tabs.setCurrentIndex(TIMING)
        camera.take("timing-dark", settle=1.5)
    finally:
        driver.quit()


def priced_draft(driver: Driver, camera: Camera, draft: str) -> None:
    composer = driver.window.chat.composer
    composer.editor.setPlainText(draft)
    driver.until(lambda: "new token" in composer.meter.accessibleDescription(), "no price")
    camera.take("12-draft-with-price")
    assert composer.text() == draft, "the picture shows no draft"
    composer.editor.clear()


def long_import(driver: Driver, camera: Camera, long: Path) -> None:
    window = driver.window
    first = window.controller.on_screen
    driver.new_conversation()
    window.library.importing.add([long])
    driver.until(window.library.rows.imports, "no import")
    camera.take("07-import-running", settle=0.8)
    driver.until(lambda: long.name in window.library.rows.names().values(), "not imported")
    document = window.library.rows.documents()[0]
    window.reader.open(document.id, Place(min(20, document.pages - 1)))
    window.tabs.setCurrentIndex(READER)
    window.reader.toolbar.outline.click()
    camera.take("08-reader-outline", settle=1.5)
    window.reader.toolbar.outline.click()
    driver.choose(first)


def harbour_rules(folder: Path) -> Path:
    """300 pages in chapters and sections."""
    path = write_pdf(folder / "harbour rules.pdf", long_pages("harbour", 300))
    chapters = ("Berths", "Lights and signals", "Cargo", "Fees", "Winter", "Accidents")
    sections = ("Who may apply", "What is checked", "After how many days")
    outline = []
    for number, chapter in enumerate(chapters, 1):
        first = (number - 1) * 50
        outline.append((f"{number} {chapter}", first, 0))
        outline += [(f"{number}.{n + 1} {section}", first + 15 * n + 2, 1) for n, section in enumerate(sections)]
    return add_outline(path, outline)


def dialogs(driver: Driver, camera: Camera) -> None:
    window = driver.window
    here = window.controller.on_screen
    camera.dialog("09-models", window.dialogs.models)
    camera.dialog("10-preferences", window.dialogs.preferences)
    camera.dialog("11-shortcuts", window.dialogs.shortcuts)
    camera.dialog("11-about", window.dialogs.about)
    camera.dialog("11-intake", lambda: window.dialogs.report(window.library.rows.documents()[0]))
    window.conversations.list.setCurrentIndex(window.conversations.rows.index(1))
    window.conversations.delete()
    camera.take("11-undo")
    shown = window.conversations.rows.rowCount()
    driver.desktop.toasts._action.click()
    driver.until(lambda: window.conversations.rows.rowCount() > shown, "undo did nothing")
    driver.wait(0.5)  # what came back is shown; its draft replaces one that is typed before
    driver.choose(here)
    driver.wait(0.5)


def main() -> int:
    options = parse(sys.argv[1:])
    application = QApplication.instance() or QApplication([])
    if options.readme:
        with tempfile.TemporaryDirectory() as folder:
            readme(application, Path(folder), SAMPLE.parents[1] / "screens", options.model, options.size)
        return 0
    first_start(application, options.out, options.size)
    with tempfile.TemporaryDirectory() as folder:
        long = options.long or harbour_rules(Path(folder))
        tour(application, Path(folder) / "home", options.out, options.model, long, options.size)
    return 0


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--long", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "screens")
    parser.add_argument("--readme", action="store_true")
    parser.add_argument("--size", type=lambda t: tuple(map(int, t.split("x"))), default=(1280, 800))
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
