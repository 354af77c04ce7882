"""Derivatives with respect to sparse arrays: of their values, where they stand."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import lamina
from lamina.core import tree
from lamina.experimental.sparse.base import is_sparse
from lamina.experimental.sparse.bcoo import BCOO

__all__ = ["grad", "jacfwd", "jacobian", "jacrev", "value_and_grad"]


def _of_values(transform: Callable[..., Any], gives_value: bool = False) -> Callable[..., Callable[..., Any]]:
    """A transformation that is given the values of what is sparse in the arguments `argnums`, and whose derivatives by
    these are sparse; `gives_value` says that it gives the function's value before them."""

    def transformed(
        fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool, **kwargs: Any
    ) -> Callable[..., Any]:
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)

        @functools.wraps(fun)
        def call(*args: Any, **named: Any) -> Any:
            leaves, structure = tree.flatten([args[n] for n in numbers], is_leaf=is_sparse)

            def of_data(data: Any) -> Any:
                given = list(args)
                filled = [x._with(values) if is_sparse(x) else values for x, values in zip(leaves, data, strict=True)]
                for n, argument in zip(numbers, tree.unflatten(structure, filled), strict=True):
                    given[n] = argument
                return fun(*given, **named)

            def placed(derivatives: Any) -> Any:
                parts = [_placed(x, part) for x, part in zip(leaves, derivatives, strict=True)]
                found = tree.unflatten(structure, parts)
                return found[0] if isinstance(argnums, int) else tuple(found)

            data = [x.data if is_sparse(x) else x for x in leaves]
            out = transform(of_data, has_aux=has_aux, **kwargs)(data)
            if gives_value:
                return out[0], placed(out[1])
            return (placed(out[0]), out[1]) if has_aux else placed(out)

        return call

    return transformed


def _placed(x: Any, derivative: Any) -> Any:
    """A derivative by the values of an argument, at their places."""
    if not is_sparse(x):
        return derivative
    more = derivative.ndim - x.data.ndim
    if not more:
        return x._with(derivative)
    if not isinstance(x, BCOO):
        raise NotImplementedError("jacobians with respect to sparse arrays are those of BCOO")
    indices = x.indices[(None,) * more]  # the same for each element of the function's value
    return BCOO((derivative, indices), shape=(*derivative.shape[:more], *x.shape), unique_indices=x.unique_indices)


_grad, _jacfwd, _jacrev = (_of_values(transform) for transform in (lamina.grad, lamina.jacfwd, lamina.jacrev))
_value_and_grad = _of_values(lamina.value_and_grad, gives_value=True)


def grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """`lamina.grad` of a function of sparse arrays: the derivative by a sparse argument is sparse, with its places.

    fun      a function that gives a real number, and with has_aux something else beside.
    argnums  by which of its arguments.
    has_aux, kwargs  as for grad.

    >>> sparse = lamina.experimental.sparse
    >>> print(sparse.grad(lambda m: (m.todense() ** 2).sum())(sparse.eye(2)).data)
    [2. 2.]
    """
    return _grad(fun, argnums, has_aux, **kwargs)


def value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., tuple[Any, Any]]:
    """`lamina.value_and_grad` of a function of sparse arrays; see `grad`.

    fun, argnums, has_aux, kwargs  as for grad.

    >>> sparse = lamina.experimental.sparse
    >>> value, derivative = sparse.value_and_grad(lambda m: m.todense().sum())(sparse.eye(2))
    >>> print(value, derivative.data)
    2.0 [1. 1.]
    """
    return _value_and_grad(fun, argnums, has_aux, **kwargs)


def jacfwd(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """`lamina.jacfwd` of a function of sparse arrays; see `jacrev`.

    fun, argnums, has_aux, kwargs  as for jacrev.

    >>> sparse = lamina.experimental.sparse
    >>> print(sparse.jacfwd(lambda m: m @ jnp.array([1., 2.]))(sparse.eye(2)).shape)
    (2, 2, 2)
    """
    return _jacfwd(fun, argnums, has_aux, **kwargs)


def jacrev(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """`lamina.jacrev` of a function of sparse arrays: by a BCOO, a BCOO of the result's axes before its own.

    fun      a function that gives an array, and with has_aux something else beside.
    argnums  by which of its arguments.
    has_aux, kwargs  as for jacrev.

    >>> sparse = lamina.experimental.sparse
    >>> print(sparse.jacrev(lambda m: m @ jnp.array([1., 2.]))(sparse.eye(2)).todense()[0])
    [[1. 0.]
     [0. 0.]]
    """
    return _jacrev(fun, argnums, has_aux, **kwargs)


jacobian = jacrev
