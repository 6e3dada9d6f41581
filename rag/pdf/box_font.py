"""A TrueType font of one glyph that fills its box (OpenType 1.9, tables head to maxp).

Readers take a character's place on the page from its glyph's shape, so invisible text marks exactly the boxes it was
stretched to, whatever its letters are.
"""

from __future__ import annotations

import struct

UNITS = 1000  # to the em, which is the box's height
WIDTH = 500


def box_font() -> bytes:
    """The font file; glyph 0 is empty, glyph 1 the box."""
    outline = struct.pack(">5h2H4B8h", 1, 0, 0, WIDTH, UNITS, 3, 0, *[1] * 4, 0, 0, WIDTH, 0, 0, UNITS, 0, -UNITS)
    outline += bytes(-len(outline) % 4)
    tables = {
        b"glyf": outline,
        b"head": struct.pack(
            ">4I2H2q4h2H3h", 0x10000, 0x10000, 0, 0x5F0F3CF5, 0, UNITS, 0, 0, 0, 0, WIDTH, UNITS, 0, 8, 2, 0, 0
        ),
        b"hhea": struct.pack(">I3hH11hH", 0x10000, UNITS, 0, 0, WIDTH, 0, 0, WIDTH, 1, 0, 0, 0, 0, 0, 0, 0, 1),
        b"hmtx": struct.pack(">Hhh", WIDTH, 0, 0),
        b"loca": struct.pack(">3H", 0, 0, len(outline) // 2),
        b"maxp": struct.pack(">I14H", 0x10000, 2, 4, 1, 0, 0, 2, *[0] * 8),
    }
    start = 12 + 16 * len(tables)
    directory, data = struct.pack(">I4H", 0x10000, len(tables), 64, 2, 16 * len(tables) - 64), b""
    for tag, table in tables.items():
        directory += struct.pack(">4s3I", tag, _checksum(table), start + len(data), len(table))
        data += table + bytes(-len(table) % 4)
    return directory + data


def _checksum(table: bytes) -> int:
    padded = table + bytes(-len(table) % 4)
    return int(sum(struct.unpack(f">{len(padded) // 4}I", padded))) & 0xFFFFFFFF
