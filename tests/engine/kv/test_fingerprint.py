"""The fingerprint changes with the numbers, and with nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest

from engine.gguf import GgufFile
from engine.kv.fingerprint import describe, fingerprint
from engine.kv.layout import PageLayout
from tests.engine.kv.small import small_spec

SPEC = small_spec()
LAYOUT = PageLayout.for_spec(SPEC)


def write(path: Path, name: str = "model", changed: int | None = None, tensor: str = "blk.0.big") -> Path:
    rng = np.random.default_rng(3)
    big, small = rng.standard_normal((512, 256)).astype(np.float32), rng.standard_normal(64).astype(np.float32)
    if changed is not None:
        big.reshape(-1)[changed] += 1
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(name)
    writer.add_tensor(tensor, big)
    writer.add_tensor("blk.0.norm", small)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def of(path: Path, spec=SPEC, layout=LAYOUT) -> bytes:  # type: ignore[no-untyped-def]
    with GgufFile.open(path) as file:
        return fingerprint(file, spec, layout)


def test_names_and_places_do_not_matter(tmp_path: Path) -> None:
    first = of(write(tmp_path / "a.gguf"))
    assert len(first) == 32
    assert first == of(write(tmp_path / "b.gguf", name="another name"))
    assert first == of(tmp_path / "a.gguf", spec=replace(SPEC, name="x", context=99))


def test_content_and_tensor_names_matter(tmp_path: Path) -> None:
    seen = {
        of(write(tmp_path / "a.gguf")),
        of(write(tmp_path / "b.gguf", changed=0)),
        of(write(tmp_path / "c.gguf", changed=512 * 256 - 1)),
        of(write(tmp_path / "d.gguf", tensor="blk.0.other")),
    }
    assert len(seen) == 4


def test_computation_and_layout_matter(tmp_path: Path) -> None:
    path = write(tmp_path / "a.gguf")
    attention = SPEC.layers[0].attention
    rope = replace(attention.rope, inv_freq=(*attention.rope.inv_freq[:-1], 0.1))
    other = replace(SPEC.layers[0], attention=replace(attention, rope=rope))
    seen = {
        of(path),
        of(path, spec=replace(SPEC, norm_eps=2e-5)),
        of(path, spec=replace(SPEC, layers=(other, *SPEC.layers[1:]))),
        of(path, layout=PageLayout.for_spec(SPEC, "q8", "f16")),
        of(path, layout=PageLayout.for_spec(SPEC, "f16", "q8")),
    }
    assert len(seen) == 5


@pytest.mark.parametrize("value", [0.1, 1e-5, 1e6])
def test_floats_count_as_the_kernels_see_them(value: float) -> None:
    assert describe(value) == describe(float(np.float32(value)))
    assert describe(value) != describe(float(np.nextafter(np.float32(value), np.float32(2)))) or value == 2


def test_a_field_at_its_default_is_not_mentioned() -> None:
    assert "residual_scale" not in describe(SPEC)
    assert "residual_scale" in describe(replace(SPEC, residual_scale=2.0))
