"""Differentiation: jvp, linearize, vjp, linear_transpose. gradients.py and jacobians.py are made of
these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import index
from typing import Any, Literal, TypeVar, overload

import numpy as np

from lamina import shape_dtype
from lamina.core import dtypes, tree
from lamina.core.array_class import Array
from lamina.core.array_likes import ArrayLike
from lamina.core.avals import ShapedArray, same_type
from lamina.core.jaxpr import ClosedJaxpr
from lamina.core.library import library
from lamina.core.tangents import UndefinedPrimal, Zero
from lamina.core.trace import get_aval
from lamina.core.tracebacks import api_boundary
from lamina.core.wrapping import function_name
from lamina.interpreters.jvp import jvp_flat
from lamina.interpreters.staging import trace_to_jaxpr
from lamina.interpreters.tangents import instantiate_zero
from lamina.interpreters.transpose import backward_pass
from lamina.linear_maps import LinearMap, as_derivative, flat_function, tangent_aval, with_shapes
from lamina.tree_util import Partial
from lamina.tuple_trees import flags_of
from lamina.vjp_functions import VJP

R = TypeVar("R")
T = TypeVar("T")
Aux = TypeVar("Aux")


@overload
def jvp(
    fun: Callable[..., R],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[False] = False,
) -> tuple[R, R]: ...
@overload
def jvp(
    fun: Callable[..., tuple[R, Aux]],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[True],
) -> tuple[R, R, Aux]: ...
@overload
def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool
) -> Any: ...
@api_boundary
def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> Any:
    """fun(*primals) and its directional derivative along tangents.

    fun                a function of pytrees of arrays.
    primals, tangents  tuples or lists of pytrees of equal structure, shapes and (tangent) dtypes;
                       tangents of integers have dtype float0.
    has_aux            fun gives (out, aux); aux is given back as a third result, undifferentiated.

    Raises TypeError where primals and tangents do not match.

    >>> out, tangent = lamina.jvp(lambda x: x**3, (2.0,), (1.0,))
    >>> float(out), float(tangent)
    (8.0, 12.0)
    """
    for value in (primals, tangents):
        if not isinstance(value, (tuple, list)):
            raise TypeError(
                f"primal and tangent arguments to {library}.jvp must be tuples or lists; found "
                f"{type(primals).__name__} and {type(tangents).__name__}."
            )
    ps, p_tree = tree.flatten(primals)
    ts, t_tree = tree.flatten(tangents)
    if p_tree != t_tree:
        raise TypeError(
            f"primal and tangent arguments to {library}.jvp must have the same tree structure; primals "
            f"have {p_tree} and tangents have {t_tree}."
        )
    for p, t in zip(ps, ts, strict=True):
        pa = get_aval(p).to_tangent_aval()
        ta = tangent_aval(t)
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
    ts = [Zero(tangent_aval(t)) if tangent_aval(t).dtype == dtypes.float0 else t for t in ts]
    flat, out = flat_function(fun, tree.structure(tuple(primals)), has_aux)
    outs, out_tangents = jvp_flat(flat, with_shapes(ps), with_shapes(ts))
    main = tree.unflatten(out.tree, outs[: out.n])
    dots = tree.unflatten(out.tree, [instantiate_zero(t) for t in out_tangents[: out.n]])
    if has_aux:
        return main, dots, out.aux(outs[out.n :])
    return main, dots


@overload
def linearize(
    fun: Callable[[Array], R],
    primal: ArrayLike,
    /,
    *,
    has_aux: Literal[False] = False,
    in_nzs: Any = None,
) -> tuple[R, Callable[..., R]]: ...
@overload
def linearize(
    fun: Callable[[T], R], primal: T, /, *, has_aux: Literal[False] = False, in_nzs: Any = None
) -> tuple[R, Callable[..., R]]: ...
@overload
def linearize(
    fun: Callable[..., R],
    primal: Any,
    second: Any,
    /,
    *primals: Any,
    has_aux: Literal[False] = False,
    in_nzs: Any = None,
) -> tuple[R, Callable[..., R]]: ...
@overload
def linearize(
    fun: Callable[..., tuple[R, Aux]], *primals: Any, has_aux: Literal[True], in_nzs: Any = None
) -> tuple[R, Callable[..., R], Aux]: ...
@overload
def linearize(
    fun: Callable[..., Any], *primals: Any, has_aux: bool, in_nzs: Any = None
) -> Any: ...
@api_boundary
def linearize(
    fun: Callable[..., Any], *primals: Any, has_aux: bool = False, in_nzs: Any = None
) -> Any:
    """fun(*primals), and a function of tangents that gives the out tangents without running fun
    again (the values it needs are kept).

    primals  pytrees of arrays.
    has_aux  fun gives (out, aux); the result is (out, function of tangents, aux).
    in_nzs   which inputs have a tangent: a tree of bools, of the primals' structure or a prefix of it,
             where tuples may stand for any containers. By default all. Tangents of the others
             count as zero.

    The function's `out_nzs` says which results have a tangent.

    >>> y, push = lamina.linearize(jnp.sin, 0.0)
    >>> push(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    linear = LinearMap(fun, primals, has_aux, flags_of(in_nzs, primals, "in_nzs", "linearize"))
    main, aux = linear.main, linear.aux
    out_nzs = linear.out_nzs
    apply = Partial(linear.push, linear.give_residuals())
    vars(apply)["out_nzs"] = out_nzs
    return (main, apply, aux) if has_aux else (main, apply)


@overload
def vjp(
    fun: Callable[[Array], R],
    primal: ArrayLike,
    /,
    *,
    has_aux: Literal[False] = False,
    saveable_args: Any = True,
    in_nzs: Any = None,
) -> tuple[R, VJP]: ...
@overload
def vjp(
    fun: Callable[[T], R],
    primal: T,
    /,
    *,
    has_aux: Literal[False] = False,
    saveable_args: Any = True,
    in_nzs: Any = None,
) -> tuple[R, VJP]: ...
@overload
def vjp(
    fun: Callable[..., R],
    primal: Any,
    second: Any,
    /,
    *primals: Any,
    has_aux: Literal[False] = False,
    saveable_args: Any = True,
    in_nzs: Any = None,
) -> tuple[R, VJP]: ...
@overload
def vjp(
    fun: Callable[..., tuple[R, Aux]],
    *primals: Any,
    has_aux: Literal[True],
    saveable_args: Any = True,
    in_nzs: Any = None,
) -> tuple[R, VJP, Aux]: ...
@overload
def vjp(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool,
    saveable_args: Any = True,
    in_nzs: Any = None,
) -> Any: ...
@api_boundary
def vjp(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool = False,
    saveable_args: Any = True,
    in_nzs: Any = None,
) -> Any:
    """fun(*primals), and a function from the result's cotangents to those of the primals: a `VJP`.
    That function is a tree of the values it keeps, so jitted functions may take and give it.

    primals  pytrees of arrays.
    has_aux  fun gives (out, aux); the result is (out, vjp function, aux).
    saveable_args  a tree of bools as in_nzs. Of arguments where it is False the function keeps
             `NotSaveable` in their places in its `args_res`; the caller puts them back.
    in_nzs   which inputs are differentiated: a tree of bools, of the primals' structure or a prefix
             of it, where tuples may stand for any containers. By default all. The cotangents of the
             others are zeros.

    Cotangents of integer primals have dtype float0.

    >>> y, pull = lamina.vjp(jnp.sin, 0.0)
    >>> pull(2.0)
    (Array(2., dtype=float32, weak_type=True),)
    """
    linear = LinearMap(fun, primals, has_aux, flags_of(in_nzs, primals, "in_nzs", "vjp"))
    main, aux = linear.main, linear.aux
    apply = VJP.of(linear, primals, flags_of(saveable_args, primals, "saveable_args", "vjp"))
    return (main, apply, aux) if has_aux else (main, apply)


@api_boundary
def fwd_and_bwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The two passes of reverse mode as functions: fwd(*args, **kwargs) -> (out, residuals), or
    (out, residuals, aux); bwd(residuals, cotangent) -> cotangents of the arguments at argnums.

    fun      a function of pytrees of arrays.
    argnums  position or positions of the arguments to differentiate.
    has_aux  fun gives (out, aux).
    jitted   compile both.

    >>> fwd, bwd = lamina.fwd_and_bwd(jnp.multiply, 0)
    >>> out, residuals = fwd(jnp.array(3.0), jnp.array(4.0))
    >>> float(out), float(bwd(residuals, jnp.array(1.0)))
    (12.0, 4.0)
    """

    def fwd(*args: Any, **kwargs: Any) -> Any:
        of_active, active = as_function_of(fun, argnums, args, kwargs)
        return vjp(of_active, *active, has_aux=has_aux)

    def bwd(residuals: Any, cotangent: Any) -> Any:
        grads = residuals(cotangent)
        return grads[0] if not isinstance(argnums, Iterable) else grads

    if not jitted:
        return fwd, bwd
    from lamina.jit.function import jit

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

    # Messages call it by the name and the place of fun.
    of_active.__name__, of_active.__wrapped__ = function_name(fun), fun  # type: ignore[attr-defined]
    return of_active, tuple(args[p] for p in positions)


@api_boundary
def linear_transpose(fun: Callable[..., Any], *primals: Any) -> Callable[[Any], Any]:
    """The transpose of a function that is linear in all its arguments.

    fun      a linear function of pytrees of arrays.
    primals  arrays or ShapeDtypeStructs that say the argument types.

    Raises TypeError, or NotImplementedError, while transposing what is not linear.

    >>> transpose = lamina.linear_transpose(lambda x: 3 * x, jnp.zeros(2))
    >>> transpose(jnp.array([1.0, 2.0]))[0].tolist()
    [3.0, 6.0]
    """
    leaves, in_tree = tree.flatten(tuple(map(shape_dtype.as_types, primals)))
    flat, out = flat_function(fun, in_tree, False)
    avals = [getattr(x, "aval", None) or get_aval(x) for x in leaves]
    closed: ClosedJaxpr = trace_to_jaxpr(flat, avals)
    _check_linear_types(avals, closed.out_avals)

    @api_boundary
    def apply(consts: Any, cotangent: Any) -> Any:
        cts, ct_tree = tree.flatten(cotangent)
        if ct_tree != out.tree:
            raise TypeError(
                f"cotangent tree does not match function output, expected {out.tree} but "
                f"got {ct_tree}"
            )
        for ct, want in zip(cts, closed.out_avals, strict=True):
            got = tangent_aval(ct)
            if not same_type(got, want):
                raise TypeError(
                    f"cotangent type does not match function output, expected {want.str_short()} but "
                    f"got {got.str_short()}"
                )
        result = backward_pass(closed.jaxpr, consts, [UndefinedPrimal(a) for a in avals], cts)
        return tree.unflatten(
            in_tree, [as_derivative(ct, a.weak_type) for ct, a in zip(result, avals, strict=True)]
        )

    return Partial(apply, closed.consts)


def _check_linear_types(ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> None:
    """Raises TypeError unless a function of these types can be linear: among floats, or among integers."""
    kinds = [[a.dtype for a in avals] for avals in (ins, outs)]
    if all(dtypes.is_inexact(d) or d == dtypes.float0 for d in kinds[0] + kinds[1]):
        return
    if not all(np.issubdtype(d, np.integer) for d in kinds[0] + kinds[1]):
        raise TypeError(
            "linear_transpose only supports functions from floats or complex numbers to such, or from "
            f"integers to integers, but this one goes from {kinds[0]} to {kinds[1]}"
        )
