"""A question that was not asked at all: why, above the composer, with what can be done about it."""

from __future__ import annotations

from functools import partial

from app.chat.panel import ChatPanel
from app.core.errors import DoesNotFit, NothingReadable, UserError
from app.services import Services


def show_refusal(services: Services, panel: ChatPanel, error: UserError) -> None:
    if isinstance(error, DoesNotFit) and error.ways:
        panel.show_ways(error.overrun, error.ways, True, error.whole)
    elif isinstance(error, NothingReadable) and error.documents:
        panel.show_error(error, partial(_read_scans, services, panel, error.documents), "Read the scans")
    else:
        panel.show_error(error)


def _read_scans(services: Services, panel: ChatPanel, documents: tuple[int, ...]) -> None:
    """Progress stands at the documents in the library; the question waits in the composer."""
    panel.clear_errors()
    for document in documents:
        services.tasks.write(partial(services.workspace.documents.recognise, document))
