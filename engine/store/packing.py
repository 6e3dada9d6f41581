"""Turns pages and tails into records: packed payloads, checksums, headers; and back, with every check."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from engine.kv.disk import DiskRecord, WriteRequest
from engine.kv.keys import Ids, Roles, token_bytes
from engine.kv.layout import LayerGroup, PageLayout, copy_rows
from engine.store.record import SHIFTED, SUM_BYTES, Kind, RecordHeader, checksum, pieces_of
from kernels.guarded import is_lost

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Form:
    """Where each layer of a group stops, and int64 [layers, 2] starts and stops, from its payload's start."""

    stops: tuple[int, ...]
    pieces: npt.NDArray[np.int64]

    @staticmethod
    def of(layout: PageLayout, group: LayerGroup) -> Form:
        stops = _stops(layout, group)
        return Form(stops, pieces_of(stops))


@dataclass(frozen=True)
class Packer:
    """Knows the layout and fingerprint of a model's records."""

    layout: PageLayout
    fingerprint: bytes

    def record_bytes(self, request: WriteRequest) -> int:
        """What the request will take on disk."""
        layout, extra = self._layout_of(request), _extra(request)
        headers = [
            self._header(request, layout, i, bytes(SUM_BYTES * len(g.layers)), extra)
            for i, g in enumerate(layout.groups)
            if _wanted(request, i)
        ]
        return sum(header.record_bytes for header in headers)

    def pack(self, request: WriteRequest) -> Iterator[tuple[RecordHeader, list[Bytes]]]:
        """A header and the bytes from the payload's offset on, for each layer group that is to be written."""
        layout, extra = self._layout_of(request), _extra(request)
        payload = request.payload
        if request.tail:
            payload = np.zeros(layout.payload_bytes, np.uint8)
            copy_rows(request.payload, self.layout, payload, layout, len(request.ids))
        for index, group in enumerate(layout.groups):
            if not _wanted(request, index):
                continue
            sums = b"".join(checksum(piece) for piece in _layers(payload, layout, group))
            if is_lost(request.payload):
                raise OSError(errno.EIO, "a mapped page was lost before it was written")
            header = self._header(request, layout, index, sums, extra)
            pieces = [payload[group.start : group.stop]]
            if len(extra) and index == 0:
                gap = header.extra_offset - header.payload_offset - header.payload_bytes
                pieces += [np.zeros(gap, np.uint8), extra]
            yield header, pieces

    def tail_layout(self, record: DiskRecord) -> PageLayout:
        return self.layout.sized(record.tokens) if record.tail else self.layout

    @cached_property
    def _page_forms(self) -> tuple[Form, ...]:
        return tuple(Form.of(self.layout, group) for group in self.layout.groups)

    def form(self, layout: PageLayout, group: int) -> Form:
        """Where the layers of a group lie in its payload."""
        return self._page_forms[group] if layout is self.layout else Form.of(layout, layout.groups[group])

    def agrees(self, header: RecordHeader, record: DiskRecord, group: int, form: Form, ids: Ids, roles: Roles) -> bool:
        """Whether a header read from disk is the wanted record's, for exactly these tokens."""
        kind = Kind.TAIL if record.tail else Kind.PAGE
        expected = (
            kind, self.fingerprint, record.key, record.parent, record.start, group, self.layout.layout_id, form.stops,
            record.numerics,
        )  # fmt: skip
        found = (
            header.kind, header.fingerprint, header.key, header.parent, header.start, header.group, header.layout_id,
            header.stops, header.numerics,
        )  # fmt: skip
        return expected == found and token_bytes(header.ids, header.roles) == token_bytes(ids, roles)

    def _layout_of(self, request: WriteRequest) -> PageLayout:
        return self.layout.sized(len(request.ids)) if request.tail else self.layout

    def _header(self, request: WriteRequest, layout: PageLayout, index: int, sums: bytes, extra: Bytes) -> RecordHeader:
        group = layout.groups[index]
        extra = extra if index == 0 else extra[:0]
        return RecordHeader(
            Kind.TAIL if request.tail else Kind.PAGE, self.fingerprint, request.key, request.parent, request.start,
            request.ids, request.roles, index, layout.layout_id, sums, _stops(layout, group), request.numerics,
            request.conversation if request.tail else "", time.time_ns(), group.stop - group.start,
            extra_bytes=len(extra), extra_sum=checksum(extra) if len(extra) else bytes(16),
            flags=SHIFTED if request.shifted else 0,
        )  # fmt: skip


def _wanted(request: WriteRequest, group: int) -> bool:
    return request.groups is None or group in request.groups


def _layers(payload: Bytes, layout: PageLayout, group: LayerGroup) -> Iterator[Bytes]:
    for layer in group.layers:
        start, stop = layout.layer_range(layer)
        yield payload[start:stop]


def _stops(layout: PageLayout, group: LayerGroup) -> tuple[int, ...]:
    """Where each layer ends, from the group's start in that layout."""
    start = layout.layer_range(group.layers[0])[0]
    return tuple(layout.layer_range(layer)[1] - start for layer in group.layers)


def _extra(request: WriteRequest) -> Bytes:
    hidden = request.hidden
    return np.empty(0, np.uint8) if hidden is None else np.ascontiguousarray(hidden, "<f4").view(np.uint8)


def hidden_of(header: RecordHeader, extra: Bytes) -> npt.NDArray[np.float32] | None:
    """The hidden vector kept with a tail, None if there is none or it is damaged."""
    if not header.extra_bytes or header.extra_bytes % 4 or checksum(extra) != header.extra_sum:
        return None
    return np.frombuffer(extra.tobytes(), "<f4").astype(np.float32)
