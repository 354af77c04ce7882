"""custom_linear_solve: a linear system that is solved, and differentiated, as the user says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from lamina.control_flow.residuals import hoist_consts
from lamina.control_flow.tracing import avals_of, debug_info, trace_function
from lamina.core import tree
from lamina.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from lamina.core.placed import Dims, Operands
from lamina.core.primitive import Primitive
from lamina.core.tangents import Zero, is_undefined_primal
from lamina.core.tracebacks import api_boundary
from lamina.core.weak_cache import cache_on_jaxpr
from lamina.interpreters.batching import batch_jaxpr, batched_size, move_batch
from lamina.interpreters.jvp import jvp_jaxpr
from lamina.interpreters.tangents import instantiate_zero
from lamina.interpreters.transpose import transpose_jaxpr

Solver = Callable[[Callable[..., Any], Any], Any]


class Parts(NamedTuple):
    """One thing for each function: their programs, or what these close over."""

    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any

    def transposed(self) -> Parts:
        """Those of the transposed system."""
        return Parts(self.vecmat, self.matvec, self.transpose_solve, self.solve)


@api_boundary
def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: Any,
    solve: Solver,
    transpose_solve: Solver | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """x = solve(matvec, b), which is to be the x with matvec(x) = b. Derivatives are solutions of
    the same system, so that solve need not have any.

    matvec           a linear function from b's type to b's type.
    b                a pytree of arrays, the right-hand side.
    solve            solve(matvec, b) gives x.
    transpose_solve  the same for the transposed function; needed for reverse mode.
    symmetric        matvec is its own transpose, so that solve does for both.
    has_aux          solvers give (x, aux), and so does this; aux is not differentiated.

    Raises TypeError where x or matvec(x) has not b's structure and types.

    >>> halve = lambda matvec, b: b / 2
    >>> solve = lambda b: lax.custom_linear_solve(lambda x: 2 * x, b, halve, symmetric=True)
    >>> print(solve(jnp.array([1.0, 3.0])), lamina.grad(lambda b: solve(b).sum())(jnp.ones(2)))
    [0.5 1.5] [0.5 0.5]
    """
    if transpose_solve is None and symmetric:
        transpose_solve = solve
    leaves, b_tree = tree.flatten(b)
    in_tree = tree.structure((b,))
    avals = [a.strip_weak_type() for a in avals_of(leaves, "custom_linear_solve")]
    leaves = [_strong(x) for x in leaves]
    mv, mv_consts, mv_tree = trace_function(matvec, in_tree, avals, debug_info(matvec, "matvec"))
    _check("matvec() output", mv_tree, mv.out_avals, b_tree, avals)
    vm, vm_consts = mv, mv_consts
    if not symmetric and transpose_solve is not None:
        linear = [False] * len(mv_consts) + [True] * len(avals)
        vm, _ = transpose_jaxpr(mv, linear, [True] * len(avals), True)
        vm, extra = hoist_consts(vm)
        vm_consts = [*extra, *mv_consts]

    def with_solver(solver: Solver, closed: ClosedJaxpr, consts: Sequence[Any]) -> Any:
        def apply(x: Any) -> Any:
            return tree.unflatten(b_tree, jaxpr_as_fun(closed)(*consts, *tree.leaves(x)))

        out = trace_function(
            lambda rhs: solver(apply, rhs), in_tree, avals, debug_info(solver, "solve")
        )
        x_tree, aux = out[2], 0
        if has_aux:
            parts = out[2].children()
            if len(parts) != 2:
                raise TypeError("custom_linear_solve: with has_aux solve gives a pair (x, aux)")
            x_tree, aux = parts[0], parts[1].num_leaves
        n = len(out[0].out_avals) - aux
        _check("solve() output", x_tree, out[0].out_avals[:n], b_tree, avals)
        return out

    sv, sv_consts, out_tree = with_solver(solve, mv, mv_consts)
    ts, ts_consts = None, []
    if transpose_solve is not None:
        ts, ts_consts, _ = with_solver(transpose_solve, vm, vm_consts)
    consts = Parts(mv_consts, vm_consts, sv_consts, ts_consts)
    outs = linear_solve_p.bind(
        *[x for part in consts for x in part],
        *leaves,
        jaxprs=Parts(mv, vm, sv, ts),
        const_lengths=Parts(*map(len, consts)),
    )
    return tree.unflatten(out_tree, outs)


def _strong(x: Any) -> Any:
    from lamina.core.trace import get_aval
    from lamina.lax.convert import convert

    aval = get_aval(x)
    return convert(x, aval.dtype, False) if aval.weak_type else x


def _check(what: str, got: Any, got_avals: Any, want: Any, want_avals: Any) -> None:
    if got != want:
        raise TypeError(
            f"{what} and b must have same type structure, got {got} and {want}."
        )
    if [(a.shape, a.dtype) for a in got_avals] != [(a.shape, a.dtype) for a in want_avals]:
        shown = [", ".join(a.str_short() for a in avals) for avals in (got_avals, want_avals)]
        raise TypeError(f"{what} and b must have the same types, got {shown[0]} and {shown[1]}.")


# ---- rules -------------------------------------------------------------------------------------
def _split(args: Sequence[Any], lengths: Parts) -> tuple[Parts, list[Any]]:
    parts, start = [], 0
    for length in lengths:
        parts.append(list(args[start : start + length]))
        start += length
    return Parts(*parts), list(args[start:])


def _abstract_eval(*_: Any, jaxprs: Parts, **__: Any) -> list[Any]:
    return [a.strip_weak_type() for a in jaxprs.solve.out_avals]


def _lowering(ctx: Any, *args: Any, jaxprs: Parts, const_lengths: Parts) -> Any:
    consts, b = _split(args, const_lengths)
    return ctx.lower_jaxpr(jaxprs.solve.jaxpr, jaxprs.solve.consts, [*consts.solve, *b])


def _jvp(primals: Any, tangents: Any, *, jaxprs: Parts, const_lengths: Parts) -> Any:
    """A x = b gives A dx = db - dA x."""
    from lamina import lax

    params = {"jaxprs": jaxprs, "const_lengths": const_lengths}
    outs = linear_solve_p.bind(*primals, **params)
    consts, b = _split(primals, const_lengths)
    dconsts, db = _split(tangents, const_lengths)
    n = len(b)
    x, rhs = outs[:n], db
    nonzero = [type(t) is not Zero for t in dconsts.matvec]
    if any(nonzero):
        both, _ = jvp_jaxpr(jaxprs.matvec, nonzero + [False] * n, True)
        given = [t for t in dconsts.matvec if type(t) is not Zero]
        moved = jaxpr_as_fun(both)(*consts.matvec, *x, *given)[n:]
        rhs = [
            lax.neg(m) if type(t) is Zero else lax.sub(t, m)
            for t, m in zip(db, moved, strict=True)
        ]
    zeros = [Zero(a.to_tangent_aval()) for a in jaxprs.solve.out_avals]
    if all(type(t) is Zero for t in rhs):
        return outs, zeros
    given_rhs = [instantiate_zero(t) for t in rhs]
    flat = [c for part in consts for c in part]
    dx = linear_solve_p.bind(*flat, *given_rhs, **params)[:n]
    return outs, [*dx, *zeros[n:]]


def _transpose(cts: Any, *args: Any, jaxprs: Parts, const_lengths: Parts) -> list[Any]:
    if jaxprs.transpose_solve is None:
        raise TypeError(
            "transpose_solve required for backwards mode automatic differentiation of "
            "custom_linear_solve"
        )
    consts, b = _split(args, const_lengths)
    if any(is_undefined_primal(x) for part in consts for x in part):
        raise NotImplementedError("custom_linear_solve is linear in b only")
    flat = [x for part in consts.transposed() for x in part]
    given = [instantiate_zero(ct) for ct in cts[: len(b)]]
    out = linear_solve_p.bind(
        *flat, *given, jaxprs=jaxprs.transposed(), const_lengths=const_lengths.transposed()
    )
    return [None] * sum(const_lengths) + out[: len(b)]


_batched = cache_on_jaxpr(lambda closed, n, batched: batch_jaxpr(closed, n, batched, True)[0])


def _batching(args: Any, dims: Any, *, jaxprs: Parts, const_lengths: Parts) -> Any:
    """All right-hand sides and solutions are batched, and of the constants those that are."""
    size = batched_size(args, dims)
    n_consts = sum(const_lengths)
    n_b = len(args) - n_consts
    moved = [
        move_batch(x, d, size) if d is not None or i >= n_consts else x
        for i, (x, d) in enumerate(zip(args, dims, strict=True))
    ]
    batched_consts, _ = _split([d is not None for d in dims], const_lengths)
    consts, b = _split(moved, const_lengths)
    programs: list[Any] = []
    given: list[list[Any]] = []
    for closed, flags, values in zip(jaxprs, batched_consts, consts, strict=True):
        if closed is None:
            programs.append(None)
            given.append(values)
            continue
        program, extra = hoist_consts(_batched(closed, size, (*flags, *[True] * n_b)))
        programs.append(program)
        given.append([*extra, *values])
    outs = linear_solve_p.bind(
        *[x for part in given for x in part],
        *b,
        jaxprs=Parts(*programs),
        const_lengths=Parts(*map(len, given)),
    )
    return outs, [0] * len(outs)


def _impl(*args: Any, jaxprs: Parts, const_lengths: Parts) -> list[Any]:
    consts, b = _split(args, const_lengths)
    return jaxpr_as_fun(jaxprs.solve)(*consts.solve, *b)


def _placed(of: Operands, *results: Any, jaxprs: Parts, const_lengths: Parts) -> list[Dims]:
    """Solutions lie as right-hand sides do, and what the solver gives besides as its program says."""
    sides = of.dims[sum(const_lengths) :]
    rest = jaxprs.solve.out_avals[len(sides) :]
    return [*sides, *(((),) * a.ndim if a.placed is None else a.placed.dims for a in rest)]


linear_solve_p = Primitive(
    "custom_linear_solve",
    multiple_results=True,
    abstract_eval=_abstract_eval,
    lowering=_lowering,
    jvp=_jvp,
    transpose=_transpose,
    batching=_batching,
    impl=_impl,
    placed=_placed,
    shown=lambda params: {
        "const_lengths": params["const_lengths"],
        "jaxprs": params["jaxprs"].solve,
    },
)
