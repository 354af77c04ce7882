"""Functions of lamina.lax that are programs of others, and reductions by any function, against JAX."""

import numpy as np
import pytest
from support.oracle.judge import JAX, LAMINA, check_all

import lamina
from lamina import lax

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 6)).astype(np.float32)
Y = RNG.normal(size=(4, 6)).astype(np.float32)
I = RNG.integers(-9, 9, (4, 6)).astype(np.int32)  # noqa: E741


def test_rearranging():
    def program(m, x, i):
        lx = m.lax
        taken = (np.array([0, -1, 2]), np.array([5, 1, -2]))
        return {
            "stack": lx.stack([x, x + 1], axis=1), "last": lx.stack([x[0], x[1]], -1),
            "unstack": lx.unstack(x, 1)[2], "tile": lx.tile(x, (2, 3)),
            "like": lx.broadcast_like(x[0], x), "index_take": lx.index_take(i, taken, (0, 1)),
            "rows": lx.index_take(i, (np.array([3, -4]),), (1,)),
            "shape": lx.shape_as_value((3, 4)),
        }  # fmt: skip

    check_all(program, X, I, jit=True, weak=False)


def test_shapes():
    for m in (lax,):
        assert m.conv_shape_tuple((2, 3, 8, 9), (5, 3, 3, 2), (2, 1), "SAME") == (2, 5, 4, 9)
    import jax

    args = [(2, 8, 9, 3), (3, 2, 3, 5), (2, 1), "VALID", ("NHWC", "HWIO", "NHWC")]
    for name in ("conv_general_shape_tuple", "conv_transpose_shape_tuple"):
        assert getattr(lax, name)(*args) == tuple(map(int, getattr(jax.lax, name)(*args)))
    windows = ((8, 9), (3, 2), (2, 3), ((1, 0), (0, 2)), (2, 1), (1, 3))
    assert lax.reduce_window_shape_tuple(*windows) == jax.lax.reduce_window_shape_tuple(*windows)
    numbers = ("NHWC", "HWIO", "CNHW")
    assert lax.conv_general_permutations(numbers) == tuple(
        map(tuple, jax.lax.conv_general_permutations(numbers))
    )
    with pytest.raises(TypeError, match="same set of spatial characters"):
        lax.conv_general_permutations(("NHWC", "DWIO", "NHWC"))


def test_patches():
    x = RNG.normal(size=(2, 5, 6, 3)).astype(np.float32)
    kernel = RNG.normal(size=(4, 3, 12, 2)).astype(np.float32)
    numbers = ("NHWC", "HWIO", "NHWC")

    def program(m, x, kernel):
        f = m.lax.conv_general_dilated_patches
        return {
            "patches": f(x, (2, 2), (1, 2), "VALID", dimension_numbers=numbers),
            "natural": f(x, (2, 3), (1, 1), "SAME", rhs_dilation=(2, 1)),
            "local": m.lax.conv_general_dilated_local(
                x, kernel, (1, 2), "VALID", (2, 2), dimension_numbers=numbers),
        }  # fmt: skip

    check_all(program, x, kernel, jit=True, rtol=1e-4, atol=1e-5)


def test_products_by_group():
    rhs = RNG.normal(size=(3, 6, 2)).astype(np.float32)
    sizes = np.array([1, 0, 2], np.int32)

    def program(m, x, rhs, sizes):
        lx = m.lax
        contracted = lx.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
        return {
            "rows": lx.ragged_dot(x, rhs, sizes),
            "contracted": lx.ragged_dot_general(x, x[:, :2], sizes, contracted),
            "grad": m.grad(lambda r: m.np.sum(lx.ragged_dot(x, r, sizes) ** 2))(rhs),
        }

    check_all(program, X, rhs, sizes, jit=True, rtol=1e-4, atol=1e-5)
    scaled = lax.scaled_dot(X, Y.T, lhs_scale=np.full((4, 2), 2.0, np.float32))
    np.testing.assert_allclose(np.asarray(scaled, np.float32), 2 * X @ Y.T, rtol=0.05, atol=0.2)


