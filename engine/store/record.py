"""A record of a segment: encoding and checked decoding of its header. FORMAT.md describes the bytes."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import xxhash

from engine.kv.keys import Ids, Key, Roles
from kernels.checksum import cpu as checksums

MAGIC = b"PKRECORD"
VERSION = 1
BLOCK = 4096  # records start at multiples of this; so do the payloads of pages
SUM_BYTES = 16
SMALL_ALIGNMENT = 64
STRETCH = 2 << 20  # of a segment: as much as one entry maps
_LAYER_BYTES = SUM_BYTES + 8
MAX_HEADER = 1 << 20
NO_KEY = Key(bytes(16))
SHIFTED = 1  # a flag: the page was moved after a removal, or follows one that was

# magic, version, kind, group, layout | key, parent, fingerprint | tokens, layers, start, serial
# | header bytes, payload offset, payload bytes, summary bytes, extra bytes, record bytes | flags, text
# lengths | extra sum
_FIXED = struct.Struct("<8s4H16s16s32s2I2Q2I4QI2H16s")


class Kind(IntEnum):
    PAGE = 0
    TAIL = 1
    HEAD = 2
    FORGET = 3
    STATE = 4


_KINDS = {int(kind): kind for kind in Kind}


def checksum(data: bytes | npt.NDArray[np.uint8]) -> bytes:
    """xxh3-128, big-endian digest."""
    if isinstance(data, bytes):
        return xxhash.xxh3_128_digest(data)
    state = xxhash.xxh3_128()  # its update lets other threads run meanwhile, the function in one call does not
    state.update(data.data)
    return state.digest()


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _payload_offset(kind: int, header_bytes: int) -> int:
    return _up(header_bytes, BLOCK if kind == Kind.PAGE else SMALL_ALIGNMENT)


def _extra_offset(payload_offset: int, payload_bytes: int, summary_bytes: int) -> int:
    return _up(payload_offset + payload_bytes + summary_bytes, SMALL_ALIGNMENT)


@dataclass(frozen=True)
class RecordHeader:
    """What a record says about itself.

    Attributes:
        key, parent, ids, roles, start: the page or tail. A HEAD has the last page's key as `key`, its
            tail's key (or
            zeros) as `parent`, and the conversation's number of tokens as `start`. A STATE's key is keys.state_key.
        group: index of the layer group in the layout; sums: one checksum of 16 bytes per layer of the group, in
            payload order.
        serial: nanoseconds since 1970 at which it was written: the later of two heads counts.
        summary_bytes: reserved for a per-page minimum and maximum of K behind the payload, 0 in this version.
        extra_bytes: float32 hidden vector behind that; extra_sum: its checksum.
        flags: bit 0: shifted page (approximate).
    """

    kind: Kind
    fingerprint: bytes
    key: Key = NO_KEY
    parent: Key = NO_KEY
    start: int = 0
    ids: Ids = field(default_factory=lambda: np.empty(0, np.int32))
    roles: Roles = field(default_factory=lambda: np.empty(0, np.uint8))
    group: int = 0
    layout_id: int = 0
    sums: bytes = b""
    stops: tuple[int, ...] = ()
    numerics: str = ""
    conversation: str = ""
    serial: int = 0
    payload_bytes: int = 0
    summary_bytes: int = 0
    extra_bytes: int = 0
    extra_sum: bytes = bytes(SUM_BYTES)
    flags: int = 0

    @property
    def header_bytes(self) -> int:
        texts = len(self.numerics.encode()) + len(self.conversation.encode())
        return _FIXED.size + 5 * len(self.ids) + SUM_BYTES + _LAYER_BYTES * (len(self.sums) // SUM_BYTES) + texts

    @property
    def payload_offset(self) -> int:
        return _payload_offset(self.kind, self.header_bytes)

    @property
    def extra_offset(self) -> int:
        return _extra_offset(self.payload_offset, self.payload_bytes, self.summary_bytes)

    @property
    def record_bytes(self) -> int:
        return _up(self.extra_offset + self.extra_bytes, BLOCK)

    def encode(self) -> bytes:
        """The header, padded to the payload's offset."""
        numerics, conversation = self.numerics.encode(), self.conversation.encode()
        fixed = _FIXED.pack(
            MAGIC, VERSION, self.kind, self.group, self.layout_id, self.key, self.parent, self.fingerprint,
            len(self.ids), len(self.sums) // SUM_BYTES, self.start, self.serial, self.header_bytes, self.payload_offset,
            self.payload_bytes, self.summary_bytes, self.extra_bytes, self.record_bytes, self.flags,
            len(numerics), len(conversation), self.extra_sum,
        )  # fmt: skip
        body = fixed + self.ids.astype("<i4").tobytes() + self.roles.tobytes() + self.sums
        body += np.array(self.stops, "<u8").tobytes() + numerics + conversation
        return (body + checksum(body)).ljust(self.payload_offset, b"\0")


