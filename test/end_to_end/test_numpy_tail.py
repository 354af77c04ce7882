"""The names of lamina.numpy that few programs use, against JAX (or NumPy, where JAX cannot)."""

import ml_dtypes
import numpy as np
import pytest
from support.oracle.judge import check, check_all

import lamina
import lamina.numpy as jnp
from lamina import errors
from lamina.numpy import diagonals, differences, extrema, products, reductions, statistics

RNG = np.random.default_rng(3)
X = RNG.normal(size=(3, 4)).astype(np.float32)
CLOSE = {"rtol": 3e-5, "atol": 2e-6}


@pytest.mark.parametrize("name, inside, arguments", [
    ("clip", extrema._clipped, (X, -1, 1)),
    ("cov", statistics._covariance, (X,)),
    ("convolve", statistics._slid, (X[0], X[1])),
    ("count_nonzero", reductions._count, (X, [0, 1])),
    ("cross", products._cross, (X[:, :3], X[:, 1:])),
    ("diff", differences._diff, (X, 2, 0, 1.0)),
    ("kron", products._kron, (X, X)),
    ("ptp", reductions._range, (X, 1)),
    ("trace", products._sum_of_diagonal, (X, 1)),
    ("tril", diagonals._on_one_side, (X, 1)),
])  # fmt: skip
def test_several_operations_are_one_program(name, inside, arguments):
    got = getattr(jnp, name)(*arguments)
    assert inside.jitted
    want = getattr(np, name)(*(tuple(a) if isinstance(a, list) else a for a in arguments))
    np.testing.assert_allclose(np.asarray(got), want, **CLOSE)


def test_windows():
    check_all(lambda m: {
        **{(n, k): getattr(m.np, n)(k) for n in ("bartlett", "blackman", "hamming",
            "hanning") for k in (0, 1, 2, 7)},
    }, jit=True, **CLOSE)  # fmt: skip
    check(lambda m: (m.np.kaiser(5, 3.0), m.np.i0(np.array([0, -1, 5.0], np.float32))), **CLOSE)
    with pytest.raises(ValueError, match="non-negative"):
        jnp.hanning(-1)


def test_parts_of_floats():
    x = np.array([0, -0.0, 1, -3.5, np.inf, -np.inf, np.nan, 1e38, 1.2e-38, 7], np.float32)
    e = np.array([3, 3, 200, -1, 3, 3, 3, -300, 5, -2], np.int32)
    check_all(lambda m, x, e: {
        "frexp": m.np.frexp(x), "ldexp": m.np.ldexp(x, e), "modf": m.np.modf(x),
        "spacing": m.np.spacing(x),
        "ints": (m.np.frexp(np.arange(4)), m.np.ldexp(np.arange(4), 2), m.np.modf(np.arange(3))),
        "half": (m.np.frexp(x.astype(np.float16)), m.np.ldexp(x.astype(np.float16), 3)),
    }, x, e, jit=True, rtol=0, atol=0)  # fmt: skip
    check(lambda m: m.grad(lambda v: m.np.modf(v)[0])(2.5))
    factors = lamina.grad(lambda v: jnp.ldexp(v, np.array([3, 0, 20, -1])).sum())(x[:4])
    np.testing.assert_array_equal(factors, [8, 1, 2**20, 0.5])
    check(lambda m: m.jvp(lambda v: m.np.ldexp(v, 2), (x[2:4],), (x[2:4] + 1,)))
    check(lambda m: m.jvp(lambda v: m.np.frexp(v)[0], (x,), (np.ones_like(x),)))
    check(lambda m: m.vmap(m.grad(lambda v: m.np.cos(m.np.frexp(v)[0] * v)))(x[:4]), rtol=1e-5)
    finite = x[np.abs(x) < 1e4].astype(np.float16)
    np.testing.assert_array_equal(np.abs(jnp.spacing(finite)), np.abs(np.spacing(finite)))
    for call in (lambda: jnp.frexp(1j), lambda: jnp.modf(1j)):
        with pytest.raises(TypeError, match="complex"):
            call()
    for call in (lambda: jnp.ldexp(x, 1.5), lambda: jnp.spacing(1j)):
        with pytest.raises(ValueError, match="not (supported|defined)"):
            call()


