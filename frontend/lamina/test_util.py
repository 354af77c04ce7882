"""Checking derivatives against differences of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lamina.api import jvp, vjp
from lamina.core import dtypes, tree

__all__ = ["Tolerance", "check_grads", "check_jvp", "check_vjp"]

Tolerance = float | Mapping[Any, float] | None  # for all dtypes, or by dtype
_STEPS = {2: 2.0**-4, 4: 1e-2, 8: 1e-4, 16: 1e-4}  # by the dtype's bytes
_TOLERANCES = {"float16": 1e-1, "bfloat16": 2e-1, "float32": 6e-3, "float64": 1e-5,
               "complex64": 6e-3, "complex128": 1e-5}  # fmt: skip


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float | None = None,
) -> None:
    """Checks f's derivatives against differences.

    f           a function of pytrees of floats.
    args        where to check it.
    order       how often it is differentiated, 1 or more.
    modes       forwards ("fwd"), in reverse ("rev"), or both.
    atol, rtol  tolerances, numbers or dicts by dtype; None: by dtype.
    eps         the step of the differences; None: by dtype.

    Raises AssertionError that names the order, the mode and the leaf.

    >>> lamina.test_util.check_grads(jnp.sin, (0.5,), order=2)
    """
    if unknown := set([modes] if isinstance(modes, str) else modes) - {"fwd", "rev"}:
        raise ValueError(f"check_grads: modes are 'fwd' and 'rev', got {', '.join(unknown)}")
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    _check(f, tuple(args), order, modes, (atol, rtol, eps), "")


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Checks a function's tangents against its differences along random tangents.

    f           a function of pytrees of floats.
    f_jvp       f_jvp(primals, tangents) -> (value, tangent), to be checked.
    args        where to check it.
    atol, rtol  tolerances, numbers or dicts by dtype; None: by dtype.
    eps         the step of the differences; None: by dtype.
    err_msg     what the error says first.

    Raises AssertionError where values or tangents differ.

    >>> jvp = lambda primals, tangents: lamina.jvp(jnp.sin, primals, tangents)
    >>> lamina.test_util.check_jvp(jnp.sin, jvp, (0.5,))
    """
    rng = np.random.default_rng(0)
    tangents = _random_like(rng, tuple(args))
    out, dot = f_jvp(tuple(args), tangents)
    step = _step(args) if eps is None else eps
    _close(out, f(*args), atol, rtol, f"{err_msg}value of the JVP")
    _close(dot, _difference(f, tuple(args), tangents, step), atol, rtol, f"{err_msg}JVP tangent")


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Checks a function's cotangents: along random ones their product with the tangent must be that
    with the difference.

    f           a function of pytrees of floats.
    f_vjp       f_vjp(*args) -> (value, pullback), to be checked.
    args        where to check it.
    atol, rtol  tolerances, numbers or dicts by dtype; None: by dtype.
    eps         the step of the differences; None: by dtype.
    err_msg     what the error says first.

    Raises AssertionError where values or products differ.

    >>> lamina.test_util.check_vjp(jnp.sin, lambda x: lamina.vjp(jnp.sin, x), (0.5,))
    """
    rng = np.random.default_rng(0)
    out, pullback = f_vjp(*args)
    _close(out, f(*args), atol, rtol, f"{err_msg}value of the VJP")
    tangents, cotangents = _random_like(rng, tuple(args)), _random_like(rng, out)
    step = _step(args) if eps is None else eps
    expected = _inner(cotangents, _difference(f, tuple(args), tangents, step))
    found = _inner(pullback(cotangents), tangents)
    _close(found, expected, atol, rtol, f"{err_msg}VJP cotangent projection", like=args)


def _check(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    order: int,
    modes: tuple[str, ...],
    precision: tuple[Tolerance, Tolerance, float | None],
    path: str,
) -> None:
    if order == 0:
        return
    if "fwd" in modes:
        check_jvp(f, lambda primals, tangents: jvp(f, primals, tangents), args, *precision,
                  err_msg=f"{path}fwd: ")  # fmt: skip
        tangents = _random_like(np.random.default_rng(order), args)
        _check(lambda *xs: jvp(f, xs, tangents)[1], args, order - 1, modes, precision,
               f"{path}fwd: ")  # fmt: skip
    if "rev" in modes:
        check_vjp(f, lambda *xs: vjp(f, *xs), args, *precision, err_msg=f"{path}rev: ")
        cotangents = _random_like(np.random.default_rng(order), f(*args))
        _check(lambda *xs: vjp(f, *xs)[1](cotangents), args, order - 1, modes, precision,
               f"{path}rev: ")  # fmt: skip


def _dtype(x: Any) -> np.dtype:
    """The dtype that x has as an array: float32 for NumPy's float64 without 64-bit types."""
    dtype = x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype
    return dtypes.canonicalize(dtype)


def _step(args: Any) -> float:
    """The step for the narrowest of the arguments."""
    sizes = [dtypes.finfo(_dtype(x)).bits // 8 for x in tree.leaves(args)]
    return _STEPS[min(sizes, default=8)]


def _random_like(rng: np.random.Generator, values: Any) -> Any:
    def draw(x: Any) -> Any:
        shape, dtype = np.shape(x), _dtype(x)
        drawn = rng.standard_normal(shape)
        if dtype.kind == "c":
            drawn = drawn + 1j * rng.standard_normal(shape)
        return np.asarray(drawn).astype(dtype)

    return tree.map(draw, values)


def _difference(f: Callable[..., Any], args: Any, tangents: Any, step: float) -> Any:
    """The central difference of f along the tangents."""

    def moved(by: float) -> Any:
        return f(*tree.map(lambda x, t: (np.asarray(x) + by * t).astype(t.dtype), args, tangents))

    after, before = moved(step / 2), moved(-step / 2)
    return tree.map(lambda a, b: (np.asarray(a) - np.asarray(b)) / step, after, before)


def _inner(a: Any, b: Any) -> Any:
    """The sum of products, in at least double precision."""
    wide = [
        [np.asarray(x).astype(np.complex128 if _dtype(x).kind == "c" else np.float64) for x in leaves]
        for leaves in (tree.leaves(a), tree.leaves(b))
    ]
    return np.real(sum(np.sum(x * y) for x, y in zip(*wide, strict=True)))


def _tolerance(values: Any) -> float:
    """The tolerance of the narrowest dtype."""
    return max((_TOLERANCES.get(_dtype(x).name, 1e-2) for x in tree.leaves(values)), default=1e-2)


def _close(
    found: Any, expected: Any, atol: Tolerance, rtol: Tolerance, what: str, like: Any = None
) -> None:
    default = _tolerance(found if like is None else like)
    pairs = zip(tree.leaves(found), tree.leaves(expected), strict=True)
    for leaf, (a, b) in enumerate(pairs):
        np.testing.assert_allclose(
            np.asarray(a),
            np.asarray(b),
            atol=_for(atol, a, default),
            rtol=_for(rtol, a, default),
            err_msg=f"{what}, leaf {leaf}",
        )


def _for(tolerance: Tolerance, x: Any, default: float) -> float:
    """A tolerance for a value, where it may be given by dtype."""
    if isinstance(tolerance, Mapping):
        return {np.dtype(kind): value for kind, value in tolerance.items()}.get(_dtype(x), default)
    return default if tolerance is None else tolerance
