"""The types of custom calls of LAPACK's routines, written as `m n -> m n, k:int, m:int`.

Each array is the dimensions of one matrix or vector, behind those of the batch, which all have. A letter
is one size wherever it stands, `k` the lesser of m and n, `n-1` one less than n. Elements are those of the
first operand, or `int` (i32), `real` or `complex` (that, of the same precision).
"""

from __future__ import annotations

from collections.abc import Sequence

from lamina.dialects.vendors import ir

MOST = (1 << 31) - 1  # range
"""The largest size that LAPACK counts."""

_REAL = {"f32": "f32", "f64": "f64", "complex<f32>": "f32", "complex<f64>": "f64"}


def problem_of_types(call: ir.Operation, types: str, rising: str = "") -> str | None:
    """What is wrong with the types of a call's operands and results; None where nothing is.

    rising  letters, of which each size must be the next one's at most.
    """
    given, made = (side.split(", ") for side in types.split(" -> "))
    values = [*call.operands, *call.results]
    shown = f"is for arrays (...) {types}"
    if (len(call.operands), len(call.results)) != (len(given), len(made)):
        return f"{shown}, and has {len(call.operands)} operands and {len(call.results)} results"
    first = call.operands[0].type
    element = str(first.element_type)
    if element not in _REAL and not given[0].endswith(":int"):
        return f"has a {first}, and does f32, f64, complex<f32> and complex<f64>"
    rank = len(given[0].partition(":")[0].split())
    batch = list(first.shape)[: len(first.shape) - rank]
    sizes: dict[str, int] = {}
    for value, written in zip(values, (*given, *made), strict=True):
        dims, _, kind = written.partition(":")
        of = value.type
        fits = str(of.element_type) == _element(kind, element)
        if not (fits and _fits(list(of.shape), batch, dims.split(), sizes)):
            return f"{shown}, and {of} does not fit"
    order = [sizes[letter] for letter in rising.split()]
    if order != sorted(order):
        return f"{shown} where {' <= '.join(rising.split())}, and they are {order}"
    if max(sizes.values()) > MOST:
        return f"has a matrix of size {max(sizes.values())}; LAPACK counts to {MOST}"
    return None


def _element(kind: str, first: str) -> str:
    if kind == "int":
        return "i32"
    if kind == "real":
        return _REAL[first]
    return f"complex<{_REAL[first]}>" if kind == "complex" else first


def _fits(shape: list[int], batch: list[int], letters: Sequence[str], sizes: dict[str, int]) -> bool:
    """Whether a shape is that of a batch of what the letters say, with the sizes that are known, to which
    those of new letters are added."""
    if len(shape) != len(batch) + len(letters) or shape[: len(batch)] != batch:
        return False
    for letter, size in zip(letters, shape[len(batch) :], strict=True):
        if letter == "k":
            known = min(sizes["m"], sizes["n"])
        elif letter == "n-1":
            known = sizes["n"] - 1
        else:
            known = sizes.setdefault(letter, size)
        if size != known:
            return False
    return True