def test_bits():
    bits = RNG.integers(0, 2, (3, 11)).astype(np.int32)
    packed = RNG.integers(0, 256, (3, 2)).astype(np.uint8)
    check_all(lambda m, b, p: {
        **{("pack", a, o): m.np.packbits(b, axis=a, bitorder=o) for a in (None, 0,
            -1) for o in ("big", "little")},
        **{("unpack", a, o): m.np.unpackbits(p, axis=a, bitorder=o) for a in (None, 0,
            -1) for o in ("big", "little")},
        **{("count", c): m.np.unpackbits(p, axis=1, count=c) for c in (5, 20, -3)},
    }, bits, packed, jit=True)  # fmt: skip
    with pytest.raises(TypeError, match="integer or boolean"):
        jnp.packbits(X)
    with pytest.raises(TypeError, match="unsigned byte"):
        jnp.unpackbits(bits)


def test_polynomials():
    a, b = np.array([0, 2, -1, 3], np.float32), np.array([1, 2], np.float32)
    i = np.array([1, 2, 3])
    check_all(lambda m, a, b, i: {
        "add": m.np.polyadd(a, b), "add2": m.np.polyadd(b, i), "sub": m.np.polysub(b, a),
        "mul": m.np.polymul(a, b),
        "div": m.np.polydiv(a, b), "short": m.np.polydiv(b, a[1:]),
        **{("der", k): m.np.polyder(a, k) for k in (0, 1, 2, 9)}, "der i": m.np.polyder(i),
        **{("int", k): m.np.polyint(a, k) for k in (0, 1, 3)}, "k": m.np.polyint(i, 2, k=b),
        "k1": m.np.polyint(a, 2, k=3),
        "val": m.np.polyval(a, X), "val i": m.np.polyval(i, 3), "none": m.np.polyval(a[:0], 3.0),
        "poly": m.np.poly(b), "poly c": m.np.poly(b + 1j), "vander": m.np.vander(i),
        "vander2": m.np.vander(b, 3, increasing=True),
        "grad": m.grad(lambda p: m.np.polyval(p, 2.0))(a),
    }, a, b, i, jit=True, **CLOSE)  # fmt: skip
    check(lambda m: m.np.polymul(np.array([0, 0, 1.0]), b, trim_leading_zeros=True))
    check(lambda m: m.np.polydiv(np.array([1, 2, 1.0]), np.array([1, 1.0]),
        trim_leading_zeros=True))
    with pytest.raises(ValueError, match="must be positive"):
        jnp.polyder(a, -1)


def test_index_objects():
    check_all(lambda m: {
        "m1": m.np.mgrid[0:3], "m2": m.np.mgrid[0:2, 0:3:0.5], "m3": m.np.mgrid[0:1:3j, :2],
        "o": m.np.ogrid[0:2, 0:1:3j],
        "none": m.np.mgrid[()], "r": m.np.r_[0:3, 5, m.np.arange(2.0)],
        "r2": m.np.r_["0,2", [1, 2], [3, 4]],
        "r3": m.np.r_["1,2,0", [1, 2], [3, 4]], "row": m.np.r_["r", [1, 2]],
        "c": m.np.c_[[1, 2], [3, 4]],
        "c2": m.np.c_[0:3, 4:7], "lin": m.np.r_[0:1:3j], "last": m.np.r_["-1", X, X],
        "ix": X[np.ix_([0, 2],
            [1, 3])] if m.name == "none" else m.np.asarray(X)[m.np.ix_(np.array([0, 2]),
            np.array([1, 3]))],
    })  # fmt: skip
    assert jnp.s_[1:2, ...] == (slice(1, 2), Ellipsis) and jnp.index_exp[1] == (1,)
    with pytest.raises(ValueError, match="could not understand directive 'q'"):
        jnp.r_["q", 1]
    with pytest.raises(ValueError, match="1-dimensional"):
        jnp.ix_(X)


