"""Models in several files, NAME-00001-of-00003.gguf and so on, as llama.cpp's gguf-split writes them.

The first file has all metadata; each has `split.no` (from 0), `split.count`, `split.tensors.count` (of all files).
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from engine.errors import UnsupportedModel
from engine.gguf.cursor import fail
from engine.gguf.shard import Shard
from engine.gguf.tensors import TensorInfo

_NAME = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.gguf")
_MAX_PARTS = 4096
_AGAIN = "Download all parts again."


def open_parts(first: Shard) -> list[Shard]:
    """The parts that follow `first`, none for a model in one file. ModelFileError: one is missing or does not belong
    to it; UnsupportedModel: `first` is not the first part."""
    count = _number(first, "split.count", 1, _MAX_PARTS)
    if count < 2:
        return []
    number = _number(first, "split.no", 0, count - 1)
    if number:
        _refuse(first.path, number, count)
    shards: list[Shard] = []
    try:
        for index in range(1, count):
            shards.append(_part(first.path, index, count))
        _check_total(first, shards)
    except BaseException:
        for shard in shards:
            shard.close()
        raise
    return shards


def tensors_of(shards: tuple[Shard, ...]) -> dict[str, TensorInfo]:
    """All tensors, each with the number of its part. ModelFileError: a name appears twice."""
    tensors: dict[str, TensorInfo] = {}
    for number, shard in enumerate(shards):
        for name, info in shard.tensors.items():
            if name in tensors:
                fail(shard.path, f"tensor {name!r} is also in another part.", _AGAIN)
            tensors[name] = replace(info, shard=number) if number else info
    return tensors


def _part_path(path: Path, number: int, count: int) -> Path:
    """Where part `number` (from 0) lies, beside the part at `path`. ModelFileError: `path` is not named as a part."""
    match = _NAME.fullmatch(path.name)
    if match is None or int(match[3]) != count:
        fail(
            path,
            f"It is one of {count} parts (key 'split.count'), but its name does not end in -00001-of-{count:05}.gguf.",
            "Give the parts their original names.",
        )
    return path.with_name(f"{match[1]}-{number + 1:05}-of-{count:05}.gguf")


def _part(first: Path, index: int, count: int) -> Shard:
    path = _part_path(first, index, count)
    if not path.exists():
        fail(first, f"Part {index + 1} of {count} is missing: {path.name}.", "Download all parts into one folder.")
    shard = Shard.open(path)
    try:
        for key, expected in (("split.no", index), ("split.count", count)):
            if shard.metadata.get(key) != expected:
                fail(path, f"Key {key!r} is {shard.metadata.get(key)!r}, expected {expected}.", _AGAIN)
    except BaseException:
        shard.close()
        raise
    return shard


def _check_total(first: Shard, others: list[Shard]) -> None:
    expected = first.metadata.get("split.tensors.count")
    found = sum(len(shard.tensors) for shard in [first, *others])
    if expected is not None and expected != found:
        fail(first.path, f"Its parts have {found} tensors, key 'split.tensors.count' says {expected!r}.", _AGAIN)


def _number(shard: Shard, key: str, low: int, high: int) -> int:
    value = shard.metadata.get(key, low)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        fail(shard.path, f"key {key!r} is {value!r}, expected a number from {low} to {high}.")
    return value


def _refuse(path: Path, number: int, count: int) -> NoReturn:
    raise UnsupportedModel(
        f"The model file {path.name} cannot be used.",
        f"It is part {number + 1} of {count} of a split model.",
        f"Choose the first part, whose name ends in -00001-of-{count:05}.gguf.",
    )
