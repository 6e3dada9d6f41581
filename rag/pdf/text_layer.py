"""Writes recognised words into a PDF as invisible text over the scan, so that every reader of it finds and marks them.

Run as `python -m rag.pdf.text_layer`; a request is {path, save_as, pages: {index: words of `recognise_worker`},
memory_bytes}. Frames: done or error. The shapes of the font are boxes, its codes are UTF-16 units (PDF 32000-1, 9.7 and
9.10.3).
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pypdf
from pypdf.generic import ArrayObject, DecodedStreamObject, DictionaryObject, NameObject, NumberObject, TextStringObject

from rag.pdf import box_font
from rag.pdf.process import end_with_parent, lower_limits, private_output, send

FONT = "/PagekeepText"
WIDTH = box_font.WIDTH / box_font.UNITS  # of the font size, for each character
CODES = """/CIDInit /ProcSet findresource begin 12 dict begin begincmap
/CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def
/CMapName /Adobe-Identity-UCS def /CMapType 2 def
1 begincodespacerange <0000> <FFFF> endcodespacerange
{count} beginbfrange
{ranges}
endbfrange endcmap CMapName currentdict /CMap defineresource pop end end"""


def main() -> None:
    out = private_output()
    request = json.loads(sys.stdin.buffer.readline())
    end_with_parent(request["parent"])
    lower_limits(request.get("memory_bytes"))
    try:
        add_layer(request["path"], request["save_as"], {int(n): words for n, words in request["pages"].items()})
        send(out, {"type": "done"})
    except Exception as error:
        send(out, {"type": "error", "message": f"{type(error).__name__}: {error}"})


def add_layer(path: str, save_as: str, pages: dict[int, Sequence[Sequence[Any]]]) -> None:
    """Copies the PDF with the words of the given pages added; what is there stays as it is."""
    reader = pypdf.PdfReader(path, strict=False)
    if reader.is_encrypted:
        reader.decrypt("")
    writer = pypdf.PdfWriter(clone_from=reader)
    font = writer._add_object(_font(writer))
    for index, words in pages.items():
        page = writer.pages[index]
        resources = page.setdefault(NameObject("/Resources"), DictionaryObject()).get_object()
        fonts = resources.setdefault(NameObject("/Font"), DictionaryObject()).get_object()
        fonts[NameObject(FONT)] = font
        _append(writer, page, "\n".join(["BT 3 Tr", *shown(words), "ET"]).encode("ascii"))
    writer.write(save_as)


def _append(writer: pypdf.PdfWriter, page: pypdf.PageObject, content: bytes) -> None:
    """Adds to the page's content, which is shut in so that it leaves no state behind."""
    before = page.get("/Contents")
    parts = before.get_object() if before is not None else ArrayObject()
    old = list(parts) if isinstance(parts, ArrayObject) else [before]
    streams = [_stream(writer, b"q\n"), *old, _stream(writer, b"\nQ\n"), _stream(writer, content)]
    page[NameObject("/Contents")] = ArrayObject(streams)


def _stream(writer: pypdf.PdfWriter, data: bytes) -> Any:
    stream = DecodedStreamObject()
    stream.set_data(data)
    return writer._add_object(stream.flate_encode())


def shown(words: Sequence[Sequence[Any]]) -> Iterator[str]:
    """Operators for each word: the font as high as the word's box, stretched to its length."""
    for text, x, y, right_x, right_y, up_x, up_y in words:
        letters = text.rstrip("\n")
        units = letters.encode("utf-16-be", "replace")
        length, size = math.hypot(right_x, right_y), math.hypot(up_x, up_y)
        if not units or length == 0 or size == 0:
            continue
        a, b = right_x / length, right_y / length
        stretch = 100 * length / (WIDTH * size * len(units) / 2)
        yield f"{a:.5f} {b:.5f} {-b:.5f} {a:.5f} {x:.3f} {y:.3f} Tm {FONT} {size:.3f} Tf {stretch:.3f} Tz"
        gap = "" if text.endswith("\n") else "0020"
        yield f"<{units.hex()}{gap}> Tj"


def _font(writer: pypdf.PdfWriter) -> DictionaryObject:
    name = NameObject("/PagekeepText")
    system = {"/Registry": TextStringObject("Adobe"), "/Ordering": TextStringObject("Identity")}
    descriptor = _dictionary(
        {
            "/Type": NameObject("/FontDescriptor"),
            "/FontName": name,
            "/Flags": NumberObject(4),
            "/FontBBox": ArrayObject(NumberObject(n) for n in (0, 0, 500, 1000)),
            "/ItalicAngle": NumberObject(0),
            "/Ascent": NumberObject(1000),
            "/Descent": NumberObject(0),
            "/CapHeight": NumberObject(1000),
            "/StemV": NumberObject(80),
            "/FontFile2": _stream(writer, box_font.box_font()),
        }
    )
    descendant = _dictionary(
        {
            "/Type": NameObject("/Font"),
            "/Subtype": NameObject("/CIDFontType2"),
            "/BaseFont": name,
            "/CIDSystemInfo": _dictionary({**system, "/Supplement": NumberObject(0)}),
            "/DW": NumberObject(round(1000 * WIDTH)),
            "/FontDescriptor": writer._add_object(descriptor),
            "/CIDToGIDMap": _stream(writer, b"\0\1" * 65536),
        }
    )
    ranges = "\n".join(f"<{n:02x}00> <{n:02x}ff> <{n:02x}00>" for n in range(256))
    codes = CODES.format(count=256, ranges=ranges).encode("ascii")
    return _dictionary(
        {
            "/Type": NameObject("/Font"),
            "/Subtype": NameObject("/Type0"),
            "/BaseFont": name,
            "/Encoding": NameObject("/Identity-H"),
            "/DescendantFonts": ArrayObject([writer._add_object(descendant)]),
            "/ToUnicode": _stream(writer, codes),
        }
    )


def _dictionary(items: dict[str, Any]) -> DictionaryObject:
    return DictionaryObject({NameObject(key): value for key, value in items.items()})


if __name__ == "__main__":
    main()
