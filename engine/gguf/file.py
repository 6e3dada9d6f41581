"""GgufFile: a memory-mapped GGUF model, in one file or in parts, read and checked by our own reader."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType

import numpy as np
import numpy.typing as npt

from engine.gguf import large_pages
from engine.gguf.shard import MAGIC, Shard
from engine.gguf.split import open_parts, tensors_of
from engine.gguf.tensors import TensorInfo
from engine.gguf.values import MetadataArray, Scalar

__all__ = ["MAGIC", "GgufFile"]


class GgufFile:
    """An open model; immutable, so every method may be called from any thread.

    Attributes:
        path: the (first) file; size: bytes of all files; version: 2 or 3; alignment: bytes; parts: paths of all files.
        metadata: key -> int, float, bool, str or MetadataArray (decoded on demand).
        tensors: name -> TensorInfo, in the order of the files.
    """

    def __init__(self, shards: tuple[Shard, ...]) -> None:
        first = shards[0]
        self.path, self.version, self.alignment = first.path, first.version, first.alignment
        self.size = sum(shard.size for shard in shards)
        self.parts = tuple(shard.path for shard in shards)
        self.metadata: Mapping[str, Scalar | MetadataArray] = MappingProxyType(first.metadata)
        self.tensors: Mapping[str, TensorInfo] = MappingProxyType(tensors_of(shards))
        self._shards = shards

    @staticmethod
    def open(path: str | os.PathLike[str]) -> GgufFile:
        """Maps and checks the file, with a split model's first file also the others beside it. ModelFileError:
        unreadable, no GGUF, truncated, contradictory, a part is missing; UnsupportedModel: sound, but with tensor types
        or a form that is not supported."""
        first = Shard.open(Path(path))
        shards = [first]
        try:
            shards += open_parts(first)
            return GgufFile(tuple(shards))
        except BaseException:
            for shard in shards:
                shard.close()
            raise

    def __enter__(self) -> GgufFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def address(self, tensor: str | TensorInfo) -> int:
        """The absolute address of the tensor's first byte, valid until close()."""
        info = self._info(tensor)
        return self._shards[info.shard].base + info.offset

    def raw(self, tensor: str | TensorInfo) -> npt.NDArray[np.uint8]:
        """The tensor's bytes: a read-only view over the mapping, no copy."""
        info = self._info(tensor)
        return self._shards[info.shard].bytes[info.offset : info.offset + info.nbytes]

    def _info(self, tensor: str | TensorInfo) -> TensorInfo:
        return self.tensors[tensor] if isinstance(tensor, str) else tensor

    def rows_cols(self, name: str) -> tuple[int, int]:
        """(rows, elements per row); further dimensions count as rows."""
        info = self.tensors[name]
        return info.rows, info.cols

    def will_compute(self) -> None:
        """The tensors will be read over and over: asks for large pages, if the whole model stays in memory well."""
        if large_pages.worth_asking(self.size):
            for shard in self._shards:
                shard.ask_large_pages()

    def close(self) -> None:
        """Ends the mappings; where views from raw() are still alive they end with the last of them."""
        for shard in self._shards:
            shard.close()
