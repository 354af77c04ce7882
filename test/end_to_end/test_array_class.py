"""`lamina.Array` is the class of arrays: for isinstance, issubclass, singledispatch, and as the place
where methods are found."""

from __future__ import annotations

import functools
import pickle

import jax
import numpy as np
import pytest

import lamina
from lamina import numpy as lnp

X = np.arange(6, dtype=np.float32).reshape(2, 3)
X_ARRAY = lnp.asarray(X)


@pytest.fixture(params=["array", "key"])
def value(request: pytest.FixtureRequest) -> lamina.Array:
    return lnp.asarray(X) if request.param == "array" else lamina.random.key(3)


@functools.singledispatch
def kind(x: object) -> str:
    return "other"


@kind.register(lamina.Array)
def _(x: lamina.Array) -> str:
    return "array"


def test_the_class_of_every_array_derives_from_it(value) -> None:
    assert issubclass(type(value), lamina.Array) and isinstance(value, lamina.Array)
    assert lamina.Array in type(value).__mro__ and type(value) is not lamina.Array
    assert lnp.ndarray is lamina.Array and lamina.typing.Array is lamina.Array


def test_a_function_registered_for_it_takes_arrays(value) -> None:
    assert kind(value) == "array"
    assert [kind(x) for x in (X, 1.0, [value], np.float32(1))] == ["other"] * 4


def test_what_only_looks_like_an_array_is_none() -> None:
    for x in (X, 1.0, np.float32(1), lamina.ShapeDtypeStruct((2,), np.float32), lamina.new_ref(X)):
        assert not isinstance(x, lamina.Array)


@pytest.mark.parametrize("transform", [lamina.jit, lamina.vmap, lamina.grad])
def test_tracers_are_instances_and_no_subclass(transform) -> None:
    seen = []

    def f(x):
        concrete = isinstance(x, type(X_ARRAY))
        seen.append(
            (isinstance(x, lamina.Array), concrete, issubclass(type(x), lamina.Array), kind(x))
        )
        return (x * x).sum()

    transform(f)(lnp.ones(3) if transform is lamina.vmap else lnp.ones(()))
    assert seen[0] == (True, False, False, "other")  # as JAX has it


def public(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


def test_the_class_has_what_arrays_have() -> None:
    assert public(jax.Array) <= public(lamina.Array)
    x = lnp.asarray(X)
    for name in public(lamina.Array) - {"delete", "flat"}:
        assert hasattr(x, name), name


def test_methods_called_by_the_class() -> None:
    x = lnp.asarray(X)
    assert float(lamina.Array.sum(x)) == 15 and lamina.Array.reshape(x, 3, 2).shape == (3, 2)
    assert list(map(lamina.Array.item, x[0])) == [0, 1, 2] and lamina.Array.tolist(x) == X.tolist()
    assert lamina.Array.shape.fget(x) == (2, 3) and lamina.Array.T.fget(x).shape == (3, 2)
    assert lamina.Array.block_until_ready(x) is x and lamina.Array.devices(x) == x.devices()
    np.testing.assert_array_equal(lamina.Array.__add__(x, 1), X + 1)
    np.testing.assert_array_equal(lamina.jit(lamina.Array.cumsum)(x), X.cumsum())
    assert lamina.vmap(lamina.Array.sum)(x).tolist() == X.sum(1).tolist()
    with pytest.raises(AttributeError, match="'KeyArray' has no tobytes"):
        lamina.Array.tobytes(lamina.random.key(0))


def test_it_has_no_constructor_but_may_be_derived_from() -> None:
    with pytest.raises(TypeError, match="no constructor: use lamina.numpy.array"):
        lamina.Array()

    class Lazy(lamina.Array):
        shape = (3,)

    assert isinstance(Lazy(), lamina.Array) and Lazy().shape == (3,)
    with pytest.raises(AttributeError, match="'Lazy' has no dtype"):
        Lazy().dtype  # noqa: B018


def test_the_namespace_says_what_it_has() -> None:
    import jax.numpy as jnp

    ours, theirs = lnp.__array_namespace_info__(), jnp.__array_namespace_info__()
    assert lnp.__array_api_version__ == jnp.__array_api_version__
    assert lnp.ones(3).__array_namespace__(api_version=lnp.__array_api_version__) is lnp
    assert ours.capabilities() == theirs.capabilities()
    for x64 in (False, True):
        with lamina.enable_x64(x64), jax.enable_x64(x64):
            assert ours.default_dtypes() == theirs.default_dtypes()
            for kind in (None, "bool", "integral", "numeric", ("real floating", "bool")):
                assert ours.dtypes(kind=kind) == theirs.dtypes(kind=kind)
    assert ours.default_device() is None and lamina.devices()[0] in ours.devices()
    with pytest.raises(ValueError, match="'whole' is none of 'bool', 'signed integer'"):
        ours.dtypes(kind="whole")


@pytest.mark.parametrize("m", [lamina, jax])
def test_pickles_have_the_types_of_where_they_are_read(m) -> None:
    with m.enable_x64(True):
        wide = pickle.dumps(m.numpy.array([4.0, 0.1], dtype="float64"))
        np.testing.assert_array_equal(pickle.loads(wide), np.array([4.0, 0.1]), strict=True)
    with m.enable_x64(False):
        narrow = pickle.loads(wide)
        assert narrow.dtype == narrow.aval.dtype == np.float32
    np.testing.assert_array_equal(narrow, np.array([4.0, 0.1], np.float32))
    with pytest.raises(m.errors.ConcretizationTypeError):
        m.jit(pickle.dumps)(0)
