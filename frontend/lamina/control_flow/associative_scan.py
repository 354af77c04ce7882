"""associative_scan: all prefixes of arrays combined by an associative function.

It has two forms (`two_forms.py`): a tree of O(log n) steps on whole arrays (`prefix_tree.py`), and
one in blocks (`scan_in_blocks.py`). Short scans are the tree's alone, and so are those whose function
can't be applied to one element at a time, or would be slow there. Pairs of floats combined as
h -> a h + b are a running product and a recurrence (`recurrence.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeVar

import numpy as np

from lamina import config
from lamina.control_flow.jit_call import with_calls_inlined
from lamina.control_flow.prefix_tree import prefixes_by_tree
from lamina.control_flow.recurrence import (
    RECURRENT,
    order_of_recurrence,
    recurrence,
    running_products,
)
from lamina.control_flow.scan_in_blocks import prefixes_in_blocks
from lamina.control_flow.tracing import debug_info, trace_function
from lamina.control_flow.two_forms import SHARED_BY_TIES, bind_forms
from lamina.core import axes, tree
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import ClosedJaxpr, all_equations, eval_jaxpr
from lamina.core.trace import get_aval
from lamina.core.tracebacks import api_boundary
from lamina.errors import ConcretizationTypeError
from lamina.interpreters.batching import batch_flat, move_batch
from lamina.interpreters.staging import trace_to_jaxpr
from lamina.records import Record

T = TypeVar("T")
_LEAST = 16  # elements worth blocks
_SLOW_IN_LOOPS = frozenset("exp exp2 expm1 log log1p logistic pow sin cos tan tanh erf".split())
"""Functions that loops of lanes compute with half of a vector register, and all lanes at once with
whole ones."""
_CHOOSES = SHARED_BY_TIES | frozenset(
    "select_n eq ne lt le gt ge and or xor not convert_element_type broadcast_in_dim jit".split()
)
"""Of functions with extremes only those of these are the same in any order: others may be derivatives, which
equal operands share by the order that they were combined in, in JAX as in the tree."""


@api_boundary
def associative_scan(
    fn: Callable[[T, T], T], elems: T, reverse: bool = False, axis: int = 0
) -> T:
    """All prefixes of elems along an axis, combined by an associative function, in a number of
    steps that grows with the logarithm of the size.

    fn       a function of two trees like elems that combines them elementwise along the axis: it is
             given many elements at a time.
    elems    a tree of arrays with one size along the axis.
    reverse  combines from the end on.
    axis     counted from the end where negative.

    Raises TypeError where fn is not callable or gives other shapes or dtypes; ValueError where
    sizes along the axis differ.

    >>> print(lax.associative_scan(lax.max, jnp.array([1, 3, 2, 5, 4])))
    [1 3 3 5 5]
    """
    from lamina import lax
    from lamina.lax.checks import canonical_axis

    if not callable(fn):
        raise TypeError("lax.associative_scan: fn argument should be callable.")
    leaves, treedef = tree.flatten(elems)
    ndim = get_aval(leaves[0]).ndim
    axis = canonical_axis("associative_scan", axis, ndim)
    sizes = {get_aval(x).shape[axis] for x in leaves}
    if len(sizes) != 1:
        raise ValueError(
            f"Array inputs to associative_scan must have the same size along axis {axis}: "
            f"{sorted(sizes)}"
        )
    (n,) = sizes

    def combine(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        out, out_tree = tree.flatten(fn(tree.unflatten(treedef, a), tree.unflatten(treedef, b)))
        _check_combined(fn, treedef, out_tree, a, out)
        return out

    step = None
    if n >= _LEAST and not config.disable_jit.value:
        step = _combiner(fn, leaves, treedef, axis)
    pair = None if step is None or not step.by_numbers else order_of_recurrence(step.closed.jaxpr)
    if pair is not None and get_aval(leaves[0]).dtype in RECURRENT:
        a, b = (leaves[i] for i in pair)
        out = [running_products(a, axis, bool(reverse)), recurrence(a, b, axis, bool(reverse))]
        return tree.unflatten(treedef, [out[i] for i in pair])
    if reverse:
        leaves = [lax.rev(x, (axis,)) for x in leaves]
    if step is None:
        out = prefixes_by_tree(combine, leaves, axis)
    else:
        out = _in_two_forms(combine, step, leaves, axis)
    if reverse:
        out = [lax.rev(x, (axis,)) for x in out]
    return tree.unflatten(treedef, out)


# ---- the function on one element ---------------------------------------------------------------
class _Combiner(Record):
    """The function on the leaves of two elements, whose size along the axis is 1. `by_numbers`: it
    goes by single numbers, so that elements may have any shape."""

    closed: ClosedJaxpr
    consts: Sequence[Any]
    by_numbers: bool

    def __call__(self, a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        return eval_jaxpr(self.closed.jaxpr, self.closed.consts, *self.consts, *a, *b)


def _combiner(
    fn: Callable[[Any, Any], Any], leaves: Sequence[Any], treedef: tree.PyTreeDef, axis: int
) -> _Combiner | None:
    """fn on one element and another; None where it can't be told, or does not give one more."""
    avals = [x.update(weak_type=False) for x in map(get_aval, leaves)]
    if not all(x.size and x.ndim > axis and x.dtype.kind in "?biufcV" for x in avals):
        return None
    element = [x.update(shape=(*x.shape[:axis], 1, *x.shape[axis + 1 :])) for x in avals]
    traced = _traced(fn, element, treedef)
    if traced is None:
        return None
    closed, consts = traced
    flat = with_calls_inlined(closed)
    one_shape = len({x.shape for x in avals}) == 1
    if one_shape and _goes_by_numbers(flat, consts):
        return _Combiner(flat, consts, by_numbers=True)
    return _Combiner(closed, consts, by_numbers=False)


