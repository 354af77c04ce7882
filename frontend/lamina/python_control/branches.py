"""`if` on a traced value: both branches are traced, and what they assign becomes a cond's results."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from lamina.control_flow.cond import cond
from lamina.core import tree
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import ClosedJaxpr, DebugInfo, eval_jaxpr
from lamina.core.trace import Tracer, get_aval
from lamina.core.type_promotion import promote_types
from lamina.interpreters.staging import trace_to_jaxpr
from lamina.interpreters.tangents import zeros_like_aval
from lamina.python_control.jumps import RESULT
from lamina.python_control.state import (
    UNBOUND,
    State,
    Undefined,
    called,
    describe,
    is_arrays,
    is_bound,
    where,
)


@dataclasses.dataclass
class Traced:
    """A block run on tracers: its program, and each variable's value after it; `at` says where the
    leaves of a value that is a pytree of arrays stand among the program's results."""

    closed: ClosedJaxpr
    values: tuple[Any, ...]
    at: list[range]

    def avals(self, i: int) -> list[ShapedArray]:
        return [self.closed.out_avals[k] for k in self.at[i]]


def trace_block(run: Callable[[], None], state: State, before: Sequence[Any]) -> Traced:
    """Runs a block from a state on tracers. Leaves the variables as it made them."""
    values: list[Any] = []
    at: list[range] = []

    def flat() -> list[Any]:
        state.set(before)
        run()
        outs: list[Any] = []
        for value in state.get():
            leaves = tree.leaves(value) if is_arrays(value) else []
            at.append(range(len(outs), len(outs) + len(leaves)))
            values.append(value)
            outs += leaves
        return outs

    try:
        closed = trace_to_jaxpr(flat, [], DebugInfo("a branch", location=where()))
    except RecursionError as e:
        raise _endless(e) from None
    return Traced(closed, tuple(values), at)


_ENDLESS = "is reached by a function that calls itself"


def _endless(error: RecursionError) -> RecursionError:
    if _ENDLESS in str(error):
        return error
    return RecursionError(
        f"the `if` at {where()} {_ENDLESS}, without end while it is "
        "traced: both branches are, for the condition is known only when the program runs. Write a "
        "loop, or make what decides a static argument."
    )


def traced_if(
    pred: Any, body: Callable[[], None], orelse: Callable[[], None], state: State
) -> None:
    """Runs the `if` as a cond.

    Raises TypeError naming the variable on whose type the branches disagree.
    """
    aval = get_aval(pred)
    if aval.shape:
        bool(pred)  # raises, with the reason
    state.refuse_mutation("a branch")
    before = state.get()
    then = trace_block(body, state, before)
    other = trace_block(orelse, state, before)
    state.set(before)
    final: list[Any] = []
    picked: list[tuple[int, Any, list[ShapedArray]]] = []
    for i, name in enumerate(state.names):
        a, b = then.values[i], other.values[i]
        if a is b or _same_constant(a, b):
            final.append(a)
        elif is_bound(a) and is_bound(b):
            picked.append((i, *_unified(name, i, then, other)))
            final.append(None)
        elif name == RESULT and is_arrays(a if is_bound(a) else b):
            given = then if is_bound(a) else other
            picked.append((i, tree.structure(given.values[i]), given.avals(i)))
            final.append(None)
        elif not is_bound(a) and not is_bound(b):
            final.append(a if a is not UNBOUND else b)
        else:
            missing = "when the condition is " + ("false" if is_bound(a) else "true")
            final.append(
                Undefined(f"{called(name)} is not assigned {missing}, in the `if` at {where()}")
            )

    def branch(traced: Traced) -> Callable[[], list[Any]]:
        def run() -> list[Any]:
            outs = eval_jaxpr(traced.closed.jaxpr, traced.closed.consts)
            return [x for i, _, avals in picked for x in _leaves(traced, outs, i, avals)]

        return run

    if picked or then.closed.effects or other.closed.effects:
        results = iter(cond(pred, branch(then), branch(other)))
        for i, treedef, avals in picked:
            final[i] = tree.unflatten(treedef, [next(results) for _ in avals])
    state.set(final)


def _leaves(traced: Traced, outs: list[Any], i: int, avals: list[ShapedArray]) -> list[Any]:
    from lamina import lax

    if not is_bound(traced.values[i]):
        return [zeros_like_aval(a) for a in avals]  # never read: a flag says so
    return [
        x if get_aval(x).dtype == a.dtype else lax.convert_element_type(x, a.dtype)
        for x, a in zip((outs[k] for k in traced.at[i]), avals, strict=True)
    ]


def _same_constant(a: Any, b: Any) -> bool:
    """Whether two values are equal and known: they need no result of the cond."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (bool, int, float, complex, str, bytes)):
        return bool(a == b)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(_same_or_identical, a, b))
    return not is_arrays(a) and not isinstance(a, Tracer) and is_bound(a) and _equal(a, b)


def _same_or_identical(a: Any, b: Any) -> bool:
    return a is b or _same_constant(a, b)


def _equal(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except Exception:
        return False


def _unified(name: str, i: int, then: Traced, other: Traced) -> tuple[Any, list[ShapedArray]]:
    """The structure and the types that a variable has after both branches."""
    a, b = then.values[i], other.values[i]
    fits = is_arrays(a) and is_arrays(b) and tree.structure(a) == tree.structure(b)
    avals: list[ShapedArray] = []
    if fits:
        for x, y in zip(then.avals(i), other.avals(i), strict=True):
            joined = _joined(x, y)
            fits = fits and joined is not None
            avals.append(joined or x)
    if not fits:
        for x in tree.leaves((a, b)):
            if type(x) is Undefined:
                raise UnboundLocalError(x.reason)
        raise TypeError(
            f"{called(name)} is {describe(a)} where the condition is true and {describe(b)} where it "
            f"is false, in the `if` at {where()}. Both branches must give it one structure, shape "
            "and dtype, for the condition is known only when the program runs."
        )
    return tree.structure(a), avals


def _joined(x: ShapedArray, y: ShapedArray) -> ShapedArray | None:
    if x.shape != y.shape:
        return None
    if x.dtype == y.dtype:
        return x if not x.weak_type else y
    if not (x.weak_type or y.weak_type):
        return None
    dtype, weak = promote_types((x.dtype, x.weak_type), (y.dtype, y.weak_type))
    strong = [a.dtype for a in (x, y) if not a.weak_type]
    return None if strong and dtype not in strong else x.update(dtype=dtype, weak_type=weak)
