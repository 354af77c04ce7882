"""Results that LLVM leaves undefined and lamina defines: division by zero, over-long shifts, casts
of what no integer holds, indices out of bounds, NaN in an order, reductions of nothing.

Each in three forms, which are compiled differently: scalars, long vectors (whole registers and a
rest), and scalars within a loop. Expected values come from Python integers and NumPy; JAX gives the
same wherever it knows the dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

import lamina
from lamina import lax

INTEGERS = [np.dtype(getattr(ml_dtypes, n, n)) for n in (
    "int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
)]  # fmt: skip
FLOATS = [np.dtype(getattr(ml_dtypes, n, n)) for n in (
    "float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz",
)]  # fmt: skip
LENGTH = 331  # fills no register
NAN, INF = np.nan, np.inf


@pytest.fixture(autouse=True)
def _wide():
    with lamina.enable_x64(True), jax.enable_x64(True):
        yield


def _info(dtype: np.dtype) -> Any:
    return ml_dtypes.iinfo(dtype)


def _width(dtype: np.dtype) -> int:
    return int(_info(dtype).bits)


def _array(values: Any, dtype: np.dtype) -> np.ndarray:
    return np.array([*values], np.uint64 if dtype.name == "uint64" else np.int64).astype(dtype)


def _signed(dtype: np.dtype) -> bool:
    return int(_info(dtype).min) < 0


def _wrap(value: int, dtype: np.dtype) -> int:
    value %= 1 << _width(dtype)
    return value - (1 << _width(dtype)) if value > int(_info(dtype).max) else value


def _in_all_forms(f: Callable[..., Any], columns: tuple[np.ndarray, ...], want: Any) -> None:
    """Asserts that f gives `want` (a dict of columns) for rows of the columns as scalars, for the
    columns repeated to vectors, and for each row in the body of a scan."""
    n = len(columns[0])

    def compare(form: str, got: dict[str, Any], expected: Callable[[np.ndarray], np.ndarray]):
        assert got.keys() == want.keys()
        for name, column in want.items():
            actual, wanted = np.asarray(got[name]), expected(column)
            assert actual.dtype == wanted.dtype, f"{name}: {actual.dtype} is not {wanted.dtype}"
            wrong = np.flatnonzero(~_same(actual, wanted))
            assert not wrong.size, (
                f"{form} {name}: {actual.reshape(-1)[wrong[:4]]}, not "
                f"{wanted.reshape(-1)[wrong[:4]]}, of {[c[wrong[:4] % n] for c in columns]}"
            )

    def looped(*xs: Any) -> Any:
        return lax.scan(lambda c, x: (c, f(*x)), 0, xs)[1]

    single = lamina.jit(f)
    for i in range(0, n, n // 30 + 1):
        compare("scalar", single(*[c[i] for c in columns]), lambda column, i=i: column[i : i + 1][0])
    index = np.arange(LENGTH) % n
    compare("vector", lamina.jit(f)(*[c[index] for c in columns]), lambda column: column[index])
    compare("loop", lamina.jit(looped)(*columns), lambda column: column)


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Equal bits, or both NaN."""
    if a.dtype.kind in "biu" or a.dtype.name.endswith("int4"):
        return np.atleast_1d(a == b)
    a, b = np.atleast_1d(a.astype(np.float64)), np.atleast_1d(b.astype(np.float64))
    return ((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))


def _agrees_with_jax(f: Callable[..., Any], columns: tuple[np.ndarray, ...], want: Any) -> None:
    _compare(jax.jit(f)(*columns), want, "JAX's ")


def _compare(got: dict[str, Any], want: dict[str, np.ndarray], what: str = "") -> None:
    for name, value in got.items():
        wrong = np.argwhere(~_same(np.asarray(value), want[name]))[:4]
        found = [(tuple(map(int, i)), np.atleast_1d(value)[*i], np.atleast_1d(want[name])[*i]) for i in wrong]
        assert not found, f"{what}{name}: (where, value, wanted) are {found}"


def _quotient(a: int, b: int, dtype: np.dtype) -> int:
    if b == 0:
        return -1 if _signed(dtype) else int(_info(dtype).max)
    return _wrap(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1), dtype)


def _remainder(a: int, b: int) -> int:
    return a if b == 0 else abs(a) % abs(b) * (-1 if a < 0 else 1)


