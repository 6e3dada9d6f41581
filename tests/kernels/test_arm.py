"""The ARM levels: their sources compile, and their products have the bits of the portable level.

Needs Debian's cross compiler (g++-aarch64-linux-gnu) and, to run the products, an emulator (qemu-user-static): both
are in the README's test command. Compiling takes 45 s of CPU time.
"""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.kernels.level_builds import NATIVE, build_check, run_check, run_compiler

COMPILER = shutil.which("aarch64-linux-gnu-g++")
EMULATOR = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
DOT_PRODUCTS = "-march=armv8.2-a+dotprod+fp16"
LEVELS = {
    "portable": ("-DPK_ARM",),
    "dotprod": ("-DPK_ARM", DOT_PRODUCTS),
    "i8mm": ("-DPK_ARM", f"{DOT_PRODUCTS}+i8mm"),
}

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no aarch64-linux-gnu-g++")


def level_sources() -> list[Path]:
    """Those that hold code of an instruction set level, and the two that choose one."""
    table = NATIVE / "table.cpp"
    inside = [p for p in NATIVE.glob("*.cpp") if "PK_BEGIN" in p.read_text(encoding="utf-8")]
    return [*inside, table, NATIVE / "isa.cpp", NATIVE / "thread_pool.cpp"]


@pytest.mark.parametrize("level", ["dotprod", "i8mm"])
def test_every_source_compiles(level: str) -> None:
    assert COMPILER
    flags = (COMPILER, "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *LEVELS[level], f"-DPK_LEVEL={level}")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda path: run_compiler(*flags, str(path)), level_sources()))


@pytest.mark.skipif(EMULATOR is None, reason="no qemu-aarch64")
def test_products_have_the_bits_of_the_level_before(tmp_path: Path) -> None:
    def compile_one(compiler: str, flags: tuple[str, ...], source: Path, target: Path) -> None:
        run_compiler(compiler, *flags, "-c", str(source), "-o", str(target))

    assert COMPILER
    assert EMULATOR
    for program in build_check(COMPILER, LEVELS, tmp_path, compile_one):
        run_check(EMULATOR, "-cpu", "max", str(program))
