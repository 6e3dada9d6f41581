"""Builds the products of instruction set levels with a compiler of its own, and programs that compare two of them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

NATIVE = Path(__file__).resolve().parents[2] / "kernels" / "native"
FLAGS = ("-std=c++20", "-ffp-contract=off", "-fno-math-errno")
PRODUCTS = (
    *("quantise", "linear_quant", "dot_rows", "dot_codebook", "formats"),
    *("tile", "tile_block", "tile_codebook", "tile_super"),
)


def run_compiler(compiler: str, *args: str) -> None:
    done = subprocess.run([compiler, *FLAGS, *args], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def build_check(
    compiler: str,
    levels: Mapping[str, tuple[str, ...]],
    folder: Path,
    compile_one: Callable[[str, tuple[str, ...], Path, Path], None],
) -> list[Path]:
    """The programs of level_check.cpp for neighbours among some levels and their flags.

    `compile_one` takes the compiler, flags, a source and where its object goes.
    """

    def build(job: tuple[str, str]) -> str:
        level, name = job
        target = folder / f"{level}.{name}.o"
        compile_one(compiler, ("-O1", f"-DPK_LEVEL={level}", *levels[level]), NATIVE / f"{name}.cpp", target)
        return str(target)

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(build, [(level, name) for level in levels for name in PRODUCTS]))
    sources = [str(Path(__file__).with_name("level_check.cpp")), str(NATIVE / "codebooks.cpp")]
    programs = []
    for one, other in pairwise(levels):
        programs.append(folder / f"{one}.{other}")
        macros = (f"-DPK_ONE={one}", f"-DPK_OTHER={other}")
        run_compiler(compiler, "-static", *macros, *sources, *objects, "-o", str(programs[-1]))
    return programs


def run_check(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
