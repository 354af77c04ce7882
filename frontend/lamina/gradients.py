"""grad and value_and_grad: derivatives of scalar functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

import numpy as np

from lamina import lax
from lamina.array import from_numpy
from lamina.autodiff import as_function_of, vjp
from lamina.control_flow.tracing import check_callable
from lamina.core import dtypes, tree
from lamina.core.array_class import Array
from lamina.core.array_likes import ArrayLike
from lamina.core.avals import ShapedArray
from lamina.core.placed import WHOLE
from lamina.core.trace import get_aval
from lamina.core.tracebacks import api_boundary
from lamina.core.wrapping import update_wrapper
from lamina.lax.checks import scalar_of

P = ParamSpec("P")
A = TypeVar("A")
Aux = TypeVar("Aux")


@overload
def value_and_grad(  # type: ignore[overload-overlap]
    fun: Callable[Concatenate[float, P], ArrayLike],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[Concatenate[ArrayLike, P], tuple[Array, Array]]: ...
@overload
def value_and_grad(  # type: ignore[overload-overlap]
    fun: Callable[Concatenate[A, P], ArrayLike],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[Concatenate[A, P], tuple[Array, A]]: ...
@overload
def value_and_grad(  # type: ignore[overload-overlap]
    fun: Callable[Concatenate[float, P], tuple[ArrayLike, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[Concatenate[ArrayLike, P], tuple[tuple[Array, Aux], Array]]: ...
@overload
def value_and_grad(  # type: ignore[overload-overlap]
    fun: Callable[Concatenate[A, P], tuple[ArrayLike, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[Concatenate[A, P], tuple[tuple[Array, Aux], A]]: ...
@overload
def value_and_grad(
    fun: Callable[P, ArrayLike],
    argnums: int,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[Array, Any]]: ...
@overload
def value_and_grad(
    fun: Callable[P, tuple[ArrayLike, Aux]],
    argnums: int,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[tuple[Array, Aux], Any]]: ...
@overload
def value_and_grad(
    fun: Callable[P, ArrayLike],
    argnums: Sequence[int],
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[Array, tuple[Any, ...]]]: ...
@overload
def value_and_grad(
    fun: Callable[P, tuple[ArrayLike, Aux]],
    argnums: Sequence[int],
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[tuple[Array, Aux], tuple[Any, ...]]]: ...
@overload
def value_and_grad(
    fun: Callable[..., ArrayLike | tuple[ArrayLike, Any]],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]: ...
@api_boundary
def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """A function that gives (fun(...), gradient).

    fun          a function of pytrees with a real scalar result ((scalar, aux) with has_aux).
    argnums      the position, or positions, of the arguments to differentiate; for a tuple of
                 positions the gradient is a tuple.
    has_aux      fun gives (scalar, aux), and the result is ((scalar, aux), gradient).
    holomorphic  fun is holomorphic: inputs and result are complex.
    allow_int    integer arguments are allowed; their gradient has dtype float0.
    reduce_axes  must be (): sum over a named axis by lax.psum(gradient, axis). NotImplementedError
                 where it is not.

    Raises TypeError where the result is no scalar or an argument is not of a floating type.

    >>> value, gradient = lamina.value_and_grad(lambda x: (x * x).sum())(jnp.array([1.0, 2.0]))
    >>> float(value), gradient.tolist()
    (5.0, [2.0, 4.0])
    """

    check_callable(fun)
    if reduce_axes:
        raise NotImplementedError("reduce_axes argument to grad is deprecated: use lax.psum(gradient, axis)")

    @api_boundary
    def value_and_grad_f(*args: Any, **kwargs: Any) -> Any:
        of_active, active = as_function_of(fun, argnums, args, kwargs)
        for x in tree.leaves(active):
            check_input("grad", x, holomorphic, allow_int)
        result = vjp(of_active, *active, has_aux=has_aux)
        value, back = result[0], result[1]
        _check_scalar(value, holomorphic)
        grads = back(_one(get_aval(value)))
        grads = grads[0] if not isinstance(argnums, Iterable) else grads
        return ((value, result[2]), grads) if has_aux else (value, grads)

    return update_wrapper(value_and_grad_f, fun)


def _one(aval: ShapedArray) -> Any:
    """The cotangent that gives the gradient: of the result's dtype, in every setting of enable_x64."""
    if dtypes.canonicalize(aval.dtype) == aval.dtype:
        one = scalar_of(aval, 1)
    else:
        one = from_numpy(np.ones((), aval.dtype), aval.weak_type)
    if aval.placed is None or aval.placed.sums is WHOLE:
        return one
    return lax.as_typed(one, aval.to_cotangent_aval())


