"""The fake device: runs a plan's GPU blocks in torch on the CPU, so that the seam is tested without a GPU.

Its rows are tensors that other devices cannot use: they get there by `download` and `upload` only, as with a real GPU.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from engine.backends.hybrid import ExpertService
from engine.backends.reference import ReferenceBackend, RunExperts, positions_of
from engine.gguf import GgufFile
from engine.kv.layout import PageLayout
from engine.models.spec import ModelSpec
from engine.placement import Block, DeviceName, Stretch
from kernels.program import StepBatch, StepResult

Floats = npt.NDArray[np.float32]


class FakeDevice:
    """Attributes: uploads, downloads: how often rows came and went; uploaded_bytes, downloaded_bytes."""

    def __init__(
        self, gguf: GgufFile, spec: ModelSpec, layout: PageLayout, experts: Mapping[int, ExpertService] | None = None
    ) -> None:
        """`experts`: of the layers whose routed experts lie on another device."""
        self.uploads = self.downloads = self.uploaded_bytes = self.downloaded_bytes = 0
        services = {layer: self._remote(service) for layer, service in (experts or {}).items()}
        self._decoder = ReferenceBackend(gguf, spec, layout, services)

    def stretch(self, stretch: Stretch) -> FakeStretch:
        return FakeStretch(self._decoder, stretch)

    def upload(self, rows: Floats) -> Tensor:
        self.uploads += 1
        self.uploaded_bytes += rows.nbytes
        return torch.from_numpy(rows.copy())

    def download(self, rows: Tensor) -> Floats:
        values: Floats = rows.numpy().copy()
        self.downloads += 1
        self.downloaded_bytes += values.nbytes
        return values

    def head(self, hidden: Floats) -> Floats:
        return self._decoder.head(hidden)

    def _remote(self, service: ExpertService) -> RunExperts:
        def run(x: Tensor, chosen: Tensor, weights: Tensor) -> Tensor:
            route = torch.cat([chosen.float(), weights], -1)
            return self.upload(service.run(self.download(x), self.download(route)))

        return run


class FakeStretch:
    """Blocks that follow each other on the device."""

    def __init__(self, decoder: ReferenceBackend, stretch: Stretch) -> None:
        self.device: DeviceName = stretch.device
        self._decoder = decoder
        self._blocks = stretch.blocks

    def run(self, rows: Tensor | None, batch: StepBatch) -> Tensor | StepResult:
        """The stream behind the stretch, or the step's result where the head is part of it."""
        with torch.inference_mode():
            positions = positions_of(batch)
            for block in self._blocks:
                if block.kind == "head":
                    assert rows is not None
                    return self._decoder.finish(rows, batch)
                rows = self._block(block, rows, positions, batch)
            assert rows is not None
            return rows

    def _block(self, block: Block, rows: Tensor | None, positions: Tensor, batch: StepBatch) -> Tensor:
        if rows is None:
            return self._decoder.embed(batch.tokens)
        if block.kind == "attention":
            return self._decoder.attention(block.layer, rows, positions, batch)
        return self._decoder.ffn(block.layer, rows)
