"""The AVX-VNNI level has the bits of the AVX2 level, also where only AVX-512's encoding of its products runs.

Processors with AVX-512 VNNI and without AVX-VNNI (Zen 4, Ice Lake) have the same instruction under another prefix:
there the assembler is given the compiler's output without the wish for the short one. Compiling takes 15 s of CPU time.
"""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

import pytest

from tests.kernels.level_builds import build_check, run_check, run_compiler

COMPILER = shutil.which("g++")
AVX2 = ("-DPK_X86", "-mavx2", "-mfma", "-mf16c")
LEVELS = {"avx2": AVX2, "avxvnni": (*AVX2, "-mavxvnni")}


def processor_flags() -> set[str]:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    return set(next((line for line in lines if line.startswith("flags")), "").split())


FEATURES = processor_flags()
WIDE_ONLY = "avx_vnni" not in FEATURES

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64") or COMPILER is None or not FEATURES & {"avx_vnni", "avx512_vnni"},
    reason="no g++, or a processor without these products",
)


def compile_for_here(compiler: str, flags: tuple[str, ...], source: Path, target: Path) -> None:
    assembly = target.with_suffix(".s")
    run_compiler(compiler, *flags, "-S", str(source), "-o", str(assembly))
    if WIDE_ONLY:
        assembly.write_text(assembly.read_text(encoding="utf-8").replace("{vex} ", ""), encoding="utf-8")
    run_compiler(compiler, "-c", str(assembly), "-o", str(target))


def test_products_have_the_bits_of_avx2(tmp_path: Path) -> None:
    assert COMPILER
    (program,) = build_check(COMPILER, LEVELS, tmp_path, compile_for_here)
    assert "vpdpbusd" in (tmp_path / "avxvnni.tile_block.s").read_text(encoding="utf-8")
    run_check(str(program))
