"""Jacobians and Hessians, vectorised over unit vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Concatenate, Literal, ParamSpec, overload

import numpy as np

from lamina.autodiff import as_function_of, jvp, vjp
from lamina.control_flow.tracing import check_callable
from lamina.core import dtypes, tree
from lamina.core.array_class import Array
from lamina.core.trace import get_aval
from lamina.core.tracebacks import api_boundary
from lamina.core.wrapping import update_wrapper
from lamina.gradients import check_input, check_output
from lamina.lax.convert import convert
from lamina.vmap import vmap

P = ParamSpec("P")


@overload
def jacfwd(
    fun: Callable[Concatenate[Array, P], Array],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Callable[Concatenate[Array, P], Array]: ...
@overload
def jacfwd(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, Any]: ...
@api_boundary
def jacfwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """The Jacobian, by one forward pass per input element (vectorised): out shape + in shape.

    fun                   a function of pytrees of arrays.
    argnums               the position, or positions, of the arguments to differentiate.
    has_aux, holomorphic  as of value_and_grad.

    Raises TypeError where inputs are not real (not complex, with holomorphic).

    >>> lamina.jacfwd(lambda x: x * x)(jnp.array([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    check_callable(fun)

    @api_boundary
    def jacfun(*args: Any, **kwargs: Any) -> Any:
        of_active, active = as_function_of(fun, argnums, args, kwargs)
        for x in tree.leaves(active):
            _check_forward_input(x, holomorphic)

        def push(*tangent: Any) -> Any:
            out = jvp(of_active, active, tangent, has_aux=has_aux)
            return out[1:] if has_aux else out[1]

        result = vmap(push, out_axes=(-1, None) if has_aux else -1)(*_basis(active))
        aux = None
        if has_aux:
            result, aux = result
        if holomorphic:
            for y in tree.leaves(result):
                check_output("jacfwd", get_aval(y), True)
        jac = tree.map(lambda y: _unravel(y, active, argnums), result)
        return (jac, aux) if has_aux else jac

    return update_wrapper(jacfun, fun)


def _check_forward_input(x: Any, holomorphic: bool) -> None:
    aval = get_aval(x)
    if holomorphic:
        if not dtypes.is_complex(aval.dtype):
            raise TypeError(
                "jacfwd with holomorphic=True requires inputs with complex dtype, but got "
                f"{aval.dtype.name}."
            )
    elif not dtypes.is_float(aval.dtype):
        raise TypeError(
            "jacfwd requires real-valued inputs (input dtype that is a sub-dtype of np.floating), but "
            f"got {aval.dtype.name}. For holomorphic differentiation, pass holomorphic=True. For "
            "differentiation of non-holomorphic functions involving complex inputs or integer inputs, "
            "use jvp directly."
        )


@overload
def jacrev(
    fun: Callable[Concatenate[Array, P], Array],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[Array, P], Array]: ...
@overload
def jacrev(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]: ...
@api_boundary
def jacrev(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """The Jacobian, by one reverse pass per output element (vectorised): out shape + in shape.

    fun      a function of pytrees of arrays.
    argnums  the position, or positions, of the arguments to differentiate.
    has_aux, holomorphic, allow_int  as of value_and_grad.

    Raises TypeError where inputs or results are not real (not complex, with holomorphic).

    >>> lamina.jacrev(lambda x: x * x)(jnp.array([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    check_callable(fun)

    @api_boundary
    def jacfun(*args: Any, **kwargs: Any) -> Any:
        of_active, active = as_function_of(fun, argnums, args, kwargs)
        for x in tree.leaves(active):
            check_input("jacrev", x, holomorphic, allow_int)
        result = vjp(of_active, *active, has_aux=has_aux)
        outs, out_tree = tree.flatten(result[0])
        for y in outs:
            check_output("jacrev", get_aval(y), holomorphic)
        (basis,) = _basis((result[0],))
        rows = vmap(result[1])(basis)  # a tuple over active, each leaf: (n outputs, *in shape)
        rows = rows[0] if not isinstance(argnums, Iterable) else rows
        jac = _split_rows(rows, outs, out_tree)
        return (jac, result[2]) if has_aux else jac

    return update_wrapper(jacfun, fun)


@overload
def jacobian(
    fun: Callable[Concatenate[Array, P], Array],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[Array, P], Array]: ...
@overload
def jacobian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]: ...
def jacobian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """The Jacobian in reverse mode: jacrev.

    fun      a function of pytrees of arrays.
    argnums  the position, or positions, of the arguments to differentiate.
    has_aux, holomorphic, allow_int  as of value_and_grad.

    >>> lamina.jacobian(jnp.flip)(jnp.array([1.0, 2.0])).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return jacrev(fun, argnums, has_aux, holomorphic, allow_int)


@overload
def hessian(
    fun: Callable[Concatenate[Array, P], Array],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Callable[Concatenate[Array, P], Array]: ...
@overload
def hessian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, Any]: ...
@api_boundary
def hessian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """A function that gives second derivatives, forward over reverse: out shape + in shape twice.

    fun                   a function of pytrees of arrays.
    argnums               the position, or positions, of the arguments to differentiate.
    has_aux, holomorphic  as of value_and_grad.

    Raises TypeError where inputs are not real (not complex, with holomorphic).

    >>> lamina.hessian(lambda x: (x**3).sum())(jnp.array([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


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


def _unravel(y: Any, active: tuple[Any, ...], argnums: Any) -> Any:
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
    return parts[0] if not isinstance(argnums, Iterable) else parts


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