def test_taking_out_and_putting_in():
    i = np.arange(6)
    check_all(lambda m, x, i, k: {
        "traced": m.np.delete(i, k, assume_unique_indices=True),
        "resize": m.np.resize(i, (3, 4)), "less": m.np.resize(x, 5),
        "nothing": m.np.resize(x[:0], (2,)),
        "compress": m.np.compress(i > 2, i, size=5, fill_value=-1),
        "put": m.np.put(x, k, -i, inplace=False),
        "put clip": m.np.put(i, np.array([9, -1]), 7, mode="clip", inplace=False),
        "put wrap": m.np.put(i, np.array([9, -2]), 7, mode="wrap", inplace=False),
        "place": m.np.place(x, x > 0, i[:2], inplace=False),
        "along": m.np.put_along_axis(x, np.array([[1], [2], [-1]]), 5.0, 1,
            inplace=False),
        "diag": m.np.fill_diagonal(x, i, inplace=False),
        "diag3": m.np.fill_diagonal(m.np.zeros((2, 2, 2)), 3, inplace=False),
        "from": (m.np.diag_indices_from(x[:, :3]), m.np.tril_indices_from(x, 1),
            m.np.triu_indices_from(x, k=-1)),
        "mask_indices": m.np.mask_indices(3, m.np.triu, size=7),
    }, X, i, np.array([1, -1, 3]), jit=True)  # fmt: skip
    check_all(lambda m, x, i, k: {
        **{("delete", str(o), a): m.np.delete(x, o, axis=a) for a in (1, None)
           for o in (1, slice(0, 2), np.array([0, 2]), np.array([-1]), np.array([], int))},
        "mask": m.np.delete(i, i_mask),
        **{("insert", str(o)): m.np.insert(x, o, 9, axis=1) for o in (0, -1, 4, slice(0, 2),
            np.array([1, 1, 3]))},
        "many": m.np.insert(x, np.array([2, 0]), x[:2], axis=0),
        "flat": m.np.insert(i, 2, np.array([7, 8])),
        "weak": m.np.insert(m.np.arange(3) - 0.5, 1, 2),
        "weak, twice": m.np.insert(m.np.arange(3) - 0.5, np.array([0, 1]), 2),
        "scalar row": m.np.insert(x, 1, x[0], axis=0), "cast": m.np.insert(i, 1, 2.7),
    }, X, i, np.array([1, -1, 3]))  # fmt: skip
    np.testing.assert_array_equal(lamina.jit(lambda k: jnp.insert(i, k, 5))(-2),
        np.insert(i, -2, 5))
    check(lambda m: [m.np.trim_zeros(np.array(a), t) for a in ([0, 0, 1, 0, 2, 0], [0, 0],
        [1]) for t in ("fb", "f", "b")])
    check(lambda m: m.np.trim_zeros(np.array([[0, 0, 1], [0, 0, 0]])))
    check(lambda m: m.np.compress(i > 2, i))
    check(lambda m: m.np.compress(np.array([True, False, True]), X, axis=1))
    with pytest.raises(errors.ConcretizationTypeError, match="obj"):
        lamina.jit(jnp.delete)(X, 1)
    with pytest.raises(ValueError, match="out of bounds"):
        jnp.delete(i, 7)
    for call in (lambda: jnp.put(i, 1, 2), lambda: jnp.place(i, i, i),
        lambda: jnp.put_along_axis(X, X, 1, 1)):
        with pytest.raises(ValueError, match="inplace=False"):
            call()


i_mask = np.array([True, False, True, False, False, False])


def test_differences():
    p = np.array([0, 3, 6, 9, 0.1, -5], np.float32)
    check_all(lambda m, x, p: {
        "gradient": m.np.gradient(x), "axis": m.np.gradient(x, axis=1), "h": m.np.gradient(x, 2.0),
        "hs": m.np.gradient(x, 2.0, p[:4] + 1e2 * np.arange(4)),
        "int": m.np.gradient(np.arange(4)), "unwrap": m.np.unwrap(p),
        "period": m.np.unwrap(np.array([0, 3, 6, 9, 0, -5]), period=4),
        "discont": m.np.unwrap(np.array([0, 3, 6, 9, 0, -5]), period=5, discont=4),
        "unwrap2": m.np.unwrap(x * 9, axis=0),
    }, X, p, jit=True, **CLOSE)  # fmt: skip
    with pytest.raises(TypeError, match="spacing arguments"):
        jnp.gradient(X, 1.0, 2.0, 3.0)
    with pytest.raises(ValueError, match="too small"):
        jnp.gradient(X[:1])


