"""What a restore reads, cut into parts (a layer group of a record) and runs (one request to the system)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.kv.disk import Location, ReadRequest
from engine.kv.layout import LayerGroup, PageLayout
from engine.store.packing import Form, Packer
from engine.store.record import MAX_HEADER

Bytes = npt.NDArray[np.uint8]
READ_BYTES = 2 << 20  # of one request: large enough for any disk, and still in the core's cache when it is checked
MAP_BYTES = 16 << 20  # of one turn of a thread with mapped pages: each costs waiting for the GIL a few times
COLD_BYTES = 4 << 20  # the same where some of it has to come from the disk: all threads read, and check, to the end
_PARTS = 256


@dataclass(frozen=True)
class Part:
    """One layer group of one request: where it lies and the memory it is read into.

    `head`: up to the payload; `whole`: payload of all groups in `layout`; `rest`: what follows the group's payload.
    `mapped`: all of them lie in this mapping.
    """

    request: int
    group: LayerGroup
    index: int
    at: Location
    layout: PageLayout
    form: Form
    head: Bytes
    whole: Bytes
    rest: Bytes
    mapped: Bytes | None = None

    @property
    def target(self) -> Bytes:
        return self.whole[self.group.start : self.group.stop]

    def pieces(self) -> list[memoryview]:
        return [piece.data for piece in (self.head, self.target, self.rest) if len(piece)]


def parts_of(requests: Sequence[ReadRequest], packer: Packer, damaged: Callable[[int], None]) -> Iterator[Part]:
    """`damaged(request)` is told of records whose places cannot be."""
    for number, request in enumerate(requests):
        layout = packer.tail_layout(request.record)
        whole = np.empty(layout.payload_bytes, np.uint8) if request.record.tail else request.payload
        for index, (group, at) in enumerate(zip(layout.groups, request.record.parts, strict=True)):
            if at is None:
                continue
            mapped = request.mapped
            rest = at.length - at.payload - (group.stop - group.start)
            if not (0 < at.payload <= MAX_HEADER and 0 <= rest <= MAX_HEADER):
                damaged(number)
                continue
            form = packer.form(layout, index)
            if mapped is not None:
                yield Part(number, group, index, at, layout, form, mapped[: at.payload], whole, mapped[:0], mapped)
                continue
            head, tail = np.empty(at.payload, np.uint8), np.empty(rest, np.uint8)
            yield Part(number, group, index, at, layout, form, head, whole, tail)


def runs_of(parts: Sequence[Part], mapped: int = MAP_BYTES) -> Iterator[list[Part]]:
    """Records that follow each other in a segment, up to READ_BYTES or, mapped, as many, and the system's limit of
    pieces."""
    run: list[Part] = []
    for part in parts:
        same = bool(run) and (run[-1].mapped is None) == (part.mapped is None)
        most = READ_BYTES if part.mapped is None else mapped
        if run and not (same and _follows(run[-1].at, part.at) and len(run) < _PARTS and _span(run[0], part) <= most):
            yield run
            run = []
        run.append(part)
    if run:
        yield run


def _follows(first: Location, second: Location) -> bool:
    return first.segment == second.segment and first.offset + first.length == second.offset


def _span(first: Part, last: Part) -> int:
    return last.at.offset + last.at.length - first.at.offset