def needs_more(data: bytes) -> int:
    """How many bytes decode() needs, judging by the first ones; 0 if this is no record."""
    if len(data) < _FIXED.size or data[:8] != MAGIC:
        return 0
    size = _FIXED.unpack_from(data)[12]
    return size if _FIXED.size < size <= MAX_HEADER else 0


def decode(data: bytes) -> RecordHeader | None:
    """The header at the start of `data`; None if it is damaged, of another version, or no record at all."""
    size = needs_more(data)
    if not size or len(data) < size:
        return None
    body, total = data[: size - SUM_BYTES], data[size - SUM_BYTES : size]
    if checksum(body) != total:
        return None
    try:
        return _parse(body)
    except (ValueError, KeyError, struct.error):  # a valid checksum over something this version would not write
        return None


def _parse(body: bytes) -> RecordHeader | None:
    (
        _, version, kind, group, layout, key, parent, fingerprint, tokens, layers, start, serial, size, at,
        payload, summary, extra, total, flags, n_numerics, n_conversation, extra_sum,
    ) = _FIXED.unpack_from(body)  # fmt: skip
    if version != VERSION:
        return None
    roles_at = _FIXED.size + 4 * tokens
    sums_at = roles_at + tokens
    stops_at = sums_at + SUM_BYTES * layers
    texts_at = stops_at + 8 * layers
    end = texts_at + n_numerics
    fits = end + n_conversation == len(body) == size - SUM_BYTES and at == _payload_offset(kind, size)
    if not fits or total != _up(_extra_offset(at, payload, summary) + extra, BLOCK):
        return None
    return RecordHeader(
        _KINDS[kind], fingerprint, Key(key), Key(parent), start,
        np.frombuffer(body, "<i4", tokens, _FIXED.size).astype(np.int32, copy=False),
        np.frombuffer(body, np.uint8, tokens, roles_at), group, layout, body[sums_at:stops_at],
        struct.unpack_from(f"<{layers}Q", body, stops_at), body[texts_at:end].decode(), body[end:].decode(), serial,
        payload, summary, extra, extra_sum, flags,
    )  # fmt: skip


def pieces_of(stops: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """int64 [layers, 2]: where each layer of a payload starts and stops."""
    ends = np.array(stops, np.int64)
    starts = np.concatenate((np.zeros(1, np.int64), -(-ends[:-1] // SMALL_ALIGNMENT) * SMALL_ALIGNMENT))
    return np.stack([starts[: len(ends)], ends], axis=1)


def intact_record(record: npt.NDArray[np.uint8]) -> bool:
    """Whether a whole record (uint8 [record bytes]) has the checksums of its header, and that its own."""
    header = decode(record[:MAX_HEADER].tobytes())
    return header is not None and intact(header, record[header.payload_offset :][: header.payload_bytes])


def intact(header: RecordHeader, payload: npt.NDArray[np.uint8]) -> bool:
    """Whether `payload` (uint8 [payload bytes]) has the header's checksums, layer by layer."""
    if header.payload_bytes != len(payload):
        return False
    try:
        return checksums.intact([(payload, pieces_of(header.stops), header.sums)])[0]
    except ValueError:  # stops outside the payload
        return False
