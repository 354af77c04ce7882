"""What is put around arrays before windows go over them, as "SAME" and "VALID" say it or in numbers."""

from __future__ import annotations

from collections.abc import Sequence

Pads = Sequence[tuple[int, int]]


def padtype_to_pads(
    in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int],
    padding: str,
) -> list[tuple[int, int]]:  # fmt: skip
    """The (low, high) pairs that a padding's name stands for, one for each axis.

    in_shape        the sizes of the axes.
    window_shape    those of a window.
    window_strides  how far it moves.
    padding         "VALID": none; "SAME": so much that there are size / stride windows, the odd one
                    at the end; "SAME_LOWER": the odd one at the beginning.

    Raises ValueError for another name.

    >>> lax.padtype_to_pads((8,), (4,), (1,), "SAME")
    [(1, 2)]
    """
    kind = padding.upper()
    if kind == "VALID":
        return [(0, 0)] * len(in_shape)
    if kind not in ("SAME", "SAME_LOWER"):
        raise RuntimeError(f"Unknown padding {padding!r}: expected SAME, SAME_LOWER or VALID")
    pads = []
    for size, window, stride in zip(in_shape, window_shape, window_strides):
        total = max(0, (-(-size // stride) - 1) * stride + window - size)
        low = total // 2 if kind == "SAME" else -(-total // 2)
        pads.append((int(low), int(total - low)))
    return pads


def transposed_pads(window: int, stride: int, padding: str) -> tuple[int, int]:
    """(low, high) of a transposed convolution along an axis, for what "SAME" or "VALID" was before."""
    if padding == "SAME":
        total = window + stride - 2
        low = window - 1 if stride > window - 1 else -(-total // 2)
    elif padding == "VALID":
        total = window + stride - 2 + max(window - stride, 0)
        low = window - 1
    else:
        raise RuntimeError(f"Unknown padding {padding!r}: expected SAME or VALID")
    return low, total - low


def dilated(size: int, dilation: int) -> int:
    """The size of an axis with dilation - 1 gaps between its elements."""
    return 0 if size == 0 else 1 + dilation * (size - 1)