def check_input(what: str, x: Any, holomorphic: bool, allow_int: bool) -> None:
    """Raises TypeError where reverse mode can't differentiate by an array of x's type."""
    aval = get_aval(x)
    if holomorphic and not dtypes.is_complex(aval.dtype):
        raise TypeError(
            f"{what} with holomorphic=True requires inputs with complex dtype, but got "
            f"{aval.dtype.name}."
        )
    if not holomorphic and dtypes.is_complex(aval.dtype):
        return
    if not dtypes.is_inexact(aval.dtype) and not allow_int:
        raise TypeError(
            f"{what} requires real- or complex-valued inputs (input dtype that is a sub-dtype of "
            f"np.inexact), but got {aval.dtype.name}. If you want to use Boolean- or integer-valued "
            "inputs, use vjp or set allow_int to True. To differentiate by it pass floats (2.0 for 2, "
            "x.astype(float) for x); to leave it alone name the other arguments in argnums."
        )


def check_output(what: str, aval: ShapedArray, holomorphic: bool) -> None:
    """Raises TypeError where reverse mode can't differentiate a result of this type."""
    if holomorphic:
        if not dtypes.is_complex(aval.dtype):
            raise TypeError(
                f"{what} with holomorphic=True requires outputs with complex dtype, but got "
                f"{aval.dtype.name}."
            )
    elif not dtypes.is_float(aval.dtype):
        hint = (
            " For holomorphic differentiation, pass holomorphic=True."
            if dtypes.is_complex(aval.dtype)
            else " Integers have no derivative: where the result is to be rounded, do so outside."
        )
        raise TypeError(
            f"{what} requires real-valued outputs (output dtype that is a sub-dtype of np.floating), "
            f"but got {aval.dtype.name}.{hint}"
        )


def _check_scalar(value: Any, holomorphic: bool) -> None:
    try:
        aval = get_aval(value)
    except TypeError:
        raise TypeError(
            f"Gradient only defined for scalar-output functions. Output was {value}. Of results that "
            "are not to be differentiated return (value, rest) and set has_aux=True."
        ) from None
    if aval.shape:
        raise TypeError(
            f"Gradient only defined for scalar-output functions. Output had shape: {aval.shape}. "
            "Reduce it to one number (its sum or mean), or take all derivatives by jacrev or jacfwd."
        )
    check_output("grad", aval, holomorphic)


@overload
def grad(  # type: ignore[overload-overlap]
    fun: Callable[Concatenate[float, P], ArrayLike],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[Concatenate[ArrayLike, P], Array]: ...
@overload
def grad(  # type: ignore[overload-overlap]
    fun: Callable[Concatenate[A, P], ArrayLike],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[Concatenate[A, P], A]: ...
@overload
def grad(  # type: ignore[overload-overlap]
    fun: Callable[Concatenate[float, P], tuple[ArrayLike, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[Concatenate[ArrayLike, P], tuple[Array, Aux]]: ...
@overload
def grad(  # type: ignore[overload-overlap]
    fun: Callable[Concatenate[A, P], tuple[ArrayLike, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[Concatenate[A, P], tuple[A, Aux]]: ...
@overload
def grad(
    fun: Callable[P, ArrayLike],
    argnums: int,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, Any]: ...
@overload
def grad(
    fun: Callable[P, tuple[ArrayLike, Aux]],
    argnums: int,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def grad(
    fun: Callable[P, ArrayLike],
    argnums: Sequence[int],
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[Any, ...]]: ...
@overload
def grad(
    fun: Callable[P, tuple[ArrayLike, Aux]],
    argnums: Sequence[int],
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[tuple[Any, ...], Aux]]: ...
@overload
def grad(
    fun: Callable[..., ArrayLike | tuple[ArrayLike, Any]],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]: ...
@api_boundary
def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """A function that gives the gradient of a scalar function.

    fun          a function of pytrees with a real scalar result ((scalar, aux) with has_aux).
    argnums      the position, or positions, of the arguments to differentiate.
    has_aux      the result is (gradient, aux).
    holomorphic  fun is holomorphic: inputs and result are complex.
    allow_int    integer arguments are allowed; their gradient has dtype float0.
    reduce_axes  must be ().

    Raises TypeError where the result is no scalar or an argument is not of a floating type.

    >>> float(lamina.grad(lambda x: x**3)(2.0))
    12.0
    """
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @api_boundary
    def grad_f(*args: Any, **kwargs: Any) -> Any:
        value, g = both(*args, **kwargs)
        return (g, value[1]) if has_aux else g

    return update_wrapper(grad_f, fun)