def test_creation():
    check_all(lambda m: {
        "geom": m.np.geomspace(1, 1000, 4), "neg": m.np.geomspace(-1, -1000, 4),
        "int": m.np.geomspace(1, 16, 4, endpoint=False, dtype=int),
        "complex": m.np.geomspace(1j, 8j, 4),
        "arrays": m.np.geomspace(np.array([1, 2.0]), 8, 3, axis=1),
        "none": m.np.geomspace(1, -1000, 4),
        "function": m.np.fromfunction(lambda i, j: {"a": i + 2 * j}, (2, 3), dtype=int),
        "buffer": m.np.frombuffer(b"\1\2\3", np.uint8, offset=1),
        "string": m.np.fromstring("1 2 3", int, sep=" "),
        "complex sort": m.np.sort_complex(np.array([3, 1, 2])),
    }, rtol=1e-5)  # fmt: skip
    for name in ("fromiter", "fromfile"):
        with pytest.raises(NotImplementedError, match="pure"):
            getattr(jnp, name)([1])


def test_files(tmp_path):
    for x in (jnp.arange(3.0), jnp.arange(3, dtype=jnp.bfloat16)):
        jnp.save(tmp_path / "x.npy", x)
        assert jnp.load(tmp_path / "x.npy").dtype == x.dtype and jnp.array_equal(jnp.load(tmp_path / "x.npy"), x)
    with jnp.printoptions(precision=2):
        assert jnp.array_str(jnp.array([0.123456])) == "[0.12]"
    assert jnp.array_repr(jnp.arange(2)) == "ArrayImpl([0, 1], dtype=int32)"  # as in JAX


def test_histograms():
    x, y = RNG.normal(size=(2, 30)).astype(np.float32)
    edges = np.array([-1, 0, 0.5, 1], np.float32)
    check_all(lambda m, x, y: {
        "2": m.np.histogram2d(x, y, 4), "uneven": m.np.histogram2d(x, y, [2, 3], density=True),
        "edges": m.np.histogram2d(x, y, edges),
        "mixed": m.np.histogram2d(x, y, [edges, 3], range=[None, [-1, 1]], weights=np.arange(30)),
        "dd": m.np.histogramdd(m.np.stack([x, y, x * y], 1), 3),
    }, x, y, jit=True, rtol=1e-4, atol=1e-5)  # fmt: skip
    with pytest.raises(ValueError, match="bin for each dimension"):
        jnp.histogramdd(np.ones((4, 3)), bins=[2, 2])


def test_weighted_quantiles():
    x, w = RNG.normal(size=(3, 6)).astype(np.float32), RNG.integers(0, 4, (3, 6)).astype(np.float32)
    check_all(lambda m, x, w: {
        "all": m.np.quantile(x, 0.4, weights=w, method="inverted_cdf"),
        "axis": m.np.quantile(x, np.array([0.1, 0.5, 1]), axis=1, weights=w[0],
            method="inverted_cdf"),
        "keep": m.np.percentile(x, 30.0, axis=0, weights=w, method="inverted_cdf", keepdims=True),
    }, x, w, jit=True)  # fmt: skip
    with pytest.raises(NotImplementedError, match="inverted_cdf"):
        jnp.quantile(x, 0.5, weights=w)


