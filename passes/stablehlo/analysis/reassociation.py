"""Which dimensions a reshape joins and splits."""

from __future__ import annotations

from collections.abc import Sequence

Groups = list[tuple[list[int], list[int]]]


def grouped_dimensions(before: Sequence[int], after: Sequence[int]) -> Groups | None:
    """The finest sets of consecutive dimensions (old, new) with equal element counts.

    [4, 6, 5] -> [24, 5] is [([0, 1], [0]), ([2], [1])]. Dimensions of 1 go with a neighbour.
    None if a dimension has no elements.
    """
    if 0 in before or 0 in after:
        return None
    groups: Groups = []
    i = j = 0
    while i < len(before) or j < len(after):
        old, new = [], []
        left = right = 1
        if i < len(before):
            left, old, i = before[i], [i], i + 1
        if j < len(after):
            right, new, j = after[j], [j], j + 1
        while left != right:
            if left < right:
                left, i = left * before[i], _append(old, i)
            else:
                right, j = right * after[j], _append(new, j)
        groups.append((old, new))
    return groups


def _append(dims: list[int], dim: int) -> int:
    dims.append(dim)
    return dim + 1