def test_cumlogsumexp():
    x = np.array([[1, 300, -2, 4], [-np.inf, -np.inf, 3, np.inf], [1, np.nan, 0, 2]], np.float32)

    def program(m, x):
        f = m.lax.cumlogsumexp
        return {
            "value": f(x, 1), "reverse": f(x, 1, reverse=True),
            "grad": m.grad(lambda v: m.np.sum(f(v, 0) ** 2))(x[0]),
            "equal": m.grad(lambda v: m.np.sum(f(v, 0) ** 2))(m.np.ones(5)),
            "complex": f(m.lax.complex(Y, 3 * Y[::-1])),
        }  # fmt: skip

    check_all(program, x, jit=True, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32", "int64", "uint64"])
def test_mulhi(dtype):
    limits = np.iinfo(dtype)
    x = RNG.integers(limits.min, limits.max, 40, dtype=dtype, endpoint=True)
    x[:4] = limits.min, limits.max, 0, limits.max
    y = np.roll(x[::-1], 3)
    want = [(int(a) * int(b)) >> limits.bits for a, b in zip(x, y)]
    with lamina.enable_x64(True):
        got = lamina.jit(lax.mulhi)(x, y)
    assert got.dtype == dtype and np.asarray(got).tolist() == want


def test_the_rest():
    def program(m, x):
        lx = m.lax
        exact = {"accuracy": lx.AccuracyMode.HIGHEST}
        algorithm = lx.DotAlgorithmPreset.F32_F32_F32
        return {
            "max_k": lx.approx_max_k(x, 2), "min_k": lx.approx_min_k(x, 2, reduction_dimension=0),
            "exp": lx.exp(x, **exact), "tolerance": lx.sin(x, accuracy=lx.Tolerance(rtol=1e-3)),
            "dot": lx.dot_general(x, x, (((1,), (1,)), ((), ())), precision=algorithm),
            "platform": lx.platform_dependent(x, cpu=lambda v: v + 1, default=lambda v: v),
            "default": lx.platform_dependent(x, tpu=lambda v: v + 1, default=lambda v: v),
            "composite": lx.composite(lambda v, k: v * k, name="my.scale")(x, k=3.0),
        }  # fmt: skip

    check_all(program, X, jit=True, rtol=1e-5, atol=1e-5)
    assert lax.empty((2,), np.int8).dtype == np.int8
    assert lax.after_all(lax.create_token(), lax.create_token()).shape == (0,)
    with pytest.raises(ValueError, match="non-negative"):
        lax.Tolerance(rtol=-1)
    with pytest.raises(NotImplementedError, match="no branch for 'cpu'"):
        lax.platform_dependent(X, tpu=lambda v: v)


@pytest.mark.parametrize("algorithm", ["RNG_DEFAULT", "RNG_PHILOX", "RNG_THREE_FRY"])
def test_random_bits_are_jax_s(algorithm):
    """XLA's three-fry counts in an order of its own: only Philox's bits are compared."""

    def program(m):
        key = np.array([1, 2, 3, 4], np.uint32)
        f, kind = m.lax.rng_bit_generator, m.lax.RandomAlgorithm[algorithm]
        return {d: f(key, (3, 5), d, kind) for d in ("uint32", "uint8", "uint16")}

    if algorithm != "RNG_THREE_FRY":
        check_all(program, jit=True)
    key, bits = lax.rng_bit_generator(np.array([0, 1, 2, 3], np.uint32), (1000,), "uint32",
                                      lax.RandomAlgorithm[algorithm])  # fmt: skip
    again, more = lax.rng_bit_generator(key, (1000,), "uint32", lax.RandomAlgorithm[algorithm])
    assert key.shape == again.shape == (4,) and not np.array_equal(bits, more)
    assert abs(np.unpackbits(np.asarray(bits).view(np.uint8)).mean() - 0.5) < 0.02
    drawn = np.asarray(lax.rng_uniform(np.float32(2), np.float32(3), (100,)))
    assert drawn.min() >= 2 and drawn.max() < 3


def test_an_unknown_algorithm_of_random_bits():
    with pytest.raises(ValueError, match="must be one of 'default', 'three_fry', 'philox', got 'threefry'"):
        lax.rng_bit_generator(np.zeros(4, np.uint32), (3,), algorithm="threefry")


# ---- reductions by any function ------------------------------------------------------------------
def combine(m):
    """Associative, and of all functions not one that has a primitive."""
    return lambda a, b: a + b + 0.25 * a * b


def argmin_like(m):
    def body(a, b):
        (x, i), (y, j) = a, b
        first = m.lax.bitwise_or(m.lax.lt(x, y), m.lax.bitwise_and(m.lax.eq(x, y), m.lax.lt(i, j)))
        return m.lax.select(first, x, y), m.lax.select(first, i, j)

    return body


def test_reduce():
    zero, far = np.float32(0), np.float32(np.inf)

    def program(m, x, i):
        lx, f = m.lax, combine(m)
        return {
            "any": lx.reduce(x, zero, f, (1,)), "all": lx.reduce(x, zero, f, (0, 1)),
            "pairs": lx.reduce((x, i), (far, np.int32(0)), argmin_like(m), (0,)),
            "dict": lx.reduce({"a": x}, {"a": zero}, lambda p, q: {"a": f(p["a"], q["a"])}, (0,)),
            "add": lx.reduce(x, 0.0, lx.add, (0,)), "init": lx.reduce(i, 3, lx.max, (0,)),
            "vmap": m.vmap(lambda v: lx.reduce(v, zero, f, (0,)))(x),
            "none": lx.reduce(x, zero, f, ()),
        }  # fmt: skip

    check_all(program, X, I, jit=True, rtol=1e-5, atol=1e-5)


def test_derivatives_of_reduce():
    zero = np.float32(0)

    def total(m, x, axes):
        return m.np.sum(m.lax.reduce(x, zero, combine(m), axes) ** 2)

    for axes in ((0,), (0, 1)):
        grads = [m.jit(m.grad(lambda v, m=m, axes=axes: total(m, v, axes)))(X) for m in (LAMINA, JAX)]
        np.testing.assert_allclose(*map(np.asarray, grads), rtol=1e-4, atol=1e-4)


def test_reduce_window():
    zero = np.float32(0)

    def program(m, x, i):
        lx, f = m.lax, combine(m)
        return {
            "any": lx.reduce_window(x, zero, f, (2, 3)),
            "config": lx.reduce_window(x, zero, f, (2, 2), (2, 1), ((1, 0), (0, 1)), (1, 2), (1, 2)),
            "pairs": lx.reduce_window((x, i), (np.float32(np.inf), np.int32(0)), argmin_like(m),
                                      (2, 2), (1, 1), "SAME"),
            "sum": lx.reduce_window(x, 0.0, lx.add, (1, 2), (1, 1), "VALID"),
            "padding": lx.reduce_window(x, np.float32(2), lx.add, (3, 3), (1, 1), "SAME"),
            "product": lx.reduce_window(x, np.float32(1), lx.mul, (2, 2), (1, 1), "SAME"),
            "vmap": m.vmap(lambda v: lx.reduce_window(v, zero, f, (2,)))(x),
        }  # fmt: skip

    check_all(program, X, I, jit=True, rtol=1e-5, atol=1e-5)
    for params in ({}, {"padding": "SAME", "window_strides": (2, 1), "window_dilation": (1, 2)}):

        def total(x, y, params=params):
            out = lax.reduce_window(x, zero, combine(None), (2, 2), **params)
            return lamina.numpy.sum(out * out * y[: out.shape[0], : out.shape[1]])

        with lamina.enable_x64(True):
            x, y = X.astype(np.float64), Y.astype(np.float64)
            wide = lamina.jit(lambda x, y: lamina.grad(total)(x, y))
            got = np.asarray(wide(x.astype(np.float32), y.astype(np.float32)))
        step = 1e-2
        for place in ((0, 0), (2, 3), (3, 5)):
            e = np.zeros_like(X)
            e[place] = step
            slope = (float(total(X + e, Y)) - float(total(X - e, Y))) / (2 * step)
            assert abs(slope - got[place]) < 0.02 * max(1, abs(slope))


def test_what_reductions_refuse():
    zero = np.float32(0)
    f = combine(None)
    with pytest.raises(ValueError, match="different structures"):
        lax.reduce((X, X), zero, f, (0,))
    with pytest.raises(ValueError, match="must be scalars"):
        lax.reduce(X, X, f, (0,))
    with pytest.raises(TypeError, match="different dtypes"):
        lax.reduce(X, np.int32(0), f, (0,))
    with pytest.raises(TypeError, match="must give scalars like those it takes"):
        lax.reduce(X, zero, lambda a, b: a < b, (0,))
    with pytest.raises(NotImplementedError, match="closes over traced values"):
        lamina.jit(lambda k: lax.reduce(X, zero, lambda a, b: a + b * k, (0,)))(zero)
    with pytest.raises(TypeError, match="need an entry for each axis"):
        lax.reduce_window(X, zero, f, (2,), (1,), "VALID")
