"""lamina.numpy's reductions, cumulative functions and statistics against JAX and NumPy."""

import jax
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.oracle.judge import check, check_all

import lamina
import lamina.numpy as jnp

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4, 2)).astype(np.float32)
NAMES = ["sum", "prod", "mean", "var", "std", "max", "min", "ptp", "all", "any", "count_nonzero"]
CLOSE = {"rtol": 2e-5, "atol": 1e-5}
NAN_NAMES = ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd"]


AXES = [None, 0, 1, -1, (0, 2), (2, 0, 1), ()]


@pytest.mark.parametrize("keepdims", [False, True])
def test_axes(keepdims):
    check_all(lambda m, x: {
        (n, a): getattr(m.np, n)(x, axis=a, keepdims=keepdims) for n in NAMES for a in AXES
        if not (n == "ptp" and a == ())
    }, X, jit=True, **CLOSE)  # fmt: skip


def test_results_are_weak_where_jax_has_them_weak():
    """So that what is computed with them next has JAX's dtype."""
    names = "sum prod max min ptp mean std nansum nanmax cumsum cumprod log2 log10 sinc trace"

    def program(m, x):
        x = m.np.asarray(x) * 1.0  # weak where it was of integers
        results = [getattr(m.np, n)(x) for n in names.split()]
        results += [m.module.nn.softmax(x), m.module.nn.logsumexp(x), m.np.logaddexp2(x, x)]
        results += [x.at[0].set(1), x.at[m.np.array([0])].add(1), x.at[:1].max(0)]
        return results, [r * m.np.ones((), m.np.bfloat16) for r in results]

    for x in (np.arange(12).reshape(3, 4), X[0]):
        check(lambda m, x=x: program(m, x), rtol=1e-2)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "uint32", "float16", "float32",
                                   ml_dtypes.bfloat16, "complex64"])  # fmt: skip
def test_dtypes(dtype):
    x = (RNG.normal(size=(4, 3)) * 3).astype(dtype)
    skip = {"complex64": {"max", "min", "ptp", "argmax", "argmin"}, "bool": {"ptp"}}.get(dtype, ())
    names = [
        n for n in (*NAMES, "argmax", "argmin", "cumsum", "cumprod", "median") if n not in skip
    ]
    names = [n for n in names if not (dtype == "complex64" and n == "median")]
    # JAX's cumulative sums round at each step, ours once: they differ by the sum's own size.
    rtol, atol = (2e-2, 5e-2) if np.dtype(dtype).itemsize == 2 else (2e-5, 1e-5)
    check_all(lambda m, x: {
        n: _wide(m, getattr(m.np, n)(x)) for n in names if not (n in ("var", "std") and dtype == "bool")
    }, x, jit=True, rtol=rtol, atol=atol)  # fmt: skip


def _wide(m, x):
    """bfloat16 as float32, which can be compared with a tolerance."""
    return m.np.astype(x, m.np.float32) if x.dtype == ml_dtypes.bfloat16 else x


def test_dtype_arguments():
    x = np.array([1, 2, 3], np.int8)
    check_all(lambda m, x: {
        (n, d): getattr(m.np, n)(x, dtype=d) for n in ("sum", "prod", "mean", "cumsum", "cumprod", "nansum")
        for d in ("float32", "int32", "complex64", "uint8") if not (n == "mean" and d in ("int32", "uint8"))
    }, x, jit=True, **CLOSE)  # fmt: skip
    check(lambda m: m.np.sum(np.array([200, 100], np.uint8), promote_integers=False))
    check(lambda m: m.np.var(x, dtype="float32"))


def test_where_and_initial():
    mask = X > 0
    check_all(lambda m, x, w: {
        **{n: getattr(m.np, n)(x, axis=1, where=w) for n in ("sum", "prod", "mean", "var", "std", "all", "any")},
        **{(n, "i"): getattr(m.np, n)(x, axis=1, where=w, initial=0.5) for n in ("sum", "prod", "max", "min")},
        "wide": m.np.sum(x, where=w[:, :1]),
    }, X, mask, jit=True, **CLOSE)  # fmt: skip
    with pytest.raises(ValueError, match="does not have an identity, so to use a where mask"):
        jnp.max(X, where=mask)


@pytest.mark.parametrize("columns", [1, 15, 65, 130])  # around whole vectors, with and without a rest
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "bool"])
def test_masks_in_memory(columns, dtype):
    x = np.arange(-9, 3 * columns - 9).reshape(3, columns).astype(dtype)
    mask = x.astype(np.int32) % 3 > 0
    if x.dtype.kind == "f":
        x[mask & (x > 4)] = np.nan
        x[1] = np.nan
    least = False if dtype == "bool" else x.dtype.type(-100)
    check_all(lambda m, x, w: {
        **{(n, a): getattr(m.np, n)(x, axis=a, where=w, initial=least) for n in ("max", "min") for a in (None, 0, 1)},
        **{(n, a): getattr(m.np, n)(w, axis=a) for n in ("all", "any", "sum") for a in (None, 0, 1)},
        "masks": (~w, w ^ (x > 0), m.np.where(w, x, least), m.np.where(w, x == x, w)),
        **({} if dtype in ("int8", "bool") else {
            (n, a): getattr(m.np, n)(x, axis=a) for n in ("nanmax", "nanmin") for a in (None, 0)}),
    }, x, mask, jit=True, **CLOSE)  # fmt: skip


