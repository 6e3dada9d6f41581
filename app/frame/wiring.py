"""Who hears whom: signals of the features and of the workspace, connected in one place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from app.chat.draft import not_yet
from app.frame.attaching import show_attach_menu
from app.widgets.fonts import MissingFonts

if TYPE_CHECKING:
    from app.core.records import Message
    from app.window import Window


def connect(window: Window) -> None:
    _connect_features(window)
    _connect_events(window)


def _connect_features(window: Window) -> None:
    library, conversations, chat = window.library, window.conversations, window.chat
    controller, dialogs, status = window.controller, window.dialogs, window.status
    conversations.chosen.connect(window.conversation_chosen)
    conversations.new_wanted.connect(window.new_conversation)
    conversations.trash_wanted.connect(dialogs.trash)
    conversations.loaded.connect(window.conversations_loaded)
    conversations.failed.connect(chat.show_failure)
    conversations.renamed.connect(window.put_conversation)
    library.open_wanted.connect(window.open_document)
    library.ask_wanted.connect(window.ask_about)
    library.report_wanted.connect(dialogs.report)
    library.changed.connect(controller.names_changed)
    library.changed.connect(window.reading.follow)
    controller.changed.connect(lambda _: window.reading.follow())
    for changed in (library.changed, controller.changed, controller.opened, window.reader.shown):
        changed.connect(lambda *_: window.reading.offer())
    chat.shown_wanted.connect(window.reading.attach_shown)
    library.removed.connect(window.reader.close_document)
    library.collections.ask_wanted.connect(controller.changing.set_scope)
    library.activity.connect(status.show_import)
    status.cancel_wanted.connect(library.importing.cancel)
    status.stop_reading_wanted.connect(lambda: _stop_reading(window))
    status.read_on_wanted.connect(lambda: _read_on(window))
    status.models_wanted.connect(dialogs.models)
    chat.add_wanted.connect(library.importing.choose_files)
    chat.sample_wanted.connect(library.importing.add_sample)
    chat.offer.manager_wanted.connect(dialogs.models)
    chat.header.opened.connect(window.open_document)
    chat.header.attach.connect(lambda source: show_attach_menu(window, source))
    chat.transcript.opened.connect(window.open_citation)
    chat.header.scope_wanted.connect(window.scopes.show_menu)
    window.search.opened.connect(window.open_found)
    window.reader.about.connect(window.scopes.ask_about_selection)
    chat.transcript.link.connect(window.offer_link)
    controller.opened.connect(window.conversation_opened)
    controller.opened.connect(status.show_answers)
    window.reader.shown.connect(lambda _: window.moved.emit())
    controller.turn_ended.connect(window.turn_ended)
    controller.moved.connect(window.show_new)
    window.cache.fork_wanted.connect(conversations.fork)
    window.services.tasks.failed.connect(dialogs.show_failure)
    fonts = MissingFonts(window.services.toasts)
    library.changed.connect(lambda: fonts.look(library.rows.names().values()))
    controller.opened.connect(lambda _, messages: fonts.look(text for said in messages for text in _texts(said)))
    window.services.events.turn_done.connect(lambda event: fonts.look(_texts(event.message)))


def _texts(message: Message) -> Iterator[str]:
    yield message.text
    if message.lookup is not None:
        yield from (found.text for found in message.lookup.passages)


def _connect_events(window: Window) -> None:
    bus, library, conversations = window.services.events, window.library, window.conversations
    bus.turn_phase.connect(conversations.show_phase)
    bus.turn_phase.connect(window.search.show_phase)
    bus.turn_started.connect(window.turn_started)
    bus.turn_done.connect(window.turn_done)
    bus.state_report.connect(conversations.show_state)
    bus.state_report.connect(window.cache.show_state)
    bus.stats.connect(window.cache.show_stats)
    bus.conversation_changed.connect(lambda event: window.put_conversation(event.conversation))
    bus.conversation_purged.connect(conversations.purged)
    bus.import_queued.connect(library.importing.queued)
    bus.import_progress.connect(library.importing.progress)
    bus.import_done.connect(library.importing.done)
    bus.import_done.connect(lambda event: window.reader.taken_in(event.document))
    bus.import_failed.connect(library.importing.failed)
    bus.import_cancelled.connect(library.importing.cancelled)
    bus.indexing_ended.connect(library.importing.indexing_ended)
    bus.document_read.connect(library.document_read)
    bus.model_loaded.connect(library.model_loaded)
    bus.model_loading.connect(window.model.loading)
    bus.model_loaded.connect(window.model.loaded)
    bus.model_loaded.connect(lambda _: _bring_back(window))
    bus.model_failed.connect(window.model.failed)
    bus.notice.connect(window.notice)


def _bring_back(window: Window) -> None:
    """The conversation on the screen was chosen before there was a model to bring its state back for."""
    chosen, states = window.controller.conversation, window.services.workspace.states
    if chosen is not None:
        window.services.tasks.read(lambda: states.focus(chosen.id), None, not_yet)


def _read_on(window: Window) -> None:
    workspace = window.services.workspace
    window.services.tasks.read(lambda: workspace.ahead.go_on())


def _stop_reading(window: Window) -> None:
    workspace = window.services.workspace
    window.services.tasks.read(lambda: workspace.ahead.hold())