def test_ufuncs():
    i, x = np.arange(6).reshape(2, 3), X
    k = np.array([0, 0, 1])
    check_all(lambda m, i, x: {
        **{(n, "reduce", a): getattr(m.np, n).reduce(i, axis=a) for n in ("add", "multiply",
            "subtract", "maximum", "bitwise_xor", "logical_and") for a in (0, 1, None)},
        **{(n, "accumulate"): getattr(m.np, n).accumulate(x, axis=1) for n in ("add", "multiply",
            "subtract", "minimum", "logaddexp")},
        **{(n, "at"): getattr(m.np, n).at(x[:, 0], k, x[:, 1], inplace=False) for n in ("add",
            "subtract", "multiply", "maximum", "logaddexp")},
        **{(n, "outer"): getattr(m.np, n).outer(x[0], x) for n in ("add", "logaddexp")},
        **{(n, "reduceat"): getattr(m.np, n).reduceat(x, np.array([0, 2, 1, 3]),
            axis=1) for n in ("add", "subtract", "maximum")},
        "keep": m.np.subtract.reduce(i, axis=1, keepdims=True, initial=5),
        "where": m.np.add.reduce(i, where=i > 2),
        "negative": m.np.negative.at(x[0], k, inplace=False),
        "masked": m.np.subtract.reduce(i, 1, where=i > 1, initial=0),
    }, i, x, jit=True, **CLOSE)  # fmt: skip

    def own(m):
        f = m.np.frompyfunc(lambda a, b: a * b + 1, 2, 1, identity=3)
        g = m.np.frompyfunc(lambda a: (a, -a), 1, 2)
        return (f(i, 2), f.reduce(i, 1), f.accumulate(i, 1), f.outer(k, k),
            f.at(m.np.asarray(k), k, 5, inplace=False), g(x), f.nargs)

    check(own)
    assert isinstance(jnp.add, jnp.ufunc) and jnp.add.nin == 2 and jnp.add.identity == 0
    assert "x + y" in jnp.add.__doc__ and hash(jnp.add) == hash(jnp.add)
    with pytest.raises(NotImplementedError, match="inplace=False"):
        jnp.add.at(x, k, 1.0)
    with pytest.raises(ValueError, match="no identity"):
        jnp.subtract.reduce(np.zeros((0, 3)))
    with pytest.raises(ValueError, match="binary ufuncs"):
        jnp.negative.reduce(x)
    with pytest.raises(NotImplementedError, match="out"):
        jnp.add(x, x, out=x)


NARROW = ["int2", "uint2", "int4", "uint4", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn",
          "float8_e8m0fnu", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz",
          "float8_e3m4"]  # fmt: skip


@pytest.mark.parametrize("name", NARROW)
def test_narrow_dtypes(name):
    dtype = np.dtype(getattr(ml_dtypes, name))
    values = np.array([0.25, 1, 1.75, 3, -2, 6, 0.3, 1e3, -1e3], np.float32)
    if dtype.kind == "V" and name.startswith(("int", "uint")):
        low, high = int(ml_dtypes.iinfo(dtype).min), int(ml_dtypes.iinfo(dtype).max)
        values = np.array([*range(low, high + 1)], np.float32)
    else:
        values = np.append(values, np.float32(np.nan))  # -0 where a format has none
    known = values.astype(dtype)

    def f(x):
        y = x.astype(getattr(jnp, name))
        return y, y.astype(np.float32), y + y, jnp.concatenate([y, y]), jnp.where(y == y, y, y)

    got = lamina.jit(f)(values)
    want = known, known.astype(np.float32), known + known, np.concatenate([known, known]), known
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype
        np.testing.assert_array_equal(np.asarray(g).astype(np.float32),
            np.asarray(w).astype(np.float32))
    np.testing.assert_array_equal(np.asarray(jnp.asarray(known)).view(np.uint8),
        known.view(np.uint8))
    with pytest.raises(errors.TypePromotionError, match="implicit"):
        jnp.asarray(known) + np.float32(1)


NARROW = ("int2", "int4", "uint2", "uint4", "int8", "int16", "uint32")


@pytest.mark.parametrize("to", NARROW)
@pytest.mark.parametrize("dtype", NARROW)
def test_view_counts_bits(dtype, to):
    given = RNG.integers(0, 2, size=(3, 64)).astype(dtype)
    check(lambda m, x: m.np.asarray(x).view(to), given)