def test_degrees_of_freedom():
    check_all(lambda m, x: {
        "ddof": m.np.var(x, ddof=1), "correction": m.np.std(x, axis=0, correction=1.5),
        "none left": m.np.var(x[0, 0], ddof=2), "mean": m.np.var(x, axis=1, mean=m.np.zeros((3, 1, 2))),
        "nan": m.np.nanvar(x, axis=0, ddof=1), "complex": m.np.var(x + 1j),
    }, X, jit=True, **CLOSE)  # fmt: skip


def test_of_nothing():
    empty = np.zeros((0, 3), np.float32)
    check_all(lambda m, x: {
        **{n: getattr(m.np, n)(x) for n in ("sum", "prod", "mean", "var", "all", "any", "count_nonzero", "cumsum")},
        "axis": m.np.sum(x, 0), "max": m.np.max(x, axis=0, initial=1.0), "other": m.np.max(x, axis=1),
    }, empty, jit=True)  # fmt: skip
    with pytest.raises(
        ValueError, match="zero-size array to reduction operation max which has no identity"
    ):
        jnp.max(empty)
    with pytest.raises(ValueError, match="attempt to get argmax of an empty sequence"):
        jnp.argmax(empty)


def test_axis_errors():
    with pytest.raises(ValueError, match="axis 3 is out of bounds for array of dimension 3"):
        jnp.sum(X, axis=3)
    with pytest.raises(ValueError, match=r"duplicate value in 'axis': \(0, 0\)"):
        jnp.sum(X, axis=(0, 0))
    with pytest.raises(TypeError):
        jnp.sum(X, axis=1.0)
    with pytest.raises(
        TypeError, match="sum requires ndarray or scalar arguments, got <class 'list'>"
    ):
        jnp.sum([1, 2])
    with pytest.raises(NotImplementedError, match="'out' argument"):
        jnp.sum(X, out=X)


def test_nan_and_ties():
    x = np.array(
        [[1, np.nan, 3, 3], [np.nan, np.nan, np.nan, np.nan], [2, 2, -np.inf, np.inf]], np.float32
    )
    check_all(lambda m, x: {
        **{(n, a): getattr(m.np, n)(x, axis=a) for n in NAN_NAMES for a in (None, 0, 1)},
        **{(n, a): getattr(m.np, n)(x, axis=a) for n in ("max", "min", "argmax", "argmin", "nanargmax", "nanargmin")
           for a in (None, 0, 1)},
        "kept": m.np.argmax(x, axis=1, keepdims=True), "flat": m.np.argmin(x, keepdims=True),
        "nancumsum": m.np.nancumsum(x, 1), "nancumprod": m.np.nancumprod(x),
    }, x, jit=True, **CLOSE)  # fmt: skip


def test_gradients():
    x = np.array([[3.0, 1.0, 3.0], [0.0, 2.0, -1.0]], np.float32)
    for f in (lambda m, v: m.np.max(v), lambda m, v: m.np.prod(v, 1).sum(), lambda m, v: m.np.std(v),
              lambda m, v: m.np.var(v, 0).sum(), lambda m, v: (m.np.cumsum(v, 1) ** 2).sum(),
              lambda m, v: m.np.cumprod(v, 1).sum(), lambda m, v: m.np.median(v),
              lambda m, v: m.np.mean(v, where=v > 0), lambda m, v: m.np.nansum(v * v)):  # fmt: skip
        check(lambda m, f=f: m.grad(lambda v: f(m, v))(x), rtol=1e-4)


def test_half_precision_accumulates_wide():
    ones = np.ones(70000, np.float16)
    assert float(jnp.mean(ones)) == 1.0 and np.isinf(float(jnp.sum(ones)))


@settings(max_examples=25)
@given(st.sampled_from(["sum", "max", "mean", "argmin", "any"]), st.integers(0, 3), st.data())
def test_random_shapes_against_numpy(name, rank, data):
    shape = tuple(data.draw(st.integers(1, 4)) for _ in range(rank))
    axis = data.draw(st.sampled_from([None, *range(-rank, rank)]))
    x = RNG.normal(size=shape).astype(np.float32)
    got = getattr(jnp, name)(x, axis=axis)
    np.testing.assert_allclose(
        np.asarray(got), getattr(np, name)(x, axis=axis), rtol=1e-5, atol=1e-6
    )


