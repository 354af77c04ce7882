"""lamina.numpy's creation of arrays, scalar types and questions about types, against JAX."""

import warnings

import numpy as np
import pytest
from support.oracle.judge import JAX, LAMINA, check_all

import lamina
import lamina.numpy as jnp

RNG = np.random.default_rng(1)
X = RNG.normal(size=(2, 3, 4)).astype(np.float32)
V = np.array([3.0, 1.0, 2.0, 1.0], np.float32)


# ---- creation ------------------------------------------------------------------------------------
def test_creation():
    check_all(
        lambda m: {
            "zeros": m.np.zeros((2, 3)),
            "ones": m.np.ones(3, int),
            "full": m.np.full((2, 2), 7),
            "full array": m.np.full((2, 3), np.arange(3)),
            "empty": m.np.empty((2,)),
            "zeros_like": m.np.zeros_like(X),
            "ones_like weak": m.np.ones_like(2),
            "like dtype": m.np.zeros_like(X, int),
            "full_like": m.np.full_like(X, 3),
            "like shape": m.np.ones_like(X, shape=(2,)),
            "eye": m.np.eye(3),
            "eye k": m.np.eye(2, 4, 1, dtype=int),
            "identity": m.np.identity(2),
            "tri": m.np.tri(3, 4, -1),
            "tril": m.np.tril(X, 1),
            "triu": m.np.triu(X, -1),
            "diag": m.np.diag(V),
            "diag k": m.np.diag(V, -2),
            "diag matrix": m.np.diag(X[0], 1),
            "diagflat": m.np.diagflat(X[0, :2, :2], 1),
            "diagonal": m.np.diagonal(X, -1, 1, 2),
            "diagonal axes": m.np.diagonal(X, 1, 2, 0),
            "meshgrid": tuple(m.np.meshgrid(np.arange(2), np.arange(3.0))),
            "ij": tuple(m.np.meshgrid(V, V[:2], indexing="ij", sparse=True)),
            "indices": m.np.indices((2, 3)),
            "sparse": m.np.indices((2, 3), sparse=True),
            "tril_indices": m.np.tril_indices(3, -1),
            "triu_indices": m.np.triu_indices(2, 1, 4),
            "logspace": m.np.logspace(0, 2, 4),
        }
    )


def test_ranges():
    check_all(
        lambda m: {
            "n": m.np.arange(5),
            "float": m.np.arange(5.0),
            "up": m.np.arange(2, 9, 3),
            "down": m.np.arange(5, -1, -2),
            "step": m.np.arange(0, 1, 0.3),
            "empty": m.np.arange(3, 1),
            "dtype": m.np.arange(3, dtype="float32"),
            "half": m.np.arange(5.5),
            "int8": m.np.arange(np.int8(3)),
            "linspace": m.np.linspace(0, 1, 5),
            "open": m.np.linspace(0, 1, 5, endpoint=False),
            "one": m.np.linspace(2, 3, 1),
            "none": m.np.linspace(2, 3, 0),
            "ints": m.np.linspace(0, 10, 4, dtype=int),
            "step too": m.np.linspace(0, 2, 4, retstep=True),
            "arrays": m.np.linspace(V, V + 1, 3, axis=1),
            "complex": m.np.linspace(0, 1j, 3),
        }
    )
    with pytest.raises(lamina.errors.ConcretizationTypeError, match="arange"):
        lamina.jit(lambda n: jnp.arange(n))(3)
    with pytest.raises(ValueError, match="must be non-negative"):
        jnp.linspace(0, 1, -1)


