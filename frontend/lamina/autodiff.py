"""Differentiation: grad, value_and_grad, jvp, vjp, linearize, linear_transpose, Jacobians."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina import runtime
from lamina.array import Array
from lamina.control_flow.tracing import check_outputs
from lamina.core import dtypes, tree
from lamina.core.avals import ShapedArray, same_type
from lamina.core.jaxpr import ClosedJaxpr, eval_jaxpr
from lamina.core.tangents import UndefinedPrimal, Zero
from lamina.core.trace import Tracer, get_aval
from lamina.interpreters.jvp import jvp_flat
from lamina.interpreters.linearize import linearize_flat
from lamina.interpreters.staging import trace_to_jaxpr
from lamina.interpreters.tangents import instantiate_zero
from lamina.interpreters.transpose import backward_pass
from lamina.lax.checks import scalar_of
from lamina.lax.convert import convert


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
                f"{what} and tangent arguments to lamina.jvp must be tuples or lists; found {value!r} "
                f"of type {type(value)}."
            )
    ps, p_tree = tree.flatten(tuple(primals))
    ts, t_tree = tree.flatten(tuple(tangents))
    if p_tree != t_tree:
        raise TypeError(
            "primal and tangent arguments to lamina.jvp must have the same tree structure; primals "
            f"have {p_tree} and tangents have {t_tree}."
        )
    for p, t in zip(ps, ts, strict=True):
        pa = get_aval(p).to_tangent()
        ta = _tangent_aval(t)
        if pa.dtype != ta.dtype:
            raise TypeError(
                "primal and tangent arguments to lamina.jvp do not match; dtypes must be equal, or in "
                "case of int/bool primal dtype the tangent dtype must be float0. Got primal dtype "
                f"{get_aval(p).dtype.name} and so expected tangent dtype {pa.dtype}, but got tangent "
                f"dtype {ta.dtype} instead."
            )
        if pa.shape != ta.shape:
            raise ValueError(
                "lamina.jvp called with different primal and tangent shapes; got primal shape "
                f"{pa.shape} and tangent shape as {ta.shape}"
            )
    ts = [Zero(_tangent_aval(t)) if _tangent_aval(t).dtype == dtypes.float0 else t for t in ts]
    flat, out = _flat_fun(fun, p_tree, has_aux)
    outs, out_tangents = jvp_flat(flat, ps, ts)
    main = tree.unflatten(out.tree, outs[: out.n])
    dots = tree.unflatten(out.tree, [instantiate_zero(t) for t in out_tangents[: out.n]])
    if has_aux:
        return main, dots, tree.unflatten(out.aux_tree, outs[out.n :])
    return main, dots


def _array(x: Any, weak_type: bool) -> Any:
    """A derivative as users get it: an array also where it is zero or a number of theirs, and
    weakly typed where the primal is."""
    x = instantiate_zero(x)
    if _tangent_aval(x).dtype == dtypes.float0:
        return x
    if not isinstance(x, (Tracer, Array)):
        x = runtime.to_array(x)
    return convert(x, x.dtype, True) if weak_type and not x.weak_type else x


def _tangent_aval(t: Any) -> Any:
    if getattr(t, "dtype", None) == dtypes.float0:
        return ShapedArray(np.shape(t), dtypes.float0)
    return get_aval(t)


class _Out:
    """What a flattened function found out about its results when it ran."""

    tree: Any
    aux_tree: Any
    n: int


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
            aux, out.aux_tree = tree.flatten(aux_value)
        main, out.tree = tree.flatten(result)
        check_outputs(main, getattr(fun, "__name__", str(fun)))
        out.n = len(main)
        return [*main, *aux]

    return flat, out


def _linearize(fun: Callable[..., Any], primals: Sequence[Any], has_aux: bool) -> Any:
    leaves, in_tree = tree.flatten(tuple(primals))
    flat, out = _flat_fun(fun, in_tree, has_aux)
    active = [dtypes.is_inexact(get_aval(x).dtype) for x in leaves]
    outs, linear, nonzero = linearize_flat(flat, leaves, active)
    return leaves, in_tree, active, outs, linear, nonzero, out


def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """fun(*primals), and a function of tangents that gives the out tangents without running fun
    again (the values it needs are kept)."""
    leaves, in_tree, active, outs, linear, nonzero, out = _linearize(fun, primals, has_aux)

    def apply(*tangents: Any) -> Any:
        ts, t_tree = tree.flatten(tuple(tangents))
        if t_tree != in_tree:
            raise TypeError(
                f"the tangents have structure {t_tree}, the linearised function takes {in_tree}"
            )
        for p, t in zip(leaves, ts, strict=True):
            want, got = get_aval(p).to_tangent(), _tangent_aval(t)
            if want.shape != got.shape or want.dtype != got.dtype:
                raise ValueError(
                    "linearized function called on tangent values inconsistent with the original "
                    f"primal values: got tangent aval {got.str_short()} for primal {want.str_short()}"
                )
        given = iter(
            eval_jaxpr(
                linear.jaxpr, linear.consts, *[t for t, a in zip(ts, active, strict=True) if a]
            )
        )
        dots = [
            next(given) if nz else instantiate_zero(Zero(get_aval(o).to_tangent()))
            for o, nz in zip(outs, nonzero, strict=True)
        ]
        return tree.unflatten(out.tree, dots[: out.n])

    main = tree.unflatten(out.tree, outs[: out.n])
    if has_aux:
        return main, apply, tree.unflatten(out.aux_tree, outs[out.n :])
    return main, apply


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """fun(*primals), and a function from the result's cotangents to those of the primals.

    has_aux  fun gives (out, aux); the result is (out, vjp function, aux).
    Cotangents of integer primals have dtype float0.
    """
    leaves, in_tree, active, outs, linear, nonzero, out = _linearize(fun, primals, has_aux)

    def apply(cotangents: Any) -> Any:
        cts, ct_tree = tree.flatten(cotangents)
        if ct_tree != out.tree:
            raise ValueError(
                "unexpected tree structure of argument to vjp function: got "
                f"{ct_tree}, but expected to match {out.tree}"
            )
        for ct, o in zip(cts, outs, strict=False):
            want, got = get_aval(o).to_tangent(), _tangent_aval(ct)
            if want.shape != got.shape or want.dtype != got.dtype:
                raise ValueError(
                    f"unexpected JAX type (e.g. shape/dtype) for argument to vjp function: got "
                    f"{got.str_short()}, but expected {want.str_short()}".replace("JAX ", "")
                )
        flags = nonzero[: out.n]
        given = [ct for ct, nz in zip(cts, flags, strict=True) if nz]
        # Aux results that depend on the primals have no cotangent.
        given += [Zero(v.aval) for v in linear.jaxpr.outvars[len(given) :]]
        operands = [UndefinedPrimal(v.aval) for v in linear.jaxpr.invars]
        back = iter(backward_pass(linear.jaxpr, linear.consts, operands, given))
        result = [
            _array(next(back), get_aval(x).weak_type)
            if a
            else np.zeros(get_aval(x).shape, dtypes.float0)
            for x, a in zip(leaves, active, strict=True)
        ]
        return tree.unflatten(in_tree, result)

    main = tree.unflatten(out.tree, outs[: out.n])
    if has_aux:
        return main, apply, tree.unflatten(out.aux_tree, outs[out.n :])
    return main, apply


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
            if not same_type(got, want.to_tangent()):
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


def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """A function that gives (fun(...), gradient).

    fun         a function of pytrees with a real scalar result ((scalar, aux) with has_aux).
    argnums     the position, or positions, of the arguments to differentiate; for a tuple of
                positions the gradient is a tuple.
    holomorphic fun is holomorphic: inputs and result are complex.
    allow_int   integer arguments are allowed; their gradient has dtype float0.
    Raises TypeError where the result is no scalar or an argument is not of a floating type.
    """
    positions = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def value_and_grad_f(*args: Any, **kwargs: Any) -> Any:
        if positions and max(positions) >= len(args) or any(p < -len(args) for p in positions):
            raise TypeError(
                f"differentiating with respect to argnums={argnums} requires at least "
                f"{max(p + 1 for p in positions)} positional arguments to be passed by the caller, but "
                f"got only {len(args)} positional arguments."
            )
        where = [p % len(args) for p in positions]

        of_active, active = _as_function_of(fun, where, args, kwargs)
        for x in tree.leaves(active):
            _check_input(x, holomorphic, allow_int)
        result = vjp(of_active, *active, has_aux=has_aux)
        value, back = result[0], result[1]
        _check_scalar(value, holomorphic)
        grads = back(scalar_of(get_aval(value), 1))
        grads = grads[0] if isinstance(argnums, int) else grads
        return ((value, result[2]), grads) if has_aux else (value, grads)

    try:
        return functools.update_wrapper(value_and_grad_f, fun)
    except AttributeError:
        return value_and_grad_f


def _as_function_of(
    fun: Callable[..., Any], positions: Sequence[int], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """fun as a function of the arguments at some positions only, and those arguments."""

    def of_active(*active: Any) -> Any:
        full = list(args)
        for p, x in zip(positions, active, strict=True):
            full[p] = x
        return fun(*full, **kwargs)

    return of_active, tuple(args[p] for p in positions)


def _check_input(x: Any, holomorphic: bool, allow_int: bool) -> None:
    aval = get_aval(x)
    if holomorphic and not dtypes.is_complex(aval.dtype):
        raise TypeError(
            "grad with holomorphic=True requires inputs with complex dtype, but got "
            f"{aval.dtype.name}."
        )
    if not holomorphic and dtypes.is_complex(aval.dtype):
        return
    if not dtypes.is_inexact(aval.dtype) and not allow_int:
        raise TypeError(
            "grad requires real- or complex-valued inputs (input dtype that is a sub-dtype of "
            f"np.inexact), but got {aval.dtype.name}. If you want to use Boolean- or integer-valued "
            "inputs, use vjp or set allow_int to True."
        )


def _check_scalar(value: Any, holomorphic: bool) -> None:
    try:
        aval = get_aval(value)
    except TypeError:
        raise TypeError(
            f"Gradient only defined for scalar-output functions. Output was {value}."
        ) from None
    if aval.shape:
        raise TypeError(
            f"Gradient only defined for scalar-output functions. Output had shape: {aval.shape}."
        )
    if holomorphic:
        if not dtypes.is_complex(aval.dtype):
            raise TypeError(
                "grad with holomorphic=True requires outputs with complex dtype, but got "
                f"{aval.dtype.name}."
            )
    elif not dtypes.is_float(aval.dtype):
        hint = (
            " For holomorphic differentiation, pass holomorphic=True."
            if dtypes.is_complex(aval.dtype)
            else ""
        )
        raise TypeError(
            "grad requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but "
            f"got {aval.dtype.name}.{hint}"
        )


def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """A function that gives the gradient of a scalar function; see value_and_grad.

    With has_aux the result is (gradient, aux).
    """
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int)

    def grad_f(*args: Any, **kwargs: Any) -> Any:
        value, g = both(*args, **kwargs)
        return (g, value[1]) if has_aux else g

    try:
        return functools.update_wrapper(grad_f, fun)
    except AttributeError:
        return grad_f


def jacfwd(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The Jacobian, by one forward pass per input element (vectorised): out shape + in shape."""
    from lamina.vmap import vmap

    positions = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def jacfun(*args: Any, **kwargs: Any) -> Any:
        of_active, active = _as_function_of(fun, positions, args, kwargs)
        basis = _basis(active)
        aux: list[Any] = []

        def push(*tangent: Any) -> Any:
            out = jvp(of_active, active, tangent, has_aux=has_aux)
            return out[1:] if has_aux else out[1]

        result = vmap(push, out_axes=(-1, None) if has_aux else -1)(*basis)
        if has_aux:
            result, aux_value = result
            aux.append(aux_value)
        jac = tree.map(lambda y: _unravel(y, active, -1, positions, argnums), result)
        return (jac, aux[0]) if has_aux else jac

    return functools.update_wrapper(jacfun, fun)


