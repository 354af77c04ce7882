"""JAX as the judge: the same program, written over a namespace, run by lamina and by JAX.

A program takes the namespace first: `lambda m, x: m.grad(lambda v: m.np.sum(v * v))(x)`.
"""

import functools
import types
from collections.abc import Callable
from typing import Any

import jax
import jax.ad_checkpoint
import jax.custom_batching
import jax.custom_derivatives
import numpy as np

import lamina

LAMINA = types.SimpleNamespace(
    **{n: getattr(lamina, n) for n in (
        "jit", "grad", "value_and_grad", "jvp", "vjp", "linearize", "linear_transpose", "vmap",
        "jacfwd", "jacrev", "jacobian", "hessian", "make_jaxpr", "eval_shape", "custom_jvp", "lax",
        "checkpoint", "checkpoint_policies", "custom_vjp", "custom_gradient", "closure_convert",
        "custom_batching", "custom_derivatives", "ad_checkpoint", "fwd_and_bwd", "float0",
        "tree_util", "ShapeDtypeStruct", "Array",
    )}, np=lamina.numpy, name="lamina", module=lamina,
)  # fmt: skip
JAX = types.SimpleNamespace(
    **{n: getattr(jax, n) for n in vars(LAMINA) if hasattr(jax, n)},
    np=jax.numpy, name="jax", module=jax,
)  # fmt: skip


def leaves(tree: Any) -> list[Any]:
    """The arrays of a result of either library."""
    return [*jax.tree_util.tree_leaves(lamina.tree_util.tree_map(_to_numpy, tree))]


def _to_numpy(x: Any) -> Any:
    return np.asarray(x) if isinstance(x, (lamina.Array, jax.Array)) else x


def assert_same(got: Any, want: Any, *, rtol: float = 2e-5, atol: float = 1e-6,
                weak: bool = True) -> None:  # fmt: skip
    """Equal structure, shapes and dtypes; equal weak types (unless weak=False); values up to rtol
    and atol. Where JAX gives a Python number back, only its value counts."""
    got_flat, got_tree = lamina.tree_util.tree_flatten(got)
    want_flat, want_tree = jax.tree_util.tree_flatten(want)
    assert len(got_flat) == len(want_flat), f"{got_tree} is not {want_tree}"
    plain = jax.tree_util.tree_structure(lamina.tree_util.tree_map(lambda _: 0, got))
    assert plain == want_tree, f"{plain} is not {want_tree}"
    for g, w in zip(got_flat, want_flat, strict=True):
        if isinstance(w, bool | int | float | complex):
            w = np.asarray(w, np.asarray(g).dtype)
        elif isinstance(w, jax.Array) and weak:
            assert g.weak_type == w.weak_type, (
                f"weak_type {g.weak_type} is not {w.weak_type}: {g!r}"
            )
        a, b = np.asarray(g), np.asarray(w)
        assert a.dtype == b.dtype and a.shape == b.shape, (
            f"{a.dtype}{list(a.shape)} is not {b.dtype}{list(b.shape)}"
        )
        if a.dtype.name == "bfloat16":  # exactly, but where a tolerance of its size is given
            wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)
            coarse = max(rtol, atol) >= 1e-3
            np.testing.assert_allclose(wide_a, wide_b, *((rtol, atol) if coarse else (0, 0)))
        elif a.dtype.kind in "biuV":
            assert a.tobytes() == b.tobytes(), f"{a} is not {b}"
        else:
            wide = np.complex128 if a.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(a.astype(wide), b.astype(wide), rtol=rtol, atol=atol)


# What JAX raises where a program looks at values, or holds NumPy arrays as they are.
_NOT_TRACEABLE = (jax.errors.JAXTypeError, jax.errors.JAXIndexError, AssertionError)


def in_jax(program: Callable[..., Any], *args: Any) -> Any:
    """A program's results in JAX, computed by one compiled program where that is possible: op by op,
    JAX compiles each op. What is no array of the trace (float0, Python numbers) is given as it is."""
    rest: list[Any] = []

    def traced() -> list[Any]:
        flat, tree = jax.tree_util.tree_flatten(program(JAX, *args))
        rest[:] = tree, [None if isinstance(x, jax.core.Tracer) else x for x in flat]
        return [x for x in flat if isinstance(x, jax.core.Tracer)]

    try:
        found = iter(jax.jit(traced)())
    except _NOT_TRACEABLE:
        return program(JAX, *args)
    tree, flat = rest
    return jax.tree_util.tree_unflatten(tree, [next(found) if x is None else x for x in flat])


def check(program: Callable[..., Any], *args: Any, **tolerances: Any) -> Any:
    """Runs a program in both libraries, asserts that the results agree, gives lamina's."""
    got = program(LAMINA, *args)
    assert_same(got, program(JAX, *args), **tolerances)
    return got


def check_whole(program: Callable[..., Any], *args: Any, **tolerances: Any) -> Any:
    """As check, where JAX runs the program as one: a third of the time."""
    got = program(LAMINA, *args)
    assert_same(got, in_jax(program, *args), **tolerances)
    return got


def check_all(
    program: Callable[..., dict[Any, Any]],
    *args: Any,
    jit: bool = False,
    **tolerances: Any,
) -> None:
    """As check, for a program that gives a dict of results; tells of all entries that differ. With
    jit the whole program is one jitted function of args in each library."""

    def named(m: types.SimpleNamespace, *xs: Any) -> dict[str, Any]:
        return {str(k): v for k, v in program(m, *xs).items()}

    if jit:
        got, want = (m.jit(functools.partial(named, m))(*args) for m in (LAMINA, JAX))
    else:
        got = named(LAMINA, *args)
        want = named(JAX, *args)
    failed = []
    for key in want:
        try:
            assert_same(got[key], want[key], **tolerances)
        except AssertionError as e:
            failed.append(f"{key}: {str(e)[:500]}")
    assert not failed, "\n".join(failed)
