"""The ARM level: its sources compile, and its products have the bits of the portable level.

Needs Debian's cross compiler (g++-aarch64-linux-gnu) and, to run the products, an emulator (qemu-user-static): both
are in the README's test command. Compiling takes 25 s of CPU time.
"""

from __future__ import annotations

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

NATIVE = Path(__file__).resolve().parents[2] / "kernels" / "native"
COMPILER = shutil.which("aarch64-linux-gnu-g++")
EMULATOR = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
FLAGS = ("-std=c++20", "-ffp-contract=off", "-fno-math-errno", "-DPK_ARM")
LEVELS = {"portable": (), "dotprod": ("-march=armv8.2-a+dotprod+fp16",)}
PRODUCTS = ("quantise", "linear_quant", "tile", "formats")

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no aarch64-linux-gnu-g++")


def compile_with(*args: str) -> None:
    assert COMPILER
    done = subprocess.run([COMPILER, *FLAGS, *args], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def level_sources() -> list[Path]:
    """Those that hold code of an instruction set level, and the two that choose one."""
    table = NATIVE / "table.cpp"
    inside = [p for p in NATIVE.glob("*.cpp") if "PK_BEGIN" in p.read_text(encoding="utf-8")]
    return [*inside, table, NATIVE / "isa.cpp", NATIVE / "thread_pool.cpp"]


def test_every_source_compiles() -> None:
    flags = ("-fsyntax-only", "-Wall", "-Wextra", "-Werror", *LEVELS["dotprod"], "-DPK_LEVEL=dotprod")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda path: compile_with(*flags, str(path)), level_sources()))


@pytest.mark.skipif(EMULATOR is None, reason="no qemu-aarch64")
def test_products_have_the_bits_of_the_portable_level(tmp_path: Path) -> None:
    def build(job: tuple[str, str]) -> str:
        level, name = job
        out = str(tmp_path / f"{level}.{name}.o")
        compile_with("-O1", f"-DPK_LEVEL={level}", *LEVELS[level], "-c", str(NATIVE / f"{name}.cpp"), "-o", out)
        return out

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(build, [(level, name) for level in LEVELS for name in PRODUCTS]))
    check = Path(__file__).with_name("level_check.cpp")
    sources, program = (str(check), str(NATIVE / "codebooks.cpp")), str(tmp_path / "check")
    compile_with("-static", "-DPK_ONE=portable", "-DPK_OTHER=dotprod", *sources, *objects, "-o", program)
    assert EMULATOR
    done = subprocess.run([EMULATOR, program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