def jacrev(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The Jacobian, by one reverse pass per output element (vectorised): out shape + in shape."""
    from lamina.vmap import vmap

    positions = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def jacfun(*args: Any, **kwargs: Any) -> Any:
        of_active, active = _as_function_of(fun, positions, args, kwargs)
        for x in tree.leaves(active):
            _check_input(x, False, False)
        result = vjp(of_active, *active, has_aux=has_aux)
        outs, out_tree = tree.flatten(result[0])
        (basis,) = _basis((result[0],))
        rows = vmap(result[1])(basis)  # a tuple over active, each leaf: (n outputs, *in shape)
        rows = rows[0] if isinstance(argnums, int) else rows
        jac = _split_rows(rows, outs, out_tree)
        return (jac, result[2]) if has_aux else jac

    return functools.update_wrapper(jacfun, fun)


def jacobian(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The Jacobian in reverse mode: jacrev."""
    return jacrev(fun, argnums, has_aux)


def hessian(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Second derivatives: forward over reverse."""
    return jacfwd(jacrev(fun, argnums, has_aux), argnums, has_aux)


def _basis(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """For each element of all the values together, the unit vector in its direction."""
    leaves, treedef = tree.flatten(values)
    sizes = [get_aval(x).size for x in leaves]
    total = sum(sizes)
    out, start = [], 0
    for x, size in zip(leaves, sizes, strict=True):
        aval = get_aval(x)
        block = np.zeros((total, size), aval.dtype)
        block[start : start + size] = np.eye(size, dtype=aval.dtype)
        out.append(convert(block.reshape(total, *aval.shape), aval.dtype, aval.weak_type))
        start += size
    return tree.unflatten(treedef, out)


def _unravel(
    y: Any, active: tuple[Any, ...], axis: int, positions: tuple[int, ...], argnums: Any
) -> Any:
    """Columns of a Jacobian, along the last axis, as the structure of the inputs."""
    from lamina import lax

    leaves, treedef = tree.flatten(active)
    out, start = [], 0
    lead = get_aval(y).shape[:-1]
    for x in leaves:
        aval = get_aval(x)
        part = lax.slice_in_dim(y, start, start + aval.size, axis=len(lead))
        out.append(lax.reshape(part, (*lead, *aval.shape)))
        start += aval.size
    parts = tree.unflatten(treedef, out)
    return parts[0] if isinstance(argnums, int) else parts


def _split_rows(rows: Any, outs: list[Any], out_tree: Any) -> Any:
    from lamina import lax

    result, start = [], 0
    for o in outs:
        aval = get_aval(o)
        stop = start + aval.size

        def part(r: Any, start: int = start, stop: int = stop, aval: Any = aval) -> Any:
            return lax.reshape(
                lax.slice_in_dim(r, start, stop, axis=0), (*aval.shape, *get_aval(r).shape[1:])
            )

        result.append(tree.map(part, rows))
        start = stop
    return tree.unflatten(out_tree, result)
