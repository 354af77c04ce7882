"""Differentiation: jvp, linearize, vjp, linear_transpose. gradients.py and jacobians.py are made of
these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import index
from typing import Any

import numpy as np

from lamina import runtime
from lamina.array import ArrayImpl
from lamina.control_flow.tracing import check_outputs
from lamina.core import dtypes, tree
from lamina.core.avals import ShapedArray, same_type
from lamina.core.jaxpr import ClosedJaxpr, eval_jaxpr
from lamina.core.library import library
from lamina.core.tangents import UndefinedPrimal, Zero
from lamina.core.trace import Tracer, get_aval, is_array_like, is_evaluating
from lamina.core.tree_differences import tree_differences
from lamina.core.wrapping import function_name
from lamina.interpreters.jvp import jvp_flat
from lamina.interpreters.linearize import linearize_flat
from lamina.interpreters.staging import trace_to_jaxpr
from lamina.interpreters.tangents import instantiate_zero
from lamina.interpreters.transpose import backward_pass
from lamina.lax.convert import convert
from lamina.tree_util import Partial


def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> Any:
    """fun(*primals) and its directional derivative along tangents.

    primals, tangents  tuples or lists of pytrees of equal structure, shapes and (tangent) dtypes;
                       tangents of integers have dtype float0.
    has_aux            fun gives (out, aux); aux is given back as a third result, undifferentiated.
    Raises TypeError where primals and tangents do not match.
    """
    for what, value in (("primal", primals), ("tangent", tangents)):
        if not isinstance(value, (tuple, list)):
            raise TypeError(
                f"{what} and tangent arguments to {library}.jvp must be tuples or lists; found {value!r} "
                f"of type {type(value)}."
            )
    ps, p_tree = tree.flatten(tuple(primals))
    ts, t_tree = tree.flatten(tuple(tangents))
    if p_tree != t_tree:
        raise TypeError(
            f"primal and tangent arguments to {library}.jvp must have the same tree structure; primals "
            f"have {p_tree} and tangents have {t_tree}."
        )
    for p, t in zip(ps, ts, strict=True):
        pa = get_aval(p).to_tangent_aval()
        ta = _tangent_aval(t)
        if pa.dtype != ta.dtype:
            raise TypeError(
                f"primal and tangent arguments to {library}.jvp do not match; dtypes must be equal, or in "
                "case of int/bool primal dtype the tangent dtype must be float0. Got primal dtype "
                f"{get_aval(p).dtype.name} and so expected tangent dtype {pa.dtype}, but got tangent "
                f"dtype {ta.dtype} instead."
            )
        if pa.shape != ta.shape:
            raise ValueError(
                f"{library}.jvp called with different primal and tangent shapes; got primal shape "
                f"{pa.shape} and tangent shape as {ta.shape}"
            )
    ts = [Zero(_tangent_aval(t)) if _tangent_aval(t).dtype == dtypes.float0 else t for t in ts]
    flat, out = _flat_fun(fun, p_tree, has_aux)
    outs, out_tangents = jvp_flat(flat, _with_shapes(ps), ts)
    main = tree.unflatten(out.tree, outs[: out.n])
    dots = tree.unflatten(out.tree, [instantiate_zero(t) for t in out_tangents[: out.n]])
    if has_aux:
        return main, dots, out.aux(outs[out.n :])
    return main, dots


def _array(x: Any, weak_type: bool) -> Any:
    """A derivative as users get it: an array also where it is zero or a number of theirs, and
    weakly typed where the primal is."""
    x = instantiate_zero(x)
    if _tangent_aval(x).dtype == dtypes.float0:
        return x
    if not isinstance(x, (Tracer, ArrayImpl)):
        x = runtime.to_array(x)
    return convert(x, x.dtype, True) if weak_type and not x.weak_type else x


def _with_shapes(primals: Sequence[Any]) -> list[Any]:
    """Numbers as arrays, where their values are known: custom rules get them as they are."""
    if not is_evaluating():
        return list(primals)
    return [runtime.to_array(x) if type(x) in (float, complex) else x for x in primals]


def _tangent_aval(t: Any) -> Any:
    if getattr(t, "dtype", None) == dtypes.float0:
        return ShapedArray(np.shape(t), dtypes.float0)
    return get_aval(t)


class _Out:
    """What a flattened function found out about its results when it ran."""

    tree: Any
    n: int
    _aux_tree: Any
    _aux: list[Any]  # leaves, with None where there is an array

    def keep_aux(self, aux: Any) -> list[Any]:
        """The arrays of an auxiliary result. What else is in it is no business of derivatives."""
        leaves, self._aux_tree = tree.flatten(aux)
        self._aux = [None if is_array_like(x) else x for x in leaves]
        return [x for x in leaves if is_array_like(x)]

    def aux(self, arrays: Sequence[Any]) -> Any:
        """The auxiliary result, with these arrays."""
        given = iter(arrays)
        leaves = [next(given) if x is None else x for x in self._aux]
        return tree.unflatten(self._aux_tree, leaves)


def _flat_fun(
    fun: Callable[..., Any], in_tree: Any, has_aux: bool
) -> tuple[Callable[..., list[Any]], _Out]:
    out = _Out()

    def flat(*leaves: Any) -> list[Any]:
        result = fun(*tree.unflatten(in_tree, leaves))
        aux: list[Any] = []
        if has_aux:
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                raise TypeError(
                    "expected function with aux output to return a two-element tuple, but got type "
                    f"{type(result)} with value {result!r}"
                )
            result, aux_value = result
            aux = out.keep_aux(aux_value)
        main, out.tree = tree.flatten(result)
        check_outputs(main, function_name(fun))
        out.n = len(main)
        return [*main, *aux]

    return flat, out


class _LinearMap:
    """What linearising a function found, without the values: equal to itself alone, so that trees
    that hold it can be arguments and results of jitted functions."""

    def __init__(self, fun: Callable[..., Any], primals: Sequence[Any], has_aux: bool) -> None:
        leaves, self.in_tree = tree.flatten(tuple(primals))
        flat, out = _flat_fun(fun, self.in_tree, has_aux)
        self.in_avals = [get_aval(x) for x in leaves]
        self.active = [dtypes.is_inexact(a.dtype) for a in self.in_avals]
        given = _with_shapes(leaves)
        self.outs, linear, self.nonzero = linearize_flat(flat, given, self.active)
        self.jaxpr, self.residuals = linear.jaxpr, linear.consts
        self.out_tree, n = out.tree, out.n
        self.out_avals = [get_aval(x) for x in self.outs[:n]]
        self.main = tree.unflatten(out.tree, self.outs[:n])
        self.aux = out.aux(self.outs[n:]) if has_aux else None

    def with_residuals(self, apply: Callable[..., Any]) -> Partial:
        """A function of tangents or cotangents, whose residuals are leaves of a tree."""
        kept = self.residuals
        # The map must not keep values alive that are somebody else's, or traced.
        del self.outs, self.residuals, self.main, self.aux
        return Partial(apply, kept)

    def push(self, residuals: Sequence[Any], *tangents: Any) -> Any:
        """The out tangents."""
        ts, t_tree = tree.flatten(tuple(tangents))
        if t_tree != self.in_tree:
            raise TypeError(
                f"the tangents have structure {t_tree}, the linearised function takes {self.in_tree}"
            )
        for aval, t in zip(self.in_avals, ts, strict=True):
            want, got = aval.to_tangent_aval(), _tangent_aval(t)
            if want.shape != got.shape or want.dtype != got.dtype:
                raise ValueError(
                    "linearized function called on tangent values inconsistent with the original "
                    f"primal values: got tangent aval {got.str_short()} for primal {want.str_short()}"
                )
        given = iter(
            eval_jaxpr(
                self.jaxpr, residuals, *[t for t, a in zip(ts, self.active, strict=True) if a]
            )
        )
        dots = [
            next(given) if nz else instantiate_zero(Zero(a.to_tangent_aval()))
            for a, nz in zip(self.out_avals, self.nonzero, strict=False)
        ]
        return tree.unflatten(self.out_tree, dots)

    def pull(self, residuals: Sequence[Any], *cotangents: Any) -> Any:
        """The cotangents of the primals."""
        if len(cotangents) != 1:
            raise TypeError(
                f"a function that vjp gives was called with {len(cotangents)} arguments; it takes one, with "
                "the structure of the differentiated function's result: a tuple for a tuple"
            )
        cts, ct_tree = tree.flatten(cotangents[0])
        if ct_tree != self.out_tree:
            raise ValueError(
                "unexpected tree structure.\n\nThe argument of a function that vjp gives must match "
                "the pytree structure of the differentiated function's result, but they differ:\n"
                + "\n".join(
                    f"  * out{path} was {a} in the original output, but {b} here, so {why}"
                    for path, a, b, why in tree_differences(self.out_tree, ct_tree)
                )
            )
        for ct, aval in zip(cts, self.out_avals, strict=True):
            want, got = aval.to_tangent_aval(), _tangent_aval(ct)
            if want.shape != got.shape or want.dtype != got.dtype:
                raise ValueError(
                    "unexpected type (e.g. shape/dtype) for argument to VJP function: got "
                    f"{got.str_long()}, but expected {want.str_long()} because the corresponding "
                    f"output of the differentiated function had type {aval.str_long()}"
                )
        given = [ct for ct, nz in zip(cts, self.nonzero, strict=False) if nz]
        # Aux results that depend on the primals have no cotangent.
        given += [Zero(v.aval) for v in self.jaxpr.outvars[len(given) :]]
        operands = [UndefinedPrimal(v.aval) for v in self.jaxpr.invars]
        back = iter(backward_pass(self.jaxpr, residuals, operands, given))
        return tree.unflatten(
            self.in_tree,
            [
                _array(next(back), aval.weak_type)
                if active
                else np.zeros(aval.shape, dtypes.float0)
                for aval, active in zip(self.in_avals, self.active, strict=True)
            ],
        )


def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """fun(*primals), and a function of tangents that gives the out tangents without running fun
    again (the values it needs are kept).

    has_aux  fun gives (out, aux); the result is (out, function of tangents, aux).
    """
    linear = _LinearMap(fun, primals, has_aux)
    main, aux = linear.main, linear.aux
    apply = linear.with_residuals(linear.push)
    return (main, apply, aux) if has_aux else (main, apply)


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """fun(*primals), and a function from the result's cotangents to those of the primals. That
    function is a tree of the values it keeps, so jitted functions may take and give it.

    has_aux  fun gives (out, aux); the result is (out, vjp function, aux).
    Cotangents of integer primals have dtype float0.
    """
    linear = _LinearMap(fun, primals, has_aux)
    main, aux = linear.main, linear.aux
    apply = linear.with_residuals(linear.pull)
    return (main, apply, aux) if has_aux else (main, apply)


def fwd_and_bwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The two passes of reverse mode as functions: fwd(*args, **kwargs) -> (out, residuals), or
    (out, residuals, aux); bwd(residuals, cotangent) -> cotangents of the arguments at argnums.

    jitted  compile both.
    """

    def fwd(*args: Any, **kwargs: Any) -> Any:
        of_active, active = as_function_of(fun, argnums, args, kwargs)
        return vjp(of_active, *active, has_aux=has_aux)

    def bwd(residuals: Any, cotangent: Any) -> Any:
        grads = residuals(cotangent)
        return grads[0] if not isinstance(argnums, Iterable) else grads

    if not jitted:
        return fwd, bwd
    from lamina.jit import jit

    return jit(fwd), jit(bwd)