@pytest.mark.parametrize("shape, axis", [
    ((2, 4, 5), 0), ((3, 3, 5), 1), ((3, 1, 5), 1), ((4,), -1), ((4, 4), 2), ((4, 1), 0), ((), 1),
])  # fmt: skip
def test_trapezoid_with_distances_of_any_shape(shape, axis):
    y, dx = RNG.normal(size=(3, 4, 5)), RNG.uniform(size=shape)
    got = jnp.trapezoid(y.astype(np.float32), dx=dx.astype(np.float32), axis=axis)
    np.testing.assert_allclose(got, np.trapezoid(y, dx=dx, axis=axis), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8"])
def test_unravel_index_of_a_traced_shape(dtype):
    index = np.arange(12).astype(dtype) - np.dtype(dtype).type(0 if dtype == "uint8" else 8)
    for got, want in zip(
        lamina.jit(jnp.unravel_index)(index, (2, 3)), jnp.unravel_index(index, (2, 3)), strict=True
    ):
        assert got.dtype == want.dtype == dtype
        np.testing.assert_array_equal(got, want)


def test_ravel_multi_index_has_the_dtype_of_its_indices():
    i = np.array([0, 1], np.int8)
    check(lambda m, i: m.np.ravel_multi_index((i, i), (2, 3), mode="ignore"), i)
    check(lambda m, i: m.np.ravel_multi_index((i, i), (2, 3), "wrap", dtype="uint8"), i)
    with pytest.raises(ValueError, match="int8 can't hold"):
        jnp.ravel_multi_index((i, i), (20, 30))
    with pytest.raises(ValueError, match="integers, got dtype float32"):
        jnp.ravel_multi_index((i, i), (2, 3), dtype="float32")


@pytest.mark.parametrize("dtype", ["int16", "int32", "float32"])
@pytest.mark.parametrize("period", [4, 2.5])
@pytest.mark.parametrize("discont", [None, 3, 1.5])
def test_unwrap_promotes_its_period(dtype, period, discont):
    x = RNG.integers(-20, 20, size=(2, 9)).astype(dtype)
    got = jnp.unwrap(x, discont=discont, period=period)
    want = np.unwrap(x, discont=discont, period=period)
    assert got.dtype == (dtype if isinstance(period, int) else "float32")
    np.testing.assert_allclose(got, want, rtol=1e-5)


ABSTRACT = (np.generic, np.number, np.integer, np.inexact, np.floating, np.complexfloating)


@pytest.mark.parametrize("kind", ABSTRACT)
@pytest.mark.parametrize("dtype", ["bfloat16", "int4", "float8_e5m2", "float32", "bool_"])
def test_issubdtype_of_abstract_types(kind, dtype):
    concrete = getattr(jnp, dtype)
    assert not jnp.issubdtype(kind, concrete)
    assert jnp.issubdtype(concrete, np.generic)


def test_issubdtype_of_extended_types():
    extended, key = lamina.dtypes.extended, lamina.dtypes.prng_key
    above = {extended: {extended, np.generic}, key: {key, extended, np.generic}}
    for a in (extended, key):
        for b in (extended, key, np.generic, np.number, np.float32):
            assert jnp.issubdtype(a, b) == (b in above[a])


@pytest.mark.parametrize("name", ["nin", "nout", "nargs", "identity"])
def test_what_a_ufunc_says_of_itself_is_read_only(name):
    for f in (jnp.add, jnp.frompyfunc(lambda x, y: x + y, 2, 1)):
        getattr(f, name)
        with pytest.raises(AttributeError):
            setattr(f, name, None)


def test_functions_whose_parts_differ_in_dtype_under_strict_promotion():
    with lamina.numpy_dtype_promotion("strict"):
        assert jnp.mgrid[1:6:8j, 2:4].dtype == "float32"
        value, sign = lamina.nn.logsumexp(jnp.array([1j, 2 + 1j]), return_sign=True)
        assert (value.dtype, sign.dtype) == ("float32", "complex64")


def test_bytes_of_a_traced_array():
    with pytest.raises(errors.ConcretizationTypeError, match="tobytes"):
        lamina.jit(lambda x: x.tobytes())(X)


def test_sizes_of_an_image_are_integers():
    assert lamina.image.resize(X, jnp.array([6, 2]), "nearest").shape == (6, 2)
    with pytest.raises(TypeError):
        lamina.image.resize(X, [6.5, 2], "linear")
