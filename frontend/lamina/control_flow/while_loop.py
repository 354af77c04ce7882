"""while_loop: repeats a body while a condition holds. Its rules are in while_rules.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

import numpy as np

from lamina import config
from lamina.control_flow.carry import check_carry, promote_weak_carry
from lamina.control_flow.kept_carry import join_kept, kept_as_constants, kept_carry, split_kept
from lamina.control_flow.mutation import loop_with, values_of, watched, write_all
from lamina.control_flow.tracing import avals_of, debug_info, trace_function
from lamina.control_flow.while_rules import while_p
from lamina.core import tree
from lamina.core.array_class import Array
from lamina.core.array_likes import ArrayLike
from lamina.core.avals import ShapedArray
from lamina.core.trace import is_evaluating
from lamina.core.tracebacks import api_boundary

T = TypeVar("T")


@overload
def while_loop(
    cond_fun: Callable[[Array], ArrayLike],
    body_fun: Callable[[Array], ArrayLike],
    init_val: ArrayLike,
) -> Array: ...
@overload
def while_loop(
    cond_fun: Callable[[T], ArrayLike], body_fun: Callable[[T], T], init_val: T
) -> T: ...
@api_boundary
def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any
) -> Any:
    """val = init_val; while cond_fun(val): val = body_fun(val); gives val.

    cond_fun  a function of the value that gives a boolean scalar.
    body_fun  a function of the value that gives the next, of the same structure and types.
    init_val  a pytree of arrays. A weakly typed entry (a Python number) takes the type that the
              body gives it.

    Raises TypeError where cond_fun does not give a boolean scalar, or body_fun another type.
    Differentiable forwards; not in reverse, for the number of steps is not known: that raises
    ValueError.

    >>> lax.while_loop(lambda x: x < 100, lambda x: x * 3, 1)
    Array(243, dtype=int32, weak_type=True)
    """
    if not (callable(body_fun) and callable(cond_fun)):
        raise TypeError("lax.while_loop: body_fun and cond_fun arguments should be callable.")
    if config.disable_jit.value and is_evaluating():
        val = init_val
        while cond_fun(val):
            val = body_fun(val)
        return val
    init, in_tree = tree.flatten((init_val,))
    value_tree = tree.structure(init_val)
    avals = avals_of(init, "while_loop")

    def trace_body(avals: list[ShapedArray]) -> Any:
        return trace_function(
            body_fun, in_tree, avals, debug_info(body_fun, "while_loop body", (init_val,))
        )

    (body, body_consts, body_tree), written = watched(lambda: trace_body(avals))
    if written:
        test = loop_with(cond_fun, written)
        result, values = while_loop(
            lambda s: test(s)[0], loop_with(body_fun, written), (init_val, values_of(written))
        )
        write_all(written, values)
        return result
    init, new_avals = promote_weak_carry(init, avals, body.out_avals, body_tree == value_tree)
    if new_avals != avals:
        avals = new_avals
        body, body_consts, body_tree = trace_body(avals)
    info = body.jaxpr.debug_info
    check_carry("while_loop body", info, body_tree, value_tree, body.out_avals, avals)
    cond, cond_consts, cond_tree = trace_function(
        cond_fun, in_tree, avals, debug_info(cond_fun, "while_loop cond", (init_val,))
    )
    got = cond.out_avals
    if cond_tree != tree.structure(0) or got[0].shape or got[0].dtype != np.bool_:
        what = got[0].str_long() if cond_tree.is_leaf() else f"pytree {cond_tree}"
        raise TypeError(
            f"cond_fun must return a boolean scalar, but got {what} from "
            f"{cond.jaxpr.debug_info.place()}."
        )
    kept = kept_carry(body, len(body_consts), len(init))
    if any(kept):
        cond, cond_consts = kept_as_constants(cond, cond_consts, init, kept, gives_carry=False)
        body, body_consts = kept_as_constants(body, body_consts, init, kept, gives_carry=True)
    constants, changing = split_kept(init, kept)
    outs = while_p.bind(
        *cond_consts,
        *body_consts,
        *changing,
        cond_nconsts=len(cond_consts),
        cond_jaxpr=cond,
        body_nconsts=len(body_consts),
        body_jaxpr=body,
    )
    return tree.unflatten(value_tree, join_kept(constants, outs, kept))
