"""Small PDFs written by hand, each showing what real ones do."""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence
from pathlib import Path

import pypdf

from rag.pdf.box_font import box_font

PICTURE = "<picture>"  # as a page's only line: the page is one grey picture, like a scan
WORDS = [
    "harbour",
    "lantern",
    "orchard",
    "engine",
    "ledger",
    "compass",
    "velvet",
    "granite",
    "river",
    "window",
    "copper",
    "meadow",
    "signal",
    "anchor",
    "timber",
    "pepper",
    "saddle",
    "mirror",
    "bridge",
    "candle",
]


JAPANESE = (
    b"<< /Type /Font /Subtype /Type0 /BaseFont /HeiseiKakuGo-W5 /Encoding /UniJIS-UTF16-H /DescendantFonts ["
    b"<< /Type /Font /Subtype /CIDFontType0 /BaseFont /HeiseiKakuGo-W5 /DW 1000"
    b" /CIDSystemInfo << /Registry (Adobe) /Ordering (Japan1) /Supplement 5 >> >>] >>"
)


BOXES = b"/FontDescriptor 9 0 R /CIDToGIDMap 11 0 R"


def pdf_bytes(pages: Sequence[Sequence[str]]) -> bytes:
    """A PDF with one line of text per string, in Helvetica with WinAnsi encoding, Japanese in a CID font."""
    helvetica = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
    objects = [b"", helvetica, _picture(), JAPANESE]
    numbers = []
    for lines in pages:
        content = _content(lines)
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
        objects.append(
            b"<< /Type /Page /Parent 1 0 R /MediaBox [0 0 595 842] /Contents %d 0 R"
            b" /Resources << /Font << /F 2 0 R /J 4 0 R >> /XObject << /P 3 0 R >> >> >>" % len(objects)
        )
        numbers.append(len(objects))
    kids = b" ".join(b"%d 0 R" % n for n in numbers)
    objects[0] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(numbers))
    return _assembled([*objects, b"<< /Type /Catalog /Pages 1 0 R >>"])


def drawn_pdf(contents: Sequence[str], page: str = "/MediaBox [0 0 595 842]") -> bytes:
    """Pages with the given content streams and page entries. Fonts: F Helvetica, J Japanese, V any letters downwards,
    U any letters (codes are UTF-16 units; without shapes), R the same as boxes that have a height, N letters of which
    no Unicode map tells what they are."""
    helvetica = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
    ranges = b"\n".join(b"<%02x00> <%02xff> <%02x00>" % (n, n, n) for n in range(256))
    codes = b"1 begincodespacerange <0000> <FFFF> endcodespacerange 256 beginbfrange %s endbfrange" % ranges
    fonts = [
        helvetica,
        JAPANESE,
        _identity(b"/ToUnicode 8 0 R", BOXES).replace(b"Identity-H", b"Identity-V"),
        _identity(b"/ToUnicode 8 0 R"),
        _identity(b""),
    ]
    stream = b"<< /Length %d >>\nstream\n%s\nendstream"
    solid = _identity(b"/ToUnicode 8 0 R", BOXES)
    objects = [b"", _picture(), *fonts, stream % (len(codes), codes), *_boxes(), solid]
    numbers = []
    for content in contents:
        data = content.encode("latin-1")
        objects.append(stream % (len(data), data))
        objects.append(
            b"<< /Type /Page /Parent 1 0 R %s /Contents %d 0 R /Resources << /XObject << /P 2 0 R >>"
            b" /Font << /F 3 0 R /J 4 0 R /V 5 0 R /U 6 0 R /N 7 0 R /R 12 0 R >> >> >>" % (page.encode(), len(objects))
        )
        numbers.append(b"%d 0 R" % len(objects))
    objects[0] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(numbers), len(numbers))
    return _assembled([*objects, b"<< /Type /Catalog /Pages 1 0 R >>"])


def _identity(more: bytes, descendant: bytes = b"") -> bytes:
    return (
        b"<< /Type /Font /Subtype /Type0 /BaseFont /AAAAAA+Made /Encoding /Identity-H %s /DescendantFonts ["
        b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /AAAAAA+Made /DW 500"
        b" /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> %s >>] >>" % (more, descendant)
    )


