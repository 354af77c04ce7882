"""Minimisation of functions, as in scipy.optimize."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from lamina.numpy.creation import asarray as asarray
from lamina.numpy.promotion import Array as Array
from lamina.scipy.optimize.quasi_newton import minimize_bfgs as minimize_bfgs
from lamina.scipy.optimize.quasi_newton import minimize_lbfgs as minimize_lbfgs

__all__ = ["OptimizeResults", "minimize"]


class OptimizeResults(NamedTuple):
    """The result of a minimisation.

    x         the place of the least value found.
    success   whether the gradient, or (l-bfgs) the change, fell below its bound.
    status    0 then; otherwise why it ended: 1 the most steps, 3 or 5 the line search.
    fun, jac  value and gradient there; hess_inv the estimated inverse Hessian (BFGS).
    nfev, njev, nit  counts of values, gradients and steps.
    """

    x: Array
    success: Any
    status: Any
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: Any
    njev: Any
    nit: Any


def minimize(
    fun: Callable[..., Any],
    x0: Array,
    args: tuple[Any, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """A local minimum of fun(x, *args) near a start: an OptimizeResults.

    fun      a function of a vector of floats, and args, that gives a real scalar; traced.
    x0       the start, a vector of floats.
    args     a tuple of arrays.
    method   "BFGS", or "l-bfgs-experimental-do-not-rely-on-this" (JAX's name), which keeps a few
             vectors instead of a matrix.
    tol      the largest gradient element at which to end (BFGS's gtol); None: 1e-5.
    options  a dict; of BFGS: maxiter norm gtol line_search_maxiter; of l-bfgs: maxiter norm maxcor
             ftol gtol maxfun maxgrad maxls.

    Raises ValueError for another method and an x0 that is no vector; TypeError where args is no
    tuple.

    >>> def rosenbrock(x):
    ...     return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    >>> print(lamina.scipy.optimize.minimize(rosenbrock, jnp.zeros(2), method="BFGS").x.round(2))
    [1. 1.]
    """
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to scipy.optimize.minimize must be a tuple, got {args}")
    given = dict(options or {})
    x0 = asarray(x0)
    if len(x0.shape) != 1:
        raise ValueError(f"minimize takes a vector for x0, got shape {x0.shape}")

    def of_x(x: Any) -> Any:
        return fun(x, *args)

    if method.lower() == "bfgs":
        if tol is not None:
            given.setdefault("gtol", tol)
        return OptimizeResults(*minimize_bfgs(of_x, x0, **given))
    if method.lower() == "l-bfgs-experimental-do-not-rely-on-this":
        if tol is not None:
            given.setdefault("gtol", tol)
        return OptimizeResults(*minimize_lbfgs(of_x, x0, **given))
    raise ValueError(f"Method {method} not recognized")


