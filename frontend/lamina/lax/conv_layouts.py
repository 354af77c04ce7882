"""Where the axes of convolutions are: their dimension numbers, and letters for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class ConvDimensionNumbers(NamedTuple):
    """Where the axes are: lhs (batch, feature, space...), rhs (out feature, in feature, space...)
    and result (batch, feature, space...)."""

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


ConvGeneralDilatedDimensionNumbers = None | ConvDimensionNumbers | tuple[str, str, str]


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """Where the axes of a convolution's operands and result are, as numbers: a ConvDimensionNumbers
    of lhs_spec (batch, feature, *space), rhs_spec (out feature, in feature, *window) and out_spec.

    lhs_shape, rhs_shape  of the operands, or just as long.
    dimension_numbers     three strings such as ("NHWC", "HWIO", "NHWC"): N and C are batch and
                          feature of lhs and result, O and I the features of rhs, other letters are
                          axes of space; a ConvDimensionNumbers, or None for batch and features
                          first.

    Raises ValueError for letters that are missing or there twice; TypeError where ranks differ.

    >>> lax.conv_dimension_numbers((1, 8, 8, 3), (2, 2, 3, 5), ("NHWC", "HWIO", "NHWC")).rhs_spec
    (3, 2, 0, 1)
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    rank = len(lhs_shape)
    if rank < 2 or len(rhs_shape) != rank:
        raise TypeError(
            "convolution requires lhs and rhs of one rank of at least 2, got shapes "
            f"{tuple(lhs_shape)} and {tuple(rhs_shape)}"
        )
    if dimension_numbers is None:
        natural = tuple(range(rank))
        return ConvDimensionNumbers(natural, natural, natural)
    lhs, rhs, out = dimension_numbers
    for spec, letters, what in ((lhs, "NC", "lhs"), (rhs, "OI", "rhs"), (out, "NC", "result")):
        if len(spec) != rank or len(set(spec)) != rank or not set(letters) <= set(spec):
            raise TypeError(
                f"convolution dimension_numbers for {what} must be {rank} distinct letters with "
                f"{letters[0]} and {letters[1]} among them, got {spec!r}"
            )
    space = [c for c in rhs if c not in "OI"]
    if set(space) != set(lhs) - set("NC") or set(space) != set(out) - set("NC"):
        raise TypeError(
            f"convolution dimension_numbers must name one set of axes of space, got "
            f"{dimension_numbers}"
        )
    return ConvDimensionNumbers(
        tuple(lhs.index(c) for c in ("N", "C", *space)),
        tuple(rhs.index(c) for c in ("O", "I", *space)),
        tuple(out.index(c) for c in ("N", "C", *space)),
    )