def _boxes() -> list[bytes]:
    """What BOXES names: a font whose letters all are boxes. PDFium leaves letters without a shape out where they are
    written downwards."""
    stream = b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream"
    font, glyphs = zlib.compress(box_font()), zlib.compress(b"\0\1" * 0x10000)
    descriptor = (
        b"<< /Type /FontDescriptor /FontName /AAAAAA+Made /Flags 4 /FontBBox [0 0 500 1000] /ItalicAngle 0 /Ascent 1000"
        b" /Descent 0 /CapHeight 1000 /StemV 80 /FontFile2 10 0 R >>"
    )
    return [descriptor, stream % (len(font), font), stream % (len(glyphs), glyphs)]


def at(x: float, y: float, text: str, font: str = "F", size: float = 10, matrix: str = "1 0 0 1") -> str:
    """Operators that show a text with its first baseline point at x, y."""
    if font == "F":
        shown = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)").encode("cp1252").decode("latin-1")
        return f"BT /F {size} Tf {matrix} {x} {y} Tm ({shown}) Tj ET"
    return f"BT /{font} {size} Tf {matrix} {x} {y} Tm <{text.encode('utf-16-be').hex()}> Tj ET"


def _picture() -> bytes:
    return (
        b"<< /Type /XObject /Subtype /Image /Width 2 /Height 2 /ColorSpace /DeviceGray /BitsPerComponent 8"
        b" /Length 4 >>\nstream\n\x40\x80\xa0\xc0\nendstream"
    )


def _content(lines: Sequence[str]) -> bytes:
    if list(lines) == [PICTURE]:
        return b"q 595 0 0 842 0 0 cm /P Do Q"
    out = [b"BT /F 11 Tf 14 TL 60 780 Td"]
    out += [_shown(line) for line in lines]
    return b"\n".join([*out, b"ET"])


def _shown(line: str) -> bytes:
    if any(character >= "\u3000" for character in line):
        return b"/J 11 Tf <%s> Tj T* /F 11 Tf" % line.encode("utf-16-be").hex().encode()
    escaped = line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return b"(%s) Tj T*" % escaped.encode("cp1252")


def _assembled(objects: Sequence[bytes]) -> bytes:
    data = bytearray(b"%PDF-1.5\n")
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    data += b"trailer << /Size %d /Root %d 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1,
        len(objects),
        start,
    )
    return bytes(data)


def write_pdf(path: Path, pages: Sequence[Sequence[str]]) -> Path:
    path.write_bytes(pdf_bytes(pages))
    return path


def book(pages: int, seed: int = 1) -> list[list[str]]:
    """Pages of made-up sentences; every page has one word of its own, `page<n>mark`."""
    state = seed
    made = []
    for number in range(pages):
        lines = [f"Chapter {number // 4 + 1} of the made book", f"This leaf carries the word page{number}mark."]
        for _ in range(14):
            picked = []
            for _ in range(9):
                state = (state * 1103515245 + 12345) % 2**31
                picked.append(WORDS[state // 65536 % len(WORDS)])
            lines.append(" ".join(picked).capitalize() + ".")
        made.append([*lines, str(number + 1)])
    return made


def encrypted(data: bytes, user: str, owner: str = "owner") -> bytes:
    """AES-256; with an empty user password only the owner's permissions are locked."""
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(data))
    writer.encrypt(user, owner, algorithm="AES-256")
    return _written(writer)


def with_outline(data: bytes, entries: Sequence[tuple[str, int]], roman_pages: int = 0) -> bytes:
    """Adds outline entries (title, page) and roman labels for the first pages."""
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(data))
    for title, page in entries:
        writer.add_outline_item(title=title, page_number=page)
    if roman_pages:
        writer.set_page_label(0, roman_pages - 1, style="/r")
        writer.set_page_label(roman_pages, len(writer.pages) - 1, style="/D", start=1)
    return _written(writer)


def _written(writer: pypdf.PdfWriter) -> bytes:
    out = io.BytesIO()
    writer.write(out)
    writer.close()
    return out.getvalue()