def test_from_values():
    check_all(
        lambda m: {
            "int": m.np.array(1),
            "float": m.np.asarray(2.5),
            "bool": m.np.array(True),
            "complex": m.np.array(1j),
            "list": m.np.array([1, 2.5]),
            "nested": m.np.array([[1, 2], [3, 4]]),
            "np": m.np.array(X),
            "float64": m.np.array(np.array([1.5, 2.5])),
            "int64": m.np.asarray(np.array([2**40 + 5])),
            "scalar": m.np.asarray(np.float64(1)),
            "dtype": m.np.array([1, 2], "float16"),
            "ndmin": m.np.array(3, ndmin=2),
            "arrays": m.np.array([m.np.asarray(1, m.np.int8), 2]),
            "mixed": m.np.array([m.np.ones(2), V[:2]]),
            "empty": m.np.array([]),
            "call": m.np.float32(3),
            "call int": m.np.int8(-3),
            "to int": m.np.asarray(2.7, int),
            "astype": m.np.asarray([np.nan, np.inf, -np.inf, 3e9, -1.7]).astype(m.np.int32),
            "astype u8": m.np.asarray([np.nan, np.inf, -1.0, 300.0]).astype(m.np.uint8),
            "range": m.np.array(range(3)),
            "traced": m.jit(lambda x: m.np.array([x, [1.0, 2.0]]))(V[:2]),
            "astype bool": m.np.asarray([np.nan, 0.0]).astype(bool),
            "copy": m.np.copy(V),
        }
    )
    for action, kind, text in [
        (
            lambda: jnp.array(2**40),
            OverflowError,
            "Python int 1099511627776 too large to convert to int32",
        ),
        (lambda: jnp.array(-1, jnp.uint8), OverflowError, "out of bounds for uint8"),
        (lambda: jnp.uint8(300), OverflowError, "out of bounds for uint8"),
        (lambda: jnp.array("a"), TypeError, "Only arrays of numeric types are supported"),
        (lambda: jnp.array(None), ValueError, "None is not a valid value"),
        (lambda: jnp.array([[1, 2], [3]]), ValueError, "inhomogeneous"),
        (
            lambda: jnp.zeros((2.0, 3)),
            TypeError,
            "Shapes must be 1D sequences of concrete values of integer type",
        ),
        (lambda: lamina.jit(jnp.zeros)(3), TypeError, "Shapes must be 1D sequences"),
        (lambda: jnp.zeros(-1), (TypeError, ValueError), "negative"),
        (lambda: jnp.zeros(3, "foo"), TypeError, "foo"),
    ]:
        with pytest.raises(kind, match=text):
            action()


def test_truncated_dtypes_warn():
    with pytest.warns(
        UserWarning, match="Explicitly requested dtype int64 requested in zeros is not available"
    ):
        assert jnp.zeros(2, jnp.int64).dtype == jnp.int32
    with warnings.catch_warnings(), lamina.enable_x64(True):
        assert jnp.zeros(2, jnp.int64).dtype == jnp.int64
        assert jnp.arange(3).dtype == jnp.int64 and jnp.ones(2).dtype == jnp.float64
        assert (jnp.ones(2, jnp.float32) * 2.0).dtype == jnp.float32


def test_scalar_types():
    assert np.dtype(jnp.bfloat16).name == "bfloat16" and jnp.float32 == np.float32
    assert isinstance(np.float32(1), jnp.float32) and hash(jnp.int8) == hash(np.int8)
    assert (
        jnp.float32(3).dtype == np.float32 and repr(jnp.float32) == "<class 'lamina.numpy.float32'>"
    )
    assert isinstance(jnp.ones(2), jnp.ndarray) and not isinstance(np.ones(2), jnp.ndarray)
    lamina.jit(lambda x: (isinstance(x, jnp.ndarray) or pytest.fail("a tracer is an array"), x)[1])(
        1.0
    )
    with pytest.raises(TypeError, match="has no constructor"):
        jnp.ndarray((2,))


def test_type_questions():
    for f in (lambda m: m.np.issubdtype(m.np.bfloat16, m.np.floating),
              lambda m: m.np.issubdtype(m.np.int4, m.np.integer),
              lambda m: m.np.issubdtype("float32", m.np.inexact),
              lambda m: m.np.issubdtype(m.np.uint8, m.np.signedinteger),
              lambda m: m.np.isdtype("int32", ("bool", "integral")), lambda m: m.np.can_cast("int32", "float64"),
              lambda m: m.np.iscomplexobj(m.np.ones(1)), lambda m: m.np.isrealobj(1j), lambda m: m.np.isscalar(3.0),
              lambda m: m.np.isscalar(m.np.ones(2)), lambda m: m.np.isscalar(m.np.asarray(2)),
              lambda m: m.np.shape(np.ones((2, 3))), lambda m: m.np.ndim(X), lambda m: m.np.size(X, 1),
              lambda m: float(m.np.finfo(m.np.bfloat16).eps), lambda m: int(m.np.iinfo(m.np.int4).max),
              lambda m: m.np.result_type(m.np.ones(2, m.np.bfloat16), 1.0).name,
              lambda m: m.np.result_type("int32", np.float32(1)).name):  # fmt: skip
        assert f(LAMINA) == f(JAX)


def test_aliases_have_names_of_their_own():
    import jax.numpy as xnp

    for name in dir(xnp):
        theirs, ours = getattr(xnp, name), getattr(jnp, name, None)
        if name[0] != "_" and callable(theirs) and not isinstance(theirs, type) and ours is not None:
            assert getattr(ours, "__name__", None) == getattr(theirs, "__name__", None), name
    assert jnp.acos(1.0) == jnp.arccos(1.0) and jnp.amax(V, axis=0, keepdims=True).shape == (1,)
