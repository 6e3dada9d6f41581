"""Recognition process: draws pages with PDFium and reads them with RapidOCR (the optional extra `ocr`), else tesseract.

Run as `python -m rag.pdf.recognise_worker`; a request is {path, pages, memory_bytes}. Frames: ready, one of type words
per page, done; or error. A word is [text, x, y, ux, uy, vx, vy] in the page's own coordinates: lower left corner, the
way to the lower right one and the way to the upper left one, whichever way page and scan are turned.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pypdfium2 as pdfium
import pypdfium2.raw as raw

from rag.pdf import tesseract
from rag.pdf.process import Message, end_with_parent, lower_limits, private_output, send

DPI = 150
LARGEST_SIDE = 3000  # pixels
LEAST_SCORE = 0.5
Recogniser = Callable[[Any], list[tesseract.Found]]
Word = tuple[str, float, float, float, float, float, float]


def main() -> None:
    out = private_output()
    request = json.loads(sys.stdin.buffer.readline())
    end_with_parent(request["parent"])
    lower_limits(request.get("memory_bytes"))
    for message in answer(request):
        send(out, message)


def answer(request: Message) -> Iterator[Message]:
    try:
        recognise = recogniser()
        document = pdfium.PdfDocument(request["path"])
    except Exception as error:
        yield {"type": "error", "message": f"{type(error).__name__}: {error}"}
        return
    yield {"type": "ready"}
    for index in request["pages"]:
        yield {"type": "words", "page": index, "words": words(document[index], recognise)}
    yield {"type": "done"}


def recogniser() -> Recogniser:
    """The words of each line of a picture [height, width, 3], with their corners in pixels."""
    if find_spec("rapidocr") is None or find_spec("onnxruntime") is None:
        return lambda picture: tesseract.lines(np.ascontiguousarray(picture.mean(2).astype(np.uint8)))
    from rapidocr import RapidOCR

    one = {f"EngineConfig.onnxruntime.{kind}_op_num_threads": 1 for kind in ("intra", "inter")}
    read = RapidOCR(params={"Global.log_level": "critical", "Global.return_word_box": True, **one})
    return lambda picture: [
        [(text, box) for text, score, box in line if score >= LEAST_SCORE]
        for line in read(np.ascontiguousarray(picture)).word_results or ()
    ]


def words(page: pdfium.PdfPage, recognise: Recogniser) -> list[Word]:
    """The page's words in reading order, a line after the other; a line's last word ends in "\\n"."""
    scale = min(DPI / 72, LARGEST_SIDE / max(page.get_size()))
    picture = page.render(scale=scale, rev_byteorder=False).to_numpy()
    height, width = picture.shape[:2]
    made: list[Word] = []
    for line in recognise(picture[:, :, :3]):
        kept = [(text, box) for text, box in line if text.strip()]
        for position, (text, box) in enumerate(kept):
            ending = "\n" if position + 1 == len(kept) else ""
            made.append((text + ending, *_placed(page, box, width, height)))
    return made


def _placed(
    page: pdfium.PdfPage, box: list[list[float]], width: int, height: int
) -> tuple[float, float, float, float, float, float]:
    """`box`: upper left, upper right, lower right, lower left corner in pixels."""
    top, _, right, origin = (_to_page(page, x, y, width, height) for x, y in box)
    return (*origin, right[0] - origin[0], right[1] - origin[1], top[0] - origin[0], top[1] - origin[1])


def _to_page(page: pdfium.PdfPage, x: float, y: float, width: int, height: int) -> tuple[float, float]:
    across, up = ctypes.c_double(), ctypes.c_double()
    # Tenfold, because device coordinates are whole numbers.
    raw.FPDF_DeviceToPage(page, 0, 0, 10 * width, 10 * height, 0, round(10 * x), round(10 * y), across, up)
    return across.value, up.value


if __name__ == "__main__":
    main()
