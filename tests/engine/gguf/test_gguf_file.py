"""The reader against files of the gguf package and against broken ones: each error names what is wrong."""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from pathlib import Path

import gguf as package
import numpy as np
import pytest

from engine.errors import ModelFileError, UnsupportedModel
from engine.gguf import GgufFile, MetadataArray
from tests.engine.gguf_bytes import ARRAY, BOOL, F32, I32, STRING, U32, Tensor, gguf, pair, text

F32_ROW = np.arange(7, dtype="<f4").tobytes()
VALUES = {
    "t.u8": (200, package.GGUFValueType.UINT8),
    "t.i8": (-100, package.GGUFValueType.INT8),
    "t.u16": (60000, package.GGUFValueType.UINT16),
    "t.i16": (-30000, package.GGUFValueType.INT16),
    "t.u32": (4_000_000_000, package.GGUFValueType.UINT32),
    "t.i32": (-2_000_000_000, package.GGUFValueType.INT32),
    "t.u64": (1 << 63, package.GGUFValueType.UINT64),
    "t.i64": (-(1 << 62), package.GGUFValueType.INT64),
    "t.f32": (0.5, package.GGUFValueType.FLOAT32),
    "t.f64": (0.1, package.GGUFValueType.FLOAT64),
    "t.bool": (True, package.GGUFValueType.BOOL),
    "t.string": ("naïve 東京 \x00 end", package.GGUFValueType.STRING),
}


def saved(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    return path


def refusal(tmp_path: Path, content: bytes) -> ModelFileError:
    with pytest.raises(ModelFileError) as caught:
        GgufFile.open(saved(tmp_path, content))
    assert "model.gguf" in caught.value.what
    assert caught.value.next
    return caught.value


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, dict[str, np.ndarray]]:
    """A file by the gguf package: all scalar types, arrays, tensors of odd sizes, alignment 64."""
    path = tmp_path / "written.gguf"
    writer = package.GGUFWriter(path, "llama")
    writer.add_custom_alignment(64)
    for key, (value, kind) in VALUES.items():
        writer.add_key_value(key, value, kind)
    writer.add_array("t.words", ["a", "", "東京", "d" * 300])
    writer.add_array("t.numbers", [1, -2, 3])
    writer.add_array("t.flags", [True, False, True])
    writer.add_array("t.floats", [0.5, -1.25])
    rng = np.random.default_rng(3)
    arrays = {
        "a.weight": rng.standard_normal((5, 7), np.float32),
        "b.weight": rng.standard_normal((3, 2, 11), np.float32).astype(np.float16),
        "c.bias": rng.standard_normal(1, np.float32),
    }
    for name, array in arrays.items():
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path, arrays


def test_every_value_type_of_the_package(written: tuple[Path, dict[str, np.ndarray]]) -> None:
    with GgufFile.open(written[0]) as file:
        for key, (value, kind) in VALUES.items():
            expected = pytest.approx(value) if kind == package.GGUFValueType.FLOAT32 else value
            assert file.metadata[key] == expected, key
        assert file.metadata["t.words"] == ["a", "", "東京", "d" * 300]
        assert file.metadata["t.numbers"] == [1, -2, 3]
        assert file.metadata["t.flags"] == [True, False, True]
        assert file.metadata["t.floats"] == [0.5, -1.25]
        assert file.alignment == 64


