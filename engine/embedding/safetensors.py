"""Tensors of a .safetensors file, mapped. Format: https://github.com/huggingface/safetensors (8 bytes of header length,
a JSON header with dtype, shape and offsets, then the data)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelFileError

_LARGEST_HEADER = 100 << 20
Floats = NDArray[np.float32]


class SafeTensors:
    """An open file of F32, F16 or BF16 tensors. ModelFileError: it is cut short or no such file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._bytes = np.memmap(path, np.uint8, "r")
            length = int(self._bytes[:8].view("<u8")[0])
            if length > min(_LARGEST_HEADER, len(self._bytes)):
                raise ValueError(f"a header of {length} bytes")
            self.entries: Mapping[str, dict[str, object]] = json.loads(self._bytes[8 : 8 + length].tobytes())
        except (OSError, ValueError, IndexError, TypeError) as error:
            raise _broken(path, repr(error)) from error
        self._start = 8 + length

    def __contains__(self, name: str) -> bool:
        return name in self.entries

    def tensor(self, name: str) -> Floats:
        """The tensor in float32: mapped where it is stored so, else converted."""
        try:
            entry = self.entries[name]
            first, last = (self._start + int(offset) for offset in entry["data_offsets"])  # type: ignore[attr-defined]
            shape = tuple(int(n) for n in entry["shape"])  # type: ignore[attr-defined]
            return _as_floats(np.asarray(self._bytes[first:last]), str(entry["dtype"])).reshape(shape)
        except (KeyError, ValueError, TypeError) as error:
            raise _broken(self.path, f"tensor {name}: {error!r}") from error


def _as_floats(data: NDArray[np.uint8], kind: str) -> Floats:
    if kind == "F32":
        return data.view("<f4") if data.ctypes.data % 4 == 0 else np.frombuffer(data.tobytes(), "<f4")
    if kind == "F16":
        return np.frombuffer(data.tobytes(), "<f2").astype(np.float32)
    if kind == "BF16":
        return (np.frombuffer(data.tobytes(), "<u2").astype(np.uint32) << 16).view(np.float32)
    raise ValueError(f"numbers of kind {kind}")


def _broken(path: Path, why: str) -> ModelFileError:
    return ModelFileError(f"The model file {path.name} cannot be used.", why, "Download it again.")
