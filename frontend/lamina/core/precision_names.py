"""The names of how exact products are: what settings and `precision=` arguments take."""

from __future__ import annotations

import enum
from typing import Any

OF_FLOATS = {
    "default": "DEFAULT", "fastest": "DEFAULT", "bfloat16": "DEFAULT",
    "high": "HIGH", "tensorfloat32": "HIGH", "bfloat16_3x": "HIGH",
    "highest": "HIGHEST", "float32": "HIGHEST",
}  # fmt: skip
"""Names of the three degrees, for floats."""

DotAlgorithmPreset = enum.Enum(  # type: ignore[misc]
    "DotAlgorithmPreset",
    "DEFAULT ANY_F8_ANY_F8_F32 ANY_F8_ANY_F8_F32_FAST_ACCUM ANY_F8_ANY_F8_ANY "
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM F16_F16_F16 F16_F16_F32 BF16_BF16_BF16 BF16_BF16_F32 "
    "BF16_BF16_F32_X3 BF16_BF16_F32_X6 BF16_BF16_F32_X9 TF32_TF32_F32 TF32_TF32_F32_X3 "
    "F32_F32_F32 F64_F64_F64",
)
"""Algorithms by name: the types of operands and sums, and how many parts operands are split in."""


def check_precision(value: Any) -> None:
    """Raises ValueError unless value is one of these names, or None."""
    if value is None or value in DotAlgorithmPreset.__members__:
        return
    if not isinstance(value, str) or value.lower() not in OF_FLOATS:
        known = ", ".join((*OF_FLOATS, *DotAlgorithmPreset.__members__))
        raise ValueError(f"expected None or one of {known}, got {value!r}")