def test_averages():
    w = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    check(lambda m: m.np.average(X))
    check(lambda m: m.np.average(X, axis=1, weights=w))
    check(lambda m: m.np.average(X, axis=1, weights=w, returned=True))
    check(lambda m: m.np.average(X, axis=(0, 1), weights=X[..., 0], returned=True), rtol=1e-4)
    check(lambda m: m.np.average(np.arange(4), weights=np.arange(4)))
    check(lambda m: m.np.average(X, weights=X, keepdims=True), rtol=1e-4)
    with pytest.raises(ValueError, match="Axis must be specified"):
        jnp.average(X, weights=w)


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles(method):
    q = np.array([0.0, 0.1, 0.5, 0.77, 1.0], np.float32)
    check(lambda m: m.np.quantile(X, q, axis=1, method=method))
    check(lambda m: m.np.percentile(X, 30, axis=(0, 2), method=method, keepdims=True))
    x = np.where(X > 1, np.nan, X)
    check(lambda m: m.np.nanquantile(x, q, axis=1, method=method))
    check(lambda m: m.np.quantile(x, 0.3, axis=0, method=method))


def test_medians():
    for axis in (None, 0, 1, (0, 1)):
        check(lambda m, a=axis: m.np.median(X, axis=a))
    check(lambda m: m.np.median(np.arange(6)))
    check(lambda m: (m.np.nanmedian(np.zeros(0)), m.np.median(np.zeros((0, 3)), axis=1)))
    with pytest.raises(ValueError, match="median of no elements"):
        jnp.median(jnp.zeros((2, 0)), axis=1)
    check(lambda m: m.np.nanmedian(np.array([1.0, np.nan, 3.0, 4.0])))


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, "float16"])
def test_places_that_half_types_do_not_tell_apart(dtype):
    x = RNG.normal(size=(3, 3000)).astype(dtype)
    x[1, :7] = np.nan
    for name in ("median", "nanmedian"):
        ours = getattr(jnp, name)(x, axis=1)
        expected = getattr(np, name)(x.astype(np.float32), axis=1).astype(dtype)
        assert ours.dtype == dtype
        np.testing.assert_array_equal(np.asarray(ours, np.float32), expected.astype(np.float32))


def test_differences_and_integrals():
    for n in (0, 1, 2):
        check(lambda m, n=n: m.np.diff(X, n, axis=1))
    check(lambda m: m.np.diff(np.array([True, False, False])))
    check(lambda m: m.np.diff(X[0, 0], prepend=0.0, append=np.array([1.0, 2.0], np.float32)))
    check(lambda m: m.np.ediff1d(X[0], to_end=9.0))
    check(lambda m: m.np.trapezoid(X, axis=1))
    check(lambda m: m.np.trapezoid(X[0, :, 0], np.array([0.0, 1.0, 3.0, 4.0], np.float32)))
    check(lambda m: m.np.cumulative_sum(np.arange(4, dtype=np.int8), include_initial=True))
    check(lambda m: m.np.cumulative_prod(X, axis=1))
    check(lambda m: m.np.cumsum(X, axis=1))
    check(lambda m: m.np.cumsum(np.array([True, True])))


def test_histograms():
    x = RNG.normal(size=50).astype(np.float32)
    check(lambda m: m.np.histogram(x, 7))
    check(lambda m: m.np.histogram(x, 5, range=(-1.0, 1.0), density=True))
    check(lambda m: m.np.histogram(x, np.array([-1.0, 0.0, 2.0], np.float32), weights=x * x))
    check(lambda m: m.np.bincount(np.array([0, 3, 3, 1])))
    check(lambda m: m.np.bincount(np.array([0, 3, 3, 1]), weights=x[:4], minlength=6))
    check(lambda m: m.jit(lambda v: m.np.bincount(v, length=3))(np.array([0, 3, 2, 1])))
    check(lambda m: m.np.digitize(x, np.array([-1.0, 0.0, 1.0], np.float32)))
    check(lambda m: m.np.digitize(x, np.array([1.0, 0.0, -1.0], np.float32), right=True))
    with lamina.enable_x64(True), jax.enable_x64(True):
        check(lambda m: m.np.digitize(x, np.array([], np.float32)))
    check(lambda m: m.np.cov(X[:, :, 0]), rtol=1e-4)
    check(lambda m: m.np.cov(X[:, :, 0], ddof=0, aweights=np.arange(4) + 1.0), rtol=1e-4)
    check(lambda m: m.np.corrcoef(X[:, :, 0]), rtol=1e-4)
    for none in (np.zeros((3, 0)), np.zeros((1, 0)), np.zeros((2, 0), np.complex64),
                 np.zeros((0, 3))):  # fmt: skip
        check(lambda m, none=none: m.np.cov(none))
    for mode in ("full", "same", "valid"):
        for a, b in ((x[:7], x[7:10]), (x[:3], x[:6]), (x[:4], x[:2])):
            np.testing.assert_allclose(
                jnp.convolve(a, b, mode), np.convolve(a, b, mode), rtol=1e-4, atol=1e-5
            )
            np.testing.assert_allclose(
                jnp.correlate(a, b, mode), np.correlate(a, b, mode), rtol=1e-4, atol=1e-5
            )
