"""Second opinion on files that PDFium refuses: a new copy is written of what can be found in them.

Run as `python -m rag.pdf.repair`; a request is {path, save_as, memory_bytes}. Frames: done with `how`, or error. First
pypdf, which looks for the root itself; then the objects are collected one by one, without any table, and the pages
among them are bound anew (PDF 32000-1, 7.3.10, 7.5.7 object streams).
"""

from __future__ import annotations

import json
import re
import sys
import zlib
from collections.abc import Iterator

from rag.pdf.process import Message, end_with_parent, lower_limits, private_output, send

OBJECT = re.compile(rb"(?<![0-9])(\d{1,10}) \d{1,5} obj\b(.*?)\bendobj\b", re.DOTALL)
PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
MOST_PAGES = 100_000  # a larger number in a rotten file is rot
HIGHEST = 4_000_000  # PDFium refuses files with object numbers above 2**22; rotten bytes make such
CONTENTS = re.compile(rb"/Contents\s*((?:\d+\s+\d+\s+R)|\[[^\]]*\])")
REFERENCE = re.compile(rb"(\d+)\s+\d+\s+R")
STREAM = re.compile(rb"stream\r?\n(.*?)(?:\r?\n)?endstream", re.DOTALL)
FIRST = re.compile(rb"/First\s+(\d+)")
LOST = "Damaged: the pages that could be found were saved, by their place in the file; letters on them may be wrong."
REBUILT = "Damaged: its structure was rebuilt."
TREE = re.compile(rb"/Type\s*/Pages(?![A-Za-z])")
COUNT = re.compile(rb"/Count\s+(\d{1,6})(?!\d)")
KIDS = re.compile(rb"/Kids\s*\[([^\]]*)\]")
NAMED_PAGE = re.compile(rb"\(page\.(\d{1,5})\)")  # destinations as hyperref names them


def main() -> None:
    out = private_output()
    request = json.loads(sys.stdin.buffer.readline())
    end_with_parent(request["parent"])
    lower_limits(request.get("memory_bytes"))
    send(out, answer(request["path"], request["save_as"]))


def answer(path: str, save_as: str) -> Message:
    errors: list[str] = []
    for how, attempt in ((REBUILT, rewrite), (LOST, collect)):
        try:
            found, expected = attempt(path, save_as)
            if found > 0:
                return {"type": "done", "how": how, "pages": found, "expected": expected}
            errors.append("no pages")
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")
    return {"type": "error", "message": "; ".join(errors)}


def rewrite(path: str, save_as: str) -> tuple[int, int]:
    """pypdf's reading of the file, written anew; returns the number of pages, and of those its page tree tells."""
    import pypdf

    reader = pypdf.PdfReader(path, strict=False)
    if reader.is_encrypted:
        reader.decrypt("")
    pages = len(reader.pages)
    if pages:
        pypdf.PdfWriter(clone_from=reader).write(save_as)
    told = reader.root_object["/Pages"].get_object().get("/Count", 0)
    return pages, int(told) if isinstance(told, int) and told <= MOST_PAGES else 0


def collect(path: str, save_as: str) -> tuple[int, int]:
    """All whole objects of the file, its pages under a new root; returns the number of pages, and the least there must
    have been (0: nothing tells)."""
    with open(path, "rb") as file:
        data = file.read()
    objects: dict[int, bytes] = {}
    for match in OBJECT.finditer(data):
        body = match[2].strip()
        objects[int(match[1])] = body
        if b"/ObjStm" in body[:400]:
            objects.update(_packed(body))
    objects = {number: body for number, body in objects.items() if number <= HIGHEST}
    pages = [number for number, body in objects.items() if _is_page(body, objects)]
    if pages:
        _write(save_as, objects, pages)
    return len(pages), _expected(objects)


def _expected(objects: dict[int, bytes]) -> int:
    """At least so many pages the file had, by what is left of its page tree and of the names of its pages."""
    heads = {number: body.split(b"stream", 1)[0] for number, body in objects.items()}
    trees = [head for head in heads.values() if TREE.search(head)]
    counts = [int(found[1]) for head in trees if (found := COUNT.search(head))]
    kids = {int(n) for head in trees if (found := KIDS.search(head)) for n in REFERENCE.findall(found[1])}
    leaves = {n for n in kids if n not in heads or PAGE.search(heads[n])}
    leaves |= {n for n, head in heads.items() if PAGE.search(head)} if kids else set()
    named = [int(n) for head in heads.values() for n in NAMED_PAGE.findall(head)]
    return max((n for n in (*counts, *named, len(leaves)) if n <= MOST_PAGES), default=0)


def _is_page(body: bytes, objects: dict[int, bytes]) -> bool:
    """A page of which some content is left."""
    if not PAGE.search(body.split(b"stream", 1)[0]):
        return False
    contents = CONTENTS.search(body)
    return contents is not None and any(int(number) in objects for number in REFERENCE.findall(contents[1]))


def _packed(body: bytes) -> Iterator[tuple[int, bytes]]:
    """The objects of an object stream (of one that is cut off as far as it goes)."""
    stream, first = STREAM.search(body), FIRST.search(body)
    if stream is None or first is None:
        return
    data = _inflated(stream[1])
    start = int(first[1])
    numbers = [int(number) for number in re.findall(rb"\d+", data[:start])]
    places = [*numbers[1::2], len(data) - start]
    for number, place, end in zip(numbers[::2], places, places[1:], strict=False):
        if start + end <= len(data):
            yield number, data[start + place : start + end].strip()


def _inflated(data: bytes) -> bytes:
    """What can be unpacked before the first rotten byte, to the last 64 packed ones."""
    unpacker = zlib.decompressobj()
    out = b""
    for at in range(0, len(data), 64):
        try:
            out += unpacker.decompress(data[at : at + 64])
        except zlib.error:
            break
    return out


def _write(save_as: str, objects: dict[int, bytes], pages: list[int]) -> None:
    root, tree = max(objects) + 1, max(objects) + 2
    kids = b" ".join(b"%d 0 R" % number for number in sorted(pages, key=list(objects).index))
    bound = {number: re.sub(rb"/Parent\s+\d+\s+\d+\s+R", b"/Parent %d 0 R" % tree, objects[number]) for number in pages}
    made = {root: b"<< /Type /Catalog /Pages %d 0 R >>" % tree}
    made[tree] = b"<< /Type /Pages /Count %d /MediaBox [0 0 595 842] /Kids [%s] >>" % (len(pages), kids)
    with open(save_as, "wb") as file:
        file.write(b"%PDF-1.7\n")
        places: dict[int, int] = {}
        for number, body in sorted({**objects, **bound, **made}.items()):
            places[number] = file.tell()
            file.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
        start = file.tell()
        file.write(b"xref\n0 1\n0000000000 65535 f \n")
        file.writelines(b"%d 1\n%010d 00000 n \n" % place for place in places.items())
        file.write(b"trailer << /Size %d /Root %d 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (tree + 1, root, start))


if __name__ == "__main__":
    main()
