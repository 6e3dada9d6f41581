"""Models in several files: found beside the first, checked against it, read as one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.errors import EngineError, ModelFileError, UnsupportedModel
from engine.gguf import GgufFile
from tests.engine.gguf_bytes import STRING, U32, Tensor, gguf, pair
from tests.engine.parity import parity_folder

ROW = np.arange(6, dtype="<f4")


def part(number: int, count: int, names: str, total: int, *keys: bytes) -> bytes:
    split = [pair("split.no", U32, number), pair("split.count", U32, count), pair("split.tensors.count", U32, total)]
    tensors = [Tensor(name, (3, 2), data=(ROW * ord(name)).tobytes()) for name in names]
    return gguf([*keys, *split], tensors)


def saved(folder: Path, total: int = 3, second: int = 1, names: str = "c") -> Path:
    first = folder / "big-00001-of-00002.gguf"
    first.write_bytes(part(0, 2, "ab", total, pair("general.name", STRING, "Big")))
    (folder / "big-00002-of-00002.gguf").write_bytes(part(second, 2, names, total))
    return first


def test_parts_are_read_as_one_model(tmp_path: Path) -> None:
    path = saved(tmp_path)
    with GgufFile.open(path) as file:
        assert list(file.tensors) == ["a", "b", "c"]
        assert [info.shard for info in file.tensors.values()] == [0, 0, 1]
        assert file.metadata["general.name"] == "Big"
        assert [one.name for one in file.parts] == ["big-00001-of-00002.gguf", "big-00002-of-00002.gguf"]
        assert file.size == sum(one.stat().st_size for one in file.parts)
        for name in "abc":
            np.testing.assert_array_equal(file.raw(name).view("<f4"), ROW * ord(name))
        last_row = file.tensors["c"].part(1, 1)
        np.testing.assert_array_equal(file.raw(last_row).view("<f4"), ROW[3:] * ord("c"))
        assert file.address(last_row) - file.address("c") == 12


def test_a_later_part_names_the_first(tmp_path: Path) -> None:
    saved(tmp_path)
    with pytest.raises(UnsupportedModel) as caught:
        GgufFile.open(tmp_path / "big-00002-of-00002.gguf")
    assert "part 2 of 2" in caught.value.why
    assert "-00001-of-00002.gguf" in caught.value.next


BROKEN = [
    ({"total": 4}, "have 3 tensors, key 'split.tensors.count' says 4"),
    ({"second": 0}, "Key 'split.no' is 0, expected 1"),
    ({"names": "a"}, "tensor 'a' is also in another part"),
]


@pytest.mark.parametrize(("change", "expected"), BROKEN)
def test_parts_that_do_not_fit_are_refused(tmp_path: Path, change: dict[str, int], expected: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        GgufFile.open(saved(tmp_path, **change))  # type: ignore[arg-type]
    assert expected in caught.value.why


def test_missing_parts_and_changed_names_are_told(tmp_path: Path) -> None:
    path = saved(tmp_path)
    (tmp_path / "big-00002-of-00002.gguf").unlink()
    with pytest.raises(ModelFileError, match=r"Part 2 of 2 is missing: big-00002-of-00002\.gguf"):
        GgufFile.open(path)
    renamed = path.rename(tmp_path / "model.gguf")
    with pytest.raises(ModelFileError, match=r"does not end in -00001-of-00002\.gguf"):
        GgufFile.open(renamed)


@pytest.mark.parametrize("count", [70_000, 0xFFFFFFFF])
def test_absurd_counts_are_refused(tmp_path: Path, count: int) -> None:
    path = tmp_path / "big-00001-of-00002.gguf"
    path.write_bytes(gguf([pair("split.count", U32, count)]))
    with pytest.raises(EngineError, match=r"split\.count"):
        GgufFile.open(path)


def test_the_reference_model_in_parts_has_the_bytes_of_the_whole() -> None:
    folder = parity_folder() / "models"
    with (
        GgufFile.open(folder / "split" / "qwen3moe-q4_k_m-00001-of-00003.gguf") as parts,
        GgufFile.open(folder / "tiny" / "qwen3moe-q4_k_m.gguf") as whole,
    ):
        assert parts.tensors.keys() == whole.tensors.keys()
        for name in whole.tensors:
            np.testing.assert_array_equal(parts.raw(name), whole.raw(name))
