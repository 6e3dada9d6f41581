"""Pagekeep's kernels: one folder per operation, a native program that runs a model step in one call.

Importing this package loads neither torch nor the native module.
"""

from __future__ import annotations

__all__ = ["isa", "numerics_label"]


def isa() -> str:
    """The instruction set level in use; PAGEKEEP_ISA forces one.

    "avx512bf16", "avx512", "avxvnni", "avx2", "i8mm" or "dotprod" (ARM), or "portable".
    """
    from kernels.native_program import default_isa

    return default_isa()


def numerics_label() -> str:
    """Names what the last bits of results depend on: ISA level, device, kernel revision."""
    from kernels.native_program import NUMERICS_REVISION, default_isa

    return f"{default_isa()}/cpu/{NUMERICS_REVISION}"
