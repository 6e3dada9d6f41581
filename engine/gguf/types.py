"""GGML storage types as data: id -> name, elements and bytes of one block.

Ids and block sizes are those of ggml.h (llama.cpp); the second table holds ids that only ik_llama.cpp writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class GgmlType:
    """One storage type: a row is a whole number of blocks of `block` elements in `size` bytes."""

    id: int
    name: str
    block: int
    size: int

    def row_bytes(self, elements: int) -> int:
        """Bytes of a row; the caller has checked that `elements` is a multiple of `block`."""
        return elements // self.block * self.size


_ROWS = (
    (0, "F32", 1, 4), (1, "F16", 1, 2), (2, "Q4_0", 32, 18), (3, "Q4_1", 32, 20), (6, "Q5_0", 32, 22),
    (7, "Q5_1", 32, 24), (8, "Q8_0", 32, 34), (9, "Q8_1", 32, 36), (10, "Q2_K", 256, 84),
    (11, "Q3_K", 256, 110), (12, "Q4_K", 256, 144), (13, "Q5_K", 256, 176), (14, "Q6_K", 256, 210),
    (15, "Q8_K", 256, 292), (16, "IQ2_XXS", 256, 66), (17, "IQ2_XS", 256, 74), (18, "IQ3_XXS", 256, 98),
    (19, "IQ1_S", 256, 50), (20, "IQ4_NL", 32, 18), (21, "IQ3_S", 256, 110), (22, "IQ2_S", 256, 82),
    (23, "IQ4_XS", 256, 136), (24, "I8", 1, 1), (25, "I16", 1, 2), (26, "I32", 1, 4), (27, "I64", 1, 8),
    (28, "F64", 1, 8), (29, "IQ1_M", 256, 56), (30, "BF16", 1, 2), (34, "TQ1_0", 256, 54),
    (35, "TQ2_0", 256, 66), (39, "MXFP4", 32, 17), (40, "NVFP4", 64, 36), (41, "Q1_0", 128, 18),
    (42, "Q2_0", 64, 18),
)  # fmt: skip

_IK_NAMES = (
    (97, "Q8_0_X4"), (98, "Q8_1_X4"), (99, "Q8_2_X4"), (133, "Q6_0"), (134, "IQ1_BN"), (135, "IQ2_BN"),
    (136, "Q8_K64"), (137, "IQ2_K"), (138, "IQ3_K"), (139, "IQ4_K"), (140, "IQ5_K"), (141, "IQ6_K"),
    (144, "IQ4_KS"), (145, "IQ2_KS"), (146, "IQ4_KSS"), (147, "Q8_K16"), (148, "Q8_K32"), (149, "Q8_KR8"),
    (150, "Q8_K128"), (151, "Q8_KV"), (152, "IQ5_KS"), (153, "IQ2_KT"), (154, "IQ3_KT"), (155, "IQ4_KT"),
    (156, "IQ3_KS"), (157, "IQ2_KL"), (158, "IQ1_KT"), (202, "Q4_0_R8"), (206, "Q5_0_R4"), (208, "Q8_0_R8"),
    (210, "Q2_K_R4"), (211, "Q3_K_R4"), (212, "Q4_K_R4"), (213, "Q5_K_R4"), (214, "Q6_K_R4"),
    (216, "IQ2_XXS_R4"), (217, "IQ2_XS_R4"), (218, "IQ3_XXS_R4"), (219, "IQ1_S_R4"), (220, "IQ4_NL_R4"),
    (221, "IQ3_S_R4"), (222, "IQ2_S_R4"), (223, "IQ4_XS_R8"), (229, "IQ1_M_R4"), (230, "BF16_R16"),
    (233, "Q6_0_R4"), (335, "IQ2_BN_R4"), (337, "IQ2_K_R4"), (338, "IQ3_K_R4"), (339, "IQ4_K_R4"),
    (340, "IQ5_K_R4"), (344, "IQ4_KS_R4"), (352, "IQ5_KS_R4"), (398, "Q8_KV_R8"), (399, "Q8_K_R8"),
)  # fmt: skip

_IK_RANGES = (range(97, 100), range(133, 159), range(202, 234), range(335, 400))

# Types whose layout left llama.cpp: pre-interleaved Q4_0 and IQ4_NL; files with them must be re-made.
_WITHDRAWN = {4: "Q4_2", 5: "Q4_3", 31: "Q4_0_4_4", 32: "Q4_0_4_8", 33: "Q4_0_8_8",
              36: "IQ4_NL_4_4", 37: "IQ4_NL_4_8", 38: "IQ4_NL_8_8"}  # fmt: skip

GGML_TYPES = MappingProxyType({row[0]: GgmlType(*row) for row in _ROWS})
IK_TYPES = MappingProxyType(dict(_IK_NAMES))
WITHDRAWN_TYPES = MappingProxyType(_WITHDRAWN)


def type_name(type_id: int) -> str:
    """The type's name for messages, also for ids that cannot be read."""
    known = GGML_TYPES.get(type_id)
    if known is not None:
        return known.name
    return IK_TYPES.get(type_id) or WITHDRAWN_TYPES.get(type_id) or f"type {type_id}"


def is_ik_only(type_id: int) -> bool:
    return any(type_id in ids for ids in _IK_RANGES)
