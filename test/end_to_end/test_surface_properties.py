"""Functions of numpy, lax and nn on drawn dtypes, shapes and axes: JAX's result, or JAX's error class.

One example is one call of one row in both libraries. LAMINA_TEST_EXAMPLES=2000 draws so many.
"""

import jax
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from oracle import JAX, LAMINA, assert_same

DTYPES = ["bool", "int8", "uint8", "int32", "uint32", "float16", "float32", "complex64"]
UNARY = """abs negative sign square sqrt exp log sin cos tanh floor ceil round isnan isfinite isinf signbit
    reciprocal conj real imag angle logical_not cbrt expm1 log1p exp2 log2 log10 arctan sinh rint trunc fix
    nan_to_num positive degrees radians ravel atleast_2d fliplr transpose squeeze""".split()
BINARY = """add subtract multiply divide floor_divide remainder maximum minimum fmax fmin equal less
    greater_equal not_equal logical_and logical_xor bitwise_and bitwise_or left_shift arctan2 hypot
    logaddexp copysign heaviside fmod dot matmul outer inner kron append isclose""".split()
REDUCTIONS = """sum prod mean max min any all count_nonzero var std nansum nanmax nanmean ptp""".split()
AXIS = "argmax argmin cumsum cumprod sort argsort flip diff nancumsum expand_dims".split()
LAX = "neg abs exp tanh sign floor is_finite square sqrt logistic bitwise_not population_count".split()
NN = "relu gelu silu softplus sigmoid elu leaky_relu softmax log_softmax relu6 hard_tanh".split()

shapes = st.one_of(
    st.lists(st.integers(0, 4), max_size=3).map(tuple), st.just((300,)), st.just((17, 33))
)
axes = st.one_of(st.none(), st.integers(-4, 3), st.lists(st.integers(-3, 2), max_size=2).map(tuple))


@st.composite
def arrays(draw, shape=None):
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(shapes) if shape is None else shape
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    x = rng.normal(size=shape) * 3
    if dtype.kind in "iub":
        x = np.abs(np.trunc(x)) if dtype.kind == "u" else np.trunc(x)
    return np.asarray(x + 1j * rng.normal(size=shape) if dtype.kind == "c" else x).astype(dtype)


@st.composite
def pairs(draw):
    """Two arrays that mostly broadcast."""
    x = draw(arrays())
    kept = [draw(st.sampled_from([n, n, n, 1])) for n in x.shape]
    y = draw(arrays(tuple(kept[draw(st.integers(0, len(kept))) :])))
    return (x, y) if draw(st.booleans()) else (y, x)


calls = st.one_of(
    st.tuples(st.just("np"), st.sampled_from(UNARY), st.tuples(arrays()), st.just({})),
    st.tuples(st.just("np"), st.sampled_from(BINARY), pairs(), st.just({})),
    st.tuples(st.just("np"), st.sampled_from(REDUCTIONS), st.tuples(arrays()),
              st.fixed_dictionaries({"axis": axes, "keepdims": st.booleans()})),
    st.tuples(st.just("np"), st.sampled_from(AXIS), st.tuples(arrays()),
              st.fixed_dictionaries({"axis": st.integers(-4, 3)})),
    st.tuples(st.just("lax"), st.sampled_from(LAX), st.tuples(arrays()), st.just({})),
    st.tuples(st.just("nn"), st.sampled_from(NN), st.tuples(arrays()), st.just({})),
)  # fmt: skip


def outcome(m, space, name, args, options):
    """The result, or the class of the error."""
    module = m.module.nn if space == "nn" else getattr(m, space)
    try:
        with np.errstate(all="ignore"):
            return getattr(module, name)(*args, **options), None
    except (TypeError, ValueError, IndexError, NotImplementedError, ZeroDivisionError) as e:
        return None, e


@given(calls)
def test_a_call_does_what_jax_s_does(call):
    got, error = outcome(LAMINA, *call)
    want, expected = outcome(JAX, *call)
    if expected is not None or error is not None:
        if expected is not None and (_kind_of(call) in MORE_IS_TAKEN or "tuple index" in str(expected)):
            return
        assert expected is not None, f"{call[1]} raised, JAX does not: {error!r}"
        assert error is not None, f"{call[1]} gave {got}, JAX raises {expected!r}"
        assert isinstance(error, _base(expected)), f"{error!r} is not {expected!r}"
        return
    if _kind_of(call) in WRAPS_IN_JAX:
        return
    half = any(np.asarray(x).dtype in (np.float16, jax.numpy.bfloat16) for x in call[2])
    assert_same(got, want, rtol=1e-2 if half else 1e-4, atol=1e-2 if half else 1e-4)


# JAX raises for integers where lamina, as for all others of nn, takes their floats; JAX subtracts
# the maximum of unsigned integers in their own dtype.
MORE_IS_TAKEN = {("sigmoid", "int"), ("silu", "int"), ("sigmoid", "unsigned"), ("silu", "unsigned")}
WRAPS_IN_JAX = {("softmax", "unsigned"), ("log_softmax", "unsigned")}


def _kind_of(call):
    kind = call[2][0].dtype.kind
    return call[1], "unsigned" if kind == "u" else "int" if kind in "ib" else "inexact"


def _base(error):
    """The class of an error that `except` clauses name."""
    kinds = (TypeError, ValueError, IndexError, NotImplementedError, ZeroDivisionError)
    return next(kind for kind in kinds if isinstance(error, kind))