def _check_combined(
    fn: Callable[[Any, Any], Any], treedef: tree.PyTreeDef, out_tree: tree.PyTreeDef,
    given: Sequence[Any], out: Sequence[Any],
) -> None:  # fmt: skip
    """TypeError if fn does not give elements like those it takes."""
    if out_tree != treedef:
        raise TypeError(
            f"lax.associative_scan: fn takes two trees {treedef} and must return one such tree, but "
            f"{debug_info(fn, 'associative_scan').place()} returned {out_tree}"
        )
    for x, y in zip(map(get_aval, given), map(get_aval, out), strict=True):
        if (x.shape, x.dtype) != (y.shape, y.dtype):
            place = debug_info(fn, "associative_scan").place()
            raise TypeError(
                "lax.associative_scan: fn must return arrays of the shapes and dtypes that it takes (it "
                f"is given many elements at a time, along the scanned axis), but {place} took "
                f"{x.str_short()} and returned {y.str_short()}"
            )


def _traced(
    fn: Callable[[Any, Any], Any], element: Sequence[ShapedArray], treedef: tree.PyTreeDef
) -> tuple[ClosedJaxpr, Sequence[Any]] | None:
    one = tree.unflatten(treedef, list(element))
    in_tree = tree.flatten((one, one))[1]
    info = debug_info(fn, "associative_scan")
    try:
        closed, consts, out_tree = trace_function(fn, in_tree, [*element, *element], info)
    except ConcretizationTypeError:
        return None  # outside jit it may look at values
    alike = [(x.shape, x.dtype) for x in closed.out_avals] == [(x.shape, x.dtype) for x in element]
    if out_tree != treedef or not alike or closed.effects or axes.used_in(closed.jaxpr):
        return None
    names = {eqn.primitive.name for eqn in all_equations(closed.jaxpr)}
    if not names.isdisjoint(_SLOW_IN_LOOPS) or not (names.isdisjoint(SHARED_BY_TIES) or names <= _CHOOSES):
        return None
    return closed, consts


def _goes_by_numbers(closed: ClosedJaxpr, consts: Sequence[Any]) -> bool:
    from lamina.lax.elementwise_rules import is_elementwise

    return not any(np.shape(c) for c in (*consts, *closed.consts)) and all(
        is_elementwise(eqn.primitive) for eqn in closed.jaxpr.eqns
    )


# ---- two forms ---------------------------------------------------------------------------------
def _in_two_forms(
    combine: Callable[..., list[Any]], step: _Combiner, leaves: Sequence[Any], axis: int
) -> list[Any]:
    avals = [x.update(weak_type=False) for x in map(get_aval, leaves)]
    plain = trace_to_jaxpr(lambda *xs: prefixes_by_tree(combine, xs, axis), avals)
    in_blocks = trace_to_jaxpr(lambda *xs: _in_blocks(step, xs, axis), avals)
    return bind_forms(plain, in_blocks, leaves)


def _in_blocks(step: _Combiner, xs: Sequence[Any], axis: int) -> list[Any]:
    from lamina import lax
    from lamina.lax.batching_rules import move_axis

    shape, n = xs[0].shape, xs[0].shape[axis]
    if not step.by_numbers:
        first = [lax.expand_dims(move_axis(x, axis, 0), (axis + 1,)) for x in xs]
        out = prefixes_in_blocks(step, first)
        return [move_axis(lax.squeeze(x, (axis + 1,)), 0, axis) for x in out]
    rows = prod(shape[:axis])
    flat = [lax.reshape(x, (rows, n, *shape[axis + 1 :])) for x in xs]
    outs, dims = batch_flat(lambda *x: prefixes_in_blocks(step, x), flat, [0] * len(flat), rows)
    return [
        lax.reshape(move_batch(x, d, rows), shape) for x, d in zip(outs, dims, strict=True)
    ]