def test_tensors_are_views_of_the_mapping(written: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, arrays = written
    with GgufFile.open(path) as file:
        assert list(file.tensors) == list(arrays)
        for name, array in arrays.items():
            info = file.tensors[name]
            assert info.shape == array.shape[::-1]
            assert info.offset % 64 == 0
            assert file.rows_cols(name) == (array.size // array.shape[-1], array.shape[-1])
            assert file.raw(name).tobytes() == array.tobytes()
            assert not file.raw(name).flags.writeable
            assert ctypes.string_at(file.address(name), info.nbytes) == array.tobytes()


def test_parts_of_a_matrix_and_of_a_vector(written: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, arrays = written
    with GgufFile.open(path) as file:
        rows = file.tensors["a.weight"].part(2, 3)
        assert (rows.rows, rows.cols) == (3, 7)
        assert file.raw(rows).tobytes() == arrays["a.weight"][2:5].tobytes()
        assert file.address(rows) == file.address("a.weight") + 2 * 7 * 4
    vector = Tensor("v", (7,), data=F32_ROW)
    with GgufFile.open(saved(path.parent, gguf([], [vector]))) as file:
        part = file.tensors["v"].elements(2, 4)
        np.testing.assert_array_equal(file.raw(part).view("<f4"), [2, 3, 4, 5])


@pytest.mark.skipif(not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="a kernel without huge pages")
@pytest.mark.parametrize(("available", "asked"), [(2.5, True), (1.5, False), (0.0, False)])
def test_large_pages_are_asked_for_where_the_model_is_computed_with_and_stays_in_memory(
    written: tuple[Path, dict[str, np.ndarray]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    available: float, asked: bool,
) -> None:  # fmt: skip
    def large() -> bool:
        regions = Path("/proc/self/smaps").read_text().split(str(written[0]))
        flags = next(line for line in regions[1].splitlines() if line.startswith("VmFlags:"))
        return "hg" in flags.split()

    size = 1 << 20
    with GgufFile.open(written[0]) as file:
        monkeypatch.setattr(file, "size", size)
        told = f"MemTotal: 9 kB\nMemAvailable:   {int(available * size) >> 10} kB\n" if available else "MemFree: 1 kB\n"
        (tmp_path / "meminfo").write_text(told)
        monkeypatch.setattr("engine.gguf.large_pages._MEMORY", tmp_path / "meminfo")
        assert not large(), "its header is read, no more"
        file.will_compute()
        assert large() == asked


def test_views_outlive_close(written: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, arrays = written
    file = GgufFile.open(path)
    view = file.raw("a.weight")
    file.close()
    assert view.tobytes() == arrays["a.weight"].tobytes()


def test_version_2_is_read(tmp_path: Path) -> None:
    tensor = Tensor("x", (7,), data=F32_ROW)
    with GgufFile.open(saved(tmp_path, gguf([pair("k", U32, 5)], [tensor], version=2))) as file:
        assert (file.version, file.metadata["k"], file.raw("x").tobytes()) == (2, 5, F32_ROW)


def test_arrays_are_decoded_once_by_many_threads(tmp_path: Path) -> None:
    words = [f"word{i}" for i in range(5000)]
    with GgufFile.open(saved(tmp_path, gguf([pair("words", ARRAY, (STRING, words))]))) as file:
        found: list[object] = []
        threads = [threading.Thread(target=lambda: found.append(list(file.metadata["words"]))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [words] * 4


def test_nested_arrays_and_strings_that_are_not_utf8(tmp_path: Path) -> None:
    nested = pair("n", ARRAY, (ARRAY, [(I32, [1, 2]), (STRING, ["x"])]))
    broken = pair("s", STRING, b"ab\xffcd")
    with GgufFile.open(saved(tmp_path, gguf([nested, broken]))) as file:
        outer = file.metadata["n"]
        assert isinstance(outer, MetadataArray)
        assert [list(inner) for inner in outer] == [[1, 2], ["x"]]  # type: ignore[arg-type]
        assert file.metadata["s"] == "ab�cd"
        with pytest.raises(TypeError):
            outer.numpy()


HEADS = {
    "empty": (b"", "an empty file"),
    "pdf": (b"%PDF-1.7\n%...", "a PDF document"),
    "html": (b"  <!DOCTYPE html><html>404</html>", "a web page"),
    "safetensors": (struct.pack("<Q", 30) + b'{"a":{"dtype":"F32"}}' + bytes(40), "a safetensors file"),
    "zip": (b"PK\x03\x04" + bytes(50), "a ZIP archive"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
    "json": (b'{"model_type": "llama"}', "a JSON file"),
    "zeros": (bytes(4096), "a file of zeros"),
    "other": (b"abcdefgh", "61 62 63 64"),
}


@pytest.mark.parametrize("name", HEADS)
def test_no_gguf_says_what_it_looks_like(tmp_path: Path, name: str) -> None:
    content, expected = HEADS[name]
    assert expected in refusal(tmp_path, content).why


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="No such file"):
        GgufFile.open(tmp_path / "absent.gguf")
    with pytest.raises(ModelFileError, match="folder"):
        GgufFile.open(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    with pytest.raises(ModelFileError, match="device or a pipe"):
        GgufFile.open(tmp_path / "pipe.gguf")


ROW = Tensor("x", (7,), data=F32_ROW)
BROKEN = {
    "big-endian": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
    "version 1": (gguf(version=1), "version 1"),
    "version 4": (gguf(version=4), "version 4; expected version 2 or 3"),
    "version 0": (gguf(version=0), "version 0"),
    "header cut": (gguf()[:14], "number of tensors needs 8 bytes, but only 6"),
    "key count": (gguf(counts=(0, 1 << 60)), "number of keys is 1152921504606846976"),
    "tensor count": (gguf(counts=(1 << 40, 0)), "number of tensors is 1099511627776"),
    "key cut": (gguf([pair("some.key", U32, 1)])[:-9], "metadata entry 0"),
    "value cut": (gguf([pair("some.key", U32, 1)])[:-3], "key 'some.key'"),
    "key twice": (gguf([pair("k", U32, 1), pair("k", U32, 2)]), "key 'k'"),
    "key not utf-8": (gguf([pair(b"\xff\xfe", U32, 1)]), "is not UTF-8"),
    "key empty": (gguf([pair("", U32, 1)]), "the key is empty"),
    "value type": (gguf([text("k") + struct.pack("<II", 13, 0)]), "unknown value type 13"),
    "item type": (gguf([text("k") + struct.pack("<IIQ", ARRAY, 99, 0)]), "unknown type 99 of array items"),
    "array length": (
        gguf([text("k") + struct.pack("<IIQ", ARRAY, U32, 1 << 61)]),
        "length of the array is 2305843009213693952",
    ),
    "array of strings": (
        gguf([text("k") + struct.pack("<IIQ", ARRAY, STRING, 2) + text("a") + struct.pack("<Q", 1 << 63)]),
        "reaches beyond the end",
    ),
    "string length": (
        gguf([text("k") + struct.pack("<IQ", STRING, 1 << 50)]),
        "claims 1125899906842624 bytes",
    ),
    "nesting": (
        gguf([text("k") + struct.pack("<I", ARRAY) + struct.pack("<IQ", ARRAY, 1) * 9 + bytes(99)]),
        "nested more than",
    ),
    "alignment 0": (gguf([pair("general.alignment", U32, 0)]), "'general.alignment' is 0"),
    "alignment 24": (gguf([pair("general.alignment", U32, 24)]), "power of two"),
    "alignment text": (gguf([pair("general.alignment", STRING, "32")]), "'general.alignment'"),
    "dimensions 5": (gguf([], [Tensor("x", (1, 1, 1, 1, 1), data=F32_ROW)]), "5 dimensions"),
    "dimensions 0": (gguf([], [Tensor("x", (), data=F32_ROW)]), "0 dimensions"),
    "empty dimension": (gguf([], [Tensor("x", (7, 0), data=F32_ROW)]), "tensor 'x'"),
    "huge shape": (gguf([], [Tensor("x", (1 << 40, 1 << 40, 1 << 40), data=F32_ROW)]), "tensor 'x'"),
    "unknown type": (gguf([], [Tensor("x", (7,), 77, F32_ROW)]), "unknown tensor type 77"),
    "row of 33": (gguf([], [Tensor("x", (33,), 8, bytes(68))]), "33 elements, Q8_0 needs a multiple of 32"),
    "long name": (gguf([], [Tensor("x" * 65, (7,), data=F32_ROW)]), "65 bytes, expected at most 64"),
    "name twice": (gguf([], [ROW, ROW]), "tensor 'x' appears twice"),
    "misaligned": (
        gguf([], [Tensor("x", (7,), data=F32_ROW, offset=4)]) + bytes(9),
        "'x': data offset 4, expected a multiple of 32",
    ),
    "outside": (gguf([], [Tensor("x", (7,), data=F32_ROW, offset=1 << 40)]), "tensor 'x' lies at bytes"),
    "overlap": (
        gguf([], [Tensor("x", (16,), data=bytes(64)), Tensor("y", (7,), data=F32_ROW, offset=32)]),
        "tensors 'x' and 'y' overlap",
    ),
    "data cut": (gguf([], [Tensor("x", (7,), data=F32_ROW)])[:-9], "(5 bytes are missing)"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused_by_name(tmp_path: Path, name: str) -> None:
    content, expected = BROKEN[name]
    assert expected in refusal(tmp_path, content).why


@pytest.mark.parametrize(("type_id", "expected"), [(137, "IQ2_K"), (230, "BF16_R16"), (97, "Q8_0_X4")])
def test_types_of_ik_llama_cpp_are_refused_by_name(tmp_path: Path, type_id: int, expected: str) -> None:
    path = saved(tmp_path, gguf([], [Tensor("blk.0.x", (256,), type_id, bytes(200))]))
    with pytest.raises(UnsupportedModel, match=rf"'blk.0.x' has type {expected} .*made for ik_llama.cpp"):
        GgufFile.open(path)


def test_withdrawn_types_and_split_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModel, match="Q4_0_4_8"):
        GgufFile.open(saved(tmp_path, gguf([], [Tensor("x", (256,), 32, bytes(200))])))
    parts = [pair("split.no", U32, 1), pair("split.count", U32, 3)]
    with pytest.raises(UnsupportedModel, match="part 2 of 3"):
        GgufFile.open(saved(tmp_path, gguf(parts)))
    GgufFile.open(saved(tmp_path, gguf([pair("split.count", U32, 1), pair("f", F32, 1.0), pair("b", BOOL, True)])))


def test_a_broken_file_stays_removable_and_a_good_one_is_untouched(tmp_path: Path) -> None:
    content = gguf([pair("k", U32, 1)], [ROW])
    path = saved(tmp_path, content)
    GgufFile.open(path).close()
    assert path.read_bytes() == content