def as_function_of(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    args: Sequence[Any],
    kwargs: dict[str, Any],
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """fun as a function of the arguments at some positions only, and those arguments.

    Raises TypeError where the call has no such positions.
    """
    try:
        positions = tuple(map(index, argnums if isinstance(argnums, Iterable) else (argnums,)))
    except TypeError:
        raise TypeError(
            f"argnums must be an integer or a sequence of integers, got {argnums!r}. To differentiate by "
            "an argument given by name, give it a position."
        ) from None
    if positions and (max(positions) >= len(args) or min(positions) < -len(args)):
        needed = max(p + 1 if p >= 0 else -p for p in positions)
        raise TypeError(
            f"differentiating with respect to argnums={argnums} requires at least {needed} "
            "positional arguments to be passed by the caller, but got only "
            f"{len(args)} positional arguments."
        )

    def of_active(*active: Any) -> Any:
        full = list(args)
        for p, x in zip(positions, active, strict=True):
            full[p] = x
        return fun(*full, **kwargs)

    of_active.__name__ = function_name(fun)  # as messages call it
    return of_active, tuple(args[p] for p in positions)


def linear_transpose(fun: Callable[..., Any], *primals: Any) -> Callable[[Any], Any]:
    """The transpose of a function that is linear in all its arguments.

    primals  arrays or ShapeDtypeStructs that say the argument types.
    """
    leaves, in_tree = tree.flatten(tuple(primals))
    flat, out = _flat_fun(fun, in_tree, False)
    avals = [getattr(x, "aval", None) or get_aval(x) for x in leaves]
    closed: ClosedJaxpr = trace_to_jaxpr(flat, avals)

    def apply(cotangent: Any) -> Any:
        cts, ct_tree = tree.flatten(cotangent)
        if ct_tree != out.tree:
            raise TypeError(
                f"cotangent tree does not match function output, expected {out.tree} but "
                f"got {ct_tree}"
            )
        for ct, want in zip(cts, closed.out_avals, strict=True):
            got = _tangent_aval(ct)
            if not same_type(got, want):
                raise TypeError(
                    "linear_transpose: the cotangent is of type "
                    f"{got.str_short()} where the function gives {want.str_short()}"
                )
        result = backward_pass(
            closed.jaxpr, closed.consts, [UndefinedPrimal(a) for a in avals], cts
        )
        return tree.unflatten(
            in_tree, [_array(ct, a.weak_type) for ct, a in zip(result, avals, strict=True)]
        )

    return apply
