"""custom_root: a root of a function, differentiated by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina.control_flow.custom_jvp import custom_jvp
from lamina.control_flow.tracing import avals_of, debug_info, trace_function
from lamina.core import tree
from lamina.core.jaxpr import jaxpr_as_fun
from lamina.core.tangents import Zero
from lamina.core.trace import get_aval
from lamina.core.tracebacks import api_boundary
from lamina.interpreters.jvp import jvp_flat
from lamina.interpreters.tangents import instantiate_zero

Solver = Callable[[Callable[..., Any], Any], Any]


@api_boundary
def custom_root(
    f: Callable[[Any], Any],
    initial_guess: Any,
    solve: Solver,
    tangent_solve: Solver,
    has_aux: bool = False,
) -> Any:
    """x = solve(f, initial_guess), which is to be an x with f(x) = 0. Its derivatives with respect
    to what f closes over are those of the implicit function theorem, so that solve need not have
    any.

    f              a function from the guess's type to itself.
    initial_guess  a pytree of arrays.
    solve          solve(f, initial_guess) gives x.
    tangent_solve  tangent_solve(g, y) gives the x with g(x) = y for the linear function g that f is
                   near the root, and is linear in y.
    has_aux        solve gives (x, aux), and so does this; aux is not differentiated.

    Raises TypeError where x or f(x) has not initial_guess's structure.

    >>> def newton(f, x):
    ...     slope = lamina.grad(f)
    ...     return lax.fori_loop(0, 20, lambda i, x: x - f(x) / slope(x), x)
    >>> def square_root(a):
    ...     return lax.custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0))
    >>> square_root(4.0), lamina.grad(square_root)(4.0)
    (Array(2., dtype=float32, weak_type=True), Array(0.25, dtype=float32, weak_type=True))
    """
    leaves, guess_tree = tree.flatten(initial_guess)
    in_tree = tree.structure((initial_guess,))
    avals = avals_of(leaves, "custom_root")
    n = len(leaves)
    program, f_consts, f_tree = trace_function(f, in_tree, avals, debug_info(f, "custom_root"))
    _check("f() output", f_tree, guess_tree)

    def at(consts: Any) -> Callable[[Any], Any]:
        def apply(x: Any) -> Any:
            return tree.unflatten(
                guess_tree, jaxpr_as_fun(program)(*consts, *tree.leaves(x))
            )

        return apply

    finder, solve_consts, out_tree = trace_function(
        lambda guess: solve(at(f_consts), guess), in_tree, avals, debug_info(solve, "solve")
    )
    parts = out_tree.children() if has_aux else [out_tree]
    _check("solve() output", parts[0], guess_tree)

    tangents, tangent_consts, tangent_tree = trace_function(
        lambda x, y: tangent_solve(_derivative(at(f_consts), x), y),
        tree.structure((initial_guess, initial_guess)),
        [*finder.out_avals[:n], *program.out_avals],
        debug_info(tangent_solve, "tangent_solve"),
    )
    _check("tangent_solve() output", tangent_tree, guess_tree)

    @custom_jvp
    def root(f_consts: Any, solve_consts: Any, tangent_consts: Any, guess: Any) -> list[Any]:
        return jaxpr_as_fun(finder)(*solve_consts, *guess)

    @root.defjvp
    def root_jvp(primals: Any, dots: Any) -> Any:
        from lamina import lax

        f_consts, _, tangent_consts, _ = primals
        outs = root(*primals)
        x = outs[:n]
        _, moved = jvp_flat(
            lambda *consts: jaxpr_as_fun(program)(*consts, *x), f_consts, dots[0]
        )
        rhs = [instantiate_zero(t) for t in moved]
        found = jaxpr_as_fun(tangents)(*tangent_consts, *x, *rhs)
        return outs, [*map(lax.neg, found), *map(_zero_tangent, outs[n:])]

    return tree.unflatten(out_tree, root(f_consts, solve_consts, tangent_consts, leaves))


def _derivative(f: Callable[[Any], Any], x: Any) -> Callable[[Any], Any]:
    """The linear function that f is near x, whose structure its result has."""
    leaves, treedef = tree.flatten(x)

    def tangent(direction: Any) -> Any:
        outs = jvp_flat(
            lambda *v: tree.leaves(f(tree.unflatten(treedef, v))), leaves, tree.leaves(direction)
        )[1]
        return tree.unflatten(treedef, [instantiate_zero(t) for t in outs])

    return tangent


def _zero_tangent(x: Any) -> Any:
    return instantiate_zero(Zero(get_aval(x).to_tangent_aval()))


def _check(what: str, got: Any, want: Any) -> None:
    if got != want:
        raise TypeError(
            f"{what} and initial_guess must have same type structure, got {got} and {want}."
        )