def _shifts(a: int, b: int, dtype: np.dtype) -> dict[str, int]:
    w = _width(dtype)
    long = not 0 <= b < w
    unsigned = a % (1 << w)
    return {
        "left": 0 if long else _wrap(a << b, dtype),
        "logical": 0 if long else _wrap(unsigned >> b, dtype),
        "arithmetic": _wrap((a if a == _wrap(a, dtype) and _signed(dtype) else
            unsigned - (unsigned >> (w - 1) << w)) >> (w - 1 if long else b), dtype),
    }  # fmt: skip


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_division_and_shifts(dtype):
    low, high, w = int(_info(dtype).min), int(_info(dtype).max), _width(dtype)
    left = {low, high, low + 1, 0, 1, 7, high // 3, *([-1, -7] if low else [])}
    right = {0, 1, 2, 3, low, high, w - 1, w, w + 1, 2 * w, *([-1, -2, -w] if low else [])}
    pairs = [(a, b) for a in sorted(left) for b in sorted(right) if low <= b <= high]
    a, b = (_array(c, dtype) for c in zip(*pairs, strict=True))
    rows = [
        {"div": _quotient(x, y, dtype), "rem": _remainder(x, y), **_shifts(x, y, dtype)}
        for x, y in pairs
    ]
    want = {name: _array([row[name] for row in rows], dtype) for name in rows[0]}

    def program(m: Any) -> Callable[..., Any]:
        return lambda a, b: {
            "div": m.div(a, b), "rem": m.rem(a, b), "left": m.shift_left(a, b),
            "logical": m.shift_right_logical(a, b), "arithmetic": m.shift_right_arithmetic(a, b),
        }  # fmt: skip

    _in_all_forms(program(lax), (a, b), want)
    if w > 4:  # XLA computes 4-bit integers in 8 bits
        _agrees_with_jax(program(jax.lax), (a, b), want)


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered")
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats_to_integers(dtype):
    edges = [0.0, -0.0, 0.9, -0.9, 1.5, -1.5, NAN, -NAN, INF, -INF, 200.0, -200.0, 7.9, -8.9]
    powers = [s * 2.0**k for k in (3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 100) for s in (1, -1)]
    x = np.array(edges + powers).astype(np.float32).astype(dtype)
    x = np.append(x, np.array([ml_dtypes.finfo(dtype).max, -ml_dtypes.finfo(dtype).max]))
    near = [x.astype(np.float64) * factor for factor in (1 - 2.0**-9, 1 + 2.0**-9)]
    x = np.concatenate([x, *(v.astype(dtype) for v in near)])

    def saturated(v: float, to: np.dtype) -> int:
        if np.isnan(v):
            return 0
        low, high = int(_info(to).min), int(_info(to).max)
        return high if v >= high else low if v <= low else int(v)

    want = {
        str(to): _array([saturated(float(v), to) for v in x], to) for to in INTEGERS
    }  # fmt: skip

    def program(m: Any) -> Callable[..., Any]:
        return lambda x: {str(to): m.convert_element_type(x, to) for to in INTEGERS}

    _in_all_forms(program(lax), (x,), want)
    if dtype.itemsize > 1:
        want = {k: v for k, v in want.items() if not k.endswith("int4")}
        _agrees_with_jax(
            lambda x: {str(to): jax.lax.convert_element_type(x, to) for to in INTEGERS[2:]}, (x,), want
        )


@pytest.mark.parametrize("dtype", FLOATS[1:4], ids=str)
def test_nan_in_orders(dtype):
    edges = [NAN, INF, -INF, 0.0, -0.0, 1.5, -1.5]
    a, b, c = (np.array(v).astype(dtype) for v in zip(*(
        (x, y, z) for x in edges for y in edges for z in (NAN, -1.0, 1.0, -0.0)), strict=True))  # fmt: skip
    wide = [v.astype(np.float64) for v in (a, b, c)]

    def larger(x: float, y: float) -> float:
        if np.isnan(x) or np.isnan(y):
            return NAN
        return max(x, y, key=lambda v: (v, not np.signbit(v)))

    def smaller(x: float, y: float) -> float:
        return -larger(-x, -y)

    def column(f: Callable[..., float]) -> np.ndarray:
        return np.array([f(*row) for row in zip(*wide, strict=True)]).astype(dtype)

    want = {
        "max": column(lambda x, y, z: larger(x, y)), "min": column(lambda x, y, z: smaller(x, y)),
        "clamp": column(lambda x, y, z: smaller(larger(x, y), z)),
    }  # fmt: skip

    def program(m: Any) -> Callable[..., Any]:
        return lambda a, b, c: {"max": m.max(a, b), "min": m.min(a, b), "clamp": m.clamp(a, b, c)}

    _in_all_forms(program(lax), (a, b, c), want)

    # Reductions, sorts and positions: a NaN in each part of a register and in the rest.
    n, plain = 77, np.random.default_rng(0).standard_normal(77).astype(dtype)
    with_nan = np.stack([np.where(np.arange(n) == i, NAN, plain) for i in (0, 5, 16, 63, 64, 76)])
    rows = np.concatenate([with_nan, plain[None]]).astype(dtype)
    twice = rows.copy()
    twice[:, 40] = np.array(NAN).astype(dtype)
    rows = np.concatenate([rows, twice])
    values = rows.astype(np.float64)
    want = {
        "max": np.max(values, 1).astype(dtype), "min": np.min(values, 1).astype(dtype),
        "argmax": np.argmax(values, 1).astype(np.int32), "argmin": np.argmin(values, 1).astype(np.int32),
        "sort": np.sort(values, 1).astype(dtype),
        "cummax": np.maximum.accumulate(values, 1).astype(dtype),
        "cummin": np.minimum.accumulate(values, 1).astype(dtype),
    }  # fmt: skip

    def reductions(m: Any) -> Callable[..., Any]:
        return lambda x: {
            "max": m.reduce_max(x, [x.ndim - 1]), "min": m.reduce_min(x, [x.ndim - 1]),
            "argmax": m.argmax(x, x.ndim - 1, np.int32), "argmin": m.argmin(x, x.ndim - 1, np.int32),
            "sort": m.sort(x), "cummax": m.cummax(x, x.ndim - 1), "cummin": m.cummin(x, x.ndim - 1),
        }  # fmt: skip

    got = lamina.jit(lambda x: (
        reductions(lax)(x), {k: v.T if v.ndim > 1 else v for k, v in across(lax, x.T).items()},
        lax.scan(lambda c, r: (c, reductions(lax)(r)), 0, x)[1],
    ))(rows)  # fmt: skip
    for form, results in zip(("rows", "columns", "loop"), got, strict=True):
        _compare(results, want, f"{form} ")
    _agrees_with_jax(reductions(jax.lax), (rows,), want)


def across(m: Any, x: Any) -> dict[str, Any]:
    """The reductions along the first axis, where lanes are side by side."""
    return {
        "max": m.reduce_max(x, [0]), "min": m.reduce_min(x, [0]), "argmax": m.argmax(x, 0, np.int32),
        "argmin": m.argmin(x, 0, np.int32), "sort": m.sort(x, 0), "cummax": m.cummax(x, 0),
        "cummin": m.cummin(x, 0),
    }  # fmt: skip


@pytest.mark.parametrize("dtype", [d for d in INTEGERS if _width(d) > 4], ids=str)
def test_indices_out_of_bounds(dtype):
    info, n = _info(dtype), 9
    edges = {0, 1, 8, 9, 10, 127, int(info.max), int(info.min), *([-1, -9, -10] if info.min else [])}
    index = np.array(sorted(edges), dtype)
    index = index[np.arange(LENGTH) % len(index)]
    exact = [int(i) for i in index]
    x = np.arange(1.0, n + 1, dtype=np.float32)
    inside = np.array([0 <= i < n for i in exact])
    clamped = np.array([min(max(i, 0), n - 1) for i in exact])
    start = np.array([min(max(i + n if i < 0 else i, 0), n - 3) for i in exact])
    added, put = x.copy(), x.copy()
    for i, ok in zip(exact, inside, strict=True):
        if ok:
            added[i] += 1
            put[i] = 5
    updated = np.repeat(x[None], LENGTH, 0)
    np.put_along_axis(updated, start[:, None] + np.arange(3), 0, 1)
    want = {
        "clip": x[clamped], "fill": np.where(inside, x[clamped], NAN),
        "add": added, "set": put, "max": np.maximum(x, np.where(put == 5, 5, 0)),
        "slice": x[start[:, None] + np.arange(3)], "update": updated,
    }  # fmt: skip
    want = {k: v.astype(np.float32) for k, v in want.items()}

    def program(m: Any) -> Callable[..., Any]:
        numbers = m.lax.ScatterDimensionNumbers((), (0,), (0,))
        rows = m.lax.GatherDimensionNumbers((), (0,), (0,))
        drop = m.lax.GatherScatterMode.FILL_OR_DROP

        def gathered(x: Any, i: Any, mode: str) -> Any:
            return m.lax.gather(x, i[..., None], rows, (1,), mode=mode)

        def scattered(f: Any, x: Any, i: Any, value: float) -> Any:
            i = i.reshape(-1, 1)
            return f(x, i, m.numpy.full(i.shape[0], value, x.dtype), numbers, mode=drop)

        def moved(x: Any, i: Any) -> tuple[Any, Any]:
            zeros = m.numpy.zeros(3, x.dtype)
            return m.lax.dynamic_slice(x, (i,), (3,)), m.lax.dynamic_update_slice(x, zeros, (i,))

        def whole(x: Any, i: Any) -> dict[str, Any]:
            pieces, updates = m.vmap(moved, (None, 0))(x, i)
            looped = m.lax.scan(lambda c, j: (
                (scattered(m.lax.scatter_add, c[0], j, 1.0), scattered(m.lax.scatter, c[1], j, 5.0),
                scattered(m.lax.scatter_max, c[2], j, 5.0)),
                (gathered(x, j, "clip"), gathered(x, j, "fill"), *moved(x, j))),
                (x, x, x), i)  # fmt: skip
            names = ("add", "set", "max", "clip", "fill", "slice", "update")
            return {
                "clip": gathered(x, i, "clip"), "fill": gathered(x, i, "fill"),
                "add": scattered(m.lax.scatter_add, x, i, 1.0),
                "set": scattered(m.lax.scatter, x, i, 5.0),
                "max": scattered(m.lax.scatter_max, x, i, 5.0), "slice": pieces, "update": updates,
                **{f"{k} in a loop": v for k, v in zip(names, (*looped[0], *looped[1]), strict=True)},
            }  # fmt: skip

        return whole

    wanted = {k: want[k.removesuffix(" in a loop")] for k in [*want, *(f"{k} in a loop" for k in want)]}
    got = lamina.jit(program(lamina))(x, index)
    _compare(got, wanted)
    if _width(dtype) < 64:  # XLA narrows 64-bit indices
        arguments = jax.numpy.asarray(x), jax.numpy.asarray(index)
        _agrees_with_jax(program(jax), arguments, wanted)


def test_reductions_of_nothing():
    def program(m: Any) -> Callable[..., Any]:
        def results(x: Any, k: Any) -> dict[str, Any]:
            return {
                "sum": m.lax.reduce_sum(x, [0]), "prod": m.lax.reduce_prod(x, [0]),
                "max": m.lax.reduce_max(x, [0]), "min": m.lax.reduce_min(x, [0]),
                "imax": m.lax.reduce_max(k, [0]), "imin": m.lax.reduce_min(k, [0]),
                "and": m.lax.reduce_and(k, [0]), "or": m.lax.reduce_or(k, [0]),
                "xor": m.lax.reduce_xor(k, [0]), "mean": m.numpy.mean(x), "var": m.numpy.var(x),
                "any": m.numpy.any(k > 0), "all": m.numpy.all(k > 0), "dot": x.T @ x,
                "cumsum": m.lax.cumsum(x), "sort": m.lax.sort(x, 0), "norm": m.numpy.linalg.norm(x),
                "window": m.lax.reduce_window(x, 2.0, m.lax.add, (3, 1), (1, 1), ((2, 1), (0, 0))),
                "logsumexp": m.nn.logsumexp(x, 0),
                "conv": m.lax.conv(x[None, None], m.numpy.ones((1, 1, 2, 2)), (1, 1), ((2, 0), (0, 0))),
            }  # fmt: skip

        return lambda x, k: (
            results(x, k), m.lax.scan(lambda c, _: (c, results(x * c, k)), 1.0, None, 3)[1]
        )  # fmt: skip

    x, k = np.zeros((0, 3)), np.zeros((0, 3), np.int32)
    got = lamina.jit(program(lamina))(x, k)
    want = jax.jit(program(jax))(x, k)
    for g, w in zip(got, want, strict=True):
        for name in w:
            assert g[name].shape == w[name].shape and g[name].dtype == w[name].dtype, name
            assert _same(np.asarray(g[name]), np.asarray(w[name])).all(), f"{name}: {g[name]}, {w[name]}"
    first = {name: np.asarray(v) for name, v in got[0].items()}
    assert (first["max"] == -INF).all() and (first["min"] == INF).all() and (first["prod"] == 1).all()
    assert (first["imax"] == -(2**31)).all() and (first["and"] == -1).all() and first["all"]
    for position in (lax.argmax, lax.argmin):
        with pytest.raises(ValueError, match="empty"):
            lamina.jit(lambda x, position=position: position(x, 0, np.int32))(x)
