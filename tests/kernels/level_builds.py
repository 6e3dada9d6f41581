"""Builds the products of two instruction set levels with a compiler of its own, and the program that compares them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

NATIVE = Path(__file__).resolve().parents[2] / "kernels" / "native"
FLAGS = ("-std=c++20", "-ffp-contract=off", "-fno-math-errno")
PRODUCTS = ("quantise", "linear_quant", "tile", "formats")


def run_compiler(compiler: str, *args: str) -> None:
    done = subprocess.run([compiler, *FLAGS, *args], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def build_check(
    compiler: str,
    levels: Mapping[str, tuple[str, ...]],
    folder: Path,
    compile_one: Callable[[str, tuple[str, ...], Path, Path], None],
) -> Path:
    """The program of level_check.cpp for two levels and their flags.

    `compile_one` takes the compiler, flags, a source and where its object goes.
    """

    def build(job: tuple[str, str]) -> str:
        level, name = job
        target = folder / f"{level}.{name}.o"
        compile_one(compiler, ("-O1", f"-DPK_LEVEL={level}", *levels[level]), NATIVE / f"{name}.cpp", target)
        return str(target)

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(build, [(level, name) for level in levels for name in PRODUCTS]))
    one, other = levels
    sources, program = [Path(__file__).with_name("level_check.cpp"), NATIVE / "codebooks.cpp"], folder / "check"
    run_compiler(
        compiler, "-static", f"-DPK_ONE={one}", f"-DPK_OTHER={other}", *map(str, sources), *objects, "-o", str(program)
    )
    return program


def run_check(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
