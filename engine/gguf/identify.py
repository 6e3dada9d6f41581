"""What a file that is no GGUF looks like, by its first bytes, for the message to the reader."""

from __future__ import annotations

_SIGNATURES = (
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive (or a PyTorch checkpoint)"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"ggml", "a GGML file of 2023"),
    (b"lmgg", "a GGML file of 2023"),
    (b"fmgg", "a GGMF file of 2023"),
    (b"tjgg", "a GGJT file of 2023"),
    (b"GGLA", "a GGLA adapter"),
    (b"FUGG", "a GGUF file with reversed bytes"),
    (b"\x80\x02", "a Python pickle (a PyTorch checkpoint)"),
    (b"\x7fELF", "a program"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"version https://git-lfs", "a Git LFS pointer: the model itself was not fetched"),
    (b"SQLite format 3", "a SQLite database"),
)


def looks_like(head: bytes, file_size: int) -> str:
    """A noun phrase for the kind of file; `head` is its first kilobyte or so."""
    if not file_size:
        return "an empty file"
    for signature, name in _SIGNATURES:
        if head.startswith(signature):
            return name
    return _by_content(head, file_size)


def _by_content(head: bytes, file_size: int) -> str:
    text = head.lstrip().lower()
    if text.startswith((b"<!doctype html", b"<html")):
        return "a web page (a failed download?)"
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") < file_size:
        return "a safetensors file"
    if text.startswith((b"{", b"[")):
        return "a JSON file"
    if not head.strip(b"\0"):
        return "a file of zeros (a broken download?)"
    return f"a file that starts with {head[:4].hex(' ')}"
