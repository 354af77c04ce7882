"""The shapes that convolutions and reductions of windows have, from those of their operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina.lax.checks import check_reach
from lamina.lax.window_padding import Pads, dilated, padtype_to_pads, transposed_pads

Shape = tuple[int, ...]


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: str | Pads,
    batch_group_count: int = 1,
) -> Shape:
    """The shape of a convolution's result, batch and features first.

    lhs_shape          (batch, in features, *space).
    rhs_shape          (out features, in features, *window).
    strides            of the window, an int for each axis of space.
    pads               "SAME", "VALID", "SAME_LOWER" or a (low, high) pair for each axis of space.
    batch_group_count  as of conv_general_dilated.

    Raises ValueError for an unknown padding.

    >>> lax.conv_shape_tuple((1, 3, 8, 8), (5, 3, 3, 3), (2, 2), "VALID")
    (1, 5, 3, 3)
    """
    space, window = lhs_shape[2:], rhs_shape[2:]
    found = padtype_to_pads(space, window, strides, pads) if isinstance(pads, str) else pads
    if len(found) != len(space):
        raise TypeError(
            "Wrong number of explicit pads for convolution: expected "
            f"{len(space)}, got {len(found)}."
        )
    padded = [int(n + low + high) for n, (low, high) in zip(space, found)]
    if any(n < 0 for n in padded):
        raise ValueError(
            "Negative padding is larger than the size of the corresponding dimension: got "
            f"padding={found} for lhs_shape[2:]={tuple(space)}"
        )
    out = [_places(n, k, s) for n, k, s in zip(padded, window, strides)]
    return (int(lhs_shape[0]) // batch_group_count, int(rhs_shape[0]), *out)


def conv_general_permutations(
    dimension_numbers: tuple[str, str, str],
) -> tuple[Shape, Shape, Shape]:
    """The orders of axes of a convolution's lhs, rhs and result that put batch and features first,
    for lax.transpose.

    dimension_numbers  three strings such as ("NHWC", "HWIO", "NHWC").

    Raises TypeError where a string lacks its two letters or has them twice, ValueError unless there are
    three.

    >>> lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    if len(dimension_numbers) != 3:
        raise ValueError(
            "conv_general_permutations: dimension_numbers are three strings, for lhs, rhs and result, "
            f"got {dimension_numbers!r}"
        )
    chars = (("N", "C"), ("O", "I"), ("N", "C"))
    for number, (spec, pair) in enumerate(zip(dimension_numbers, chars)):
        if not spec.count(pair[0]) == spec.count(pair[1]) == 1:
            raise TypeError(
                f"convolution dimension_numbers[{number}] must contain the characters "
                f"'{pair[0]}' and '{pair[1]}' exactly once, got {spec}."
            )
        if len(set(spec)) != len(spec):
            raise TypeError(
                f"convolution dimension_numbers[{number}] cannot have duplicate characters, got "
                f"{spec}."
            )
    spaces = [set(spec) - set(pair) for spec, pair in zip(dimension_numbers, chars)]
    if spaces[0] != spaces[1] or spaces[0] != spaces[2]:
        raise TypeError(
            "convolution dimension_numbers elements must each have the same set of spatial "
            f"characters, got {dimension_numbers}."
        )
    order = [c for c in dimension_numbers[1] if c not in "OI"]
    lhs, rhs, out = (
        tuple(spec.index(c) for c in (*pair, *order))
        for spec, pair in zip(dimension_numbers, chars)
    )
    return lhs, rhs, out


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Pads,
    dimension_numbers: tuple[str, str, str],
) -> Shape:
    """The shape of a convolution's result in any layout.

    lhs_shape, rhs_shape  of the operands.
    window_strides        an int for each axis of space.
    padding               "SAME", "VALID", "SAME_LOWER" or a (low, high) pair for each axis of
                          space.
    dimension_numbers     three strings such as ("NHWC", "HWIO", "NHWC").

    Raises ValueError for an unknown padding.

    >>> layout = ("NHWC", "HWIO", "NHWC")
    >>> lax.conv_general_shape_tuple((1, 8, 8, 3), (3, 3, 3, 5), (2, 2), "SAME", layout)
    (1, 4, 4, 5)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    natural = conv_shape_tuple(
        [lhs_shape[d] for d in lhs], [rhs_shape[d] for d in rhs], window_strides, padding
    )
    return tuple(natural[i] for i in np.argsort(out))


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Pads,
    dimension_numbers: tuple[str, str, str],
) -> Shape:
    """The shape of a conv_transpose's result.

    lhs_shape, rhs_shape  of the operands.
    window_strides        how far it upsamples, an int for each axis of space.
    padding               "SAME", "VALID", or a (low, high) pair for each axis of space.
    dimension_numbers     three strings such as ("NHWC", "HWIO", "NHWC").

    >>> layout = ("NHWC", "HWIO", "NHWC")
    >>> lax.conv_transpose_shape_tuple((1, 4, 4, 3), (3, 3, 3, 5), (2, 2), "SAME", layout)
    (1, 8, 8, 5)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    x, kernel = [lhs_shape[d] for d in lhs], [rhs_shape[d] for d in rhs]
    pads: Any = padding
    if isinstance(padding, str):
        pads = [transposed_pads(k, s, padding) for k, s in zip(kernel[2:], window_strides)]
    space = [
        (n - 1) * s - k + 2 + sum(pad)
        for n, k, s, pad in zip(x[2:], kernel[2:], window_strides, pads)
    ]
    natural = (x[0], kernel[0], *space)
    return tuple(int(natural[i]) for i in np.argsort(out))


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Pads,
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Shape:
    """The shape of a reduce_window's result.

    operand_shape      of the operand.
    window_dimensions  the sizes of a window, one for each axis.
    window_strides     how far it moves along each axis.
    padding            a (low, high) pair for each axis.
    base_dilation      how far the operand is spread along each axis; None: ones.
    window_dilation    how far the window is spread; None: ones.

    >>> lax.reduce_window_shape_tuple((8, 8), (3, 3), (2, 2), [(0, 0), (1, 1)])
    (3, 4)
    """
    ones = (1,) * len(operand_shape)
    rows = zip(
        operand_shape, window_dimensions, window_strides, padding, base_dilation or ones,
        window_dilation or ones,
    )  # fmt: skip
    found = []
    for n, k, s, (low, high), base, wide in rows:
        size, window = dilated(n, base), dilated(k, wide)
        check_reach("reduce_window", low, high, base, wide, s, size, window)
        found.append(_places(size + low + high, window, s))
    return tuple(found)


def _places(size: int, window: int, stride: int) -> int:
    return max(0, int(size - window) // int(stride) + 1)
