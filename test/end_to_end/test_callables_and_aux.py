"""What transformations take: callables of every kind, auxiliary results that hold anything, the same
branch several times."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np
import pytest
from support.oracle import judge as oracle

import lamina
from lamina import lax
from lamina import numpy as lnp

X = np.arange(3, dtype=np.float32)


class Doubler:
    def __call__(self, x: Any) -> Any:
        return x * 2


class OddlyNamed(Doubler):
    __name__ = 3  # type: ignore[assignment]


class Delegating(Doubler):
    """Answers for attributes that it has not, as proxies do."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Delegating()


class AnswersAll(Doubler):
    def __getattr__(self, name: str) -> Any:
        return 5


CALLABLES = [
    functools.partial(lnp.multiply, 2.0),
    functools.partial(functools.partial(lnp.multiply), 2.0),
    Doubler(),
    Doubler().__call__,
    OddlyNamed(),
    Delegating(),
    AnswersAll(),
]
TRANSFORMATIONS = {
    "vmap": lambda f: lamina.vmap(f)(X),
    "jit": lambda f: lamina.jit(f)(X),
    "pmap": lambda f: lamina.pmap(f)(X[None])[0],
    "checkpoint": lambda f: lamina.checkpoint(f)(X),
    "linearize": lambda f: lamina.linearize(f, X)[0],
    "named_call": lambda f: lamina.named_call(f)(X),
    "grad": lambda f: lamina.grad(f)(1.0) * X,
    "jacfwd": lambda f: lamina.jacfwd(f)(X) @ X,
    "jacrev": lambda f: lamina.jacrev(f)(X) @ X,
    "vectorize": lambda f: lnp.vectorize(f)(X),
    "make_jaxpr": lambda f: lamina.core.eval_jaxpr(
        lamina.make_jaxpr(f)(X).jaxpr, lamina.make_jaxpr(f)(X).consts, X
    )[0],
}


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("f", CALLABLES, ids=lambda f: type(f).__name__)
def test_a_callable_of_any_kind_is_transformed(transformation: str, f: Any) -> None:
    np.testing.assert_array_equal(TRANSFORMATIONS[transformation](f), 2 * X)


@pytest.mark.parametrize("f", [CALLABLES[0], Doubler(), OddlyNamed()], ids=["partial", "a", "b"])
def test_functions_with_rules_of_their_own_have_a_name(f: Any) -> None:
    for custom in (lamina.custom_jvp, lamina.custom_vjp):
        with pytest.raises(AttributeError, match="No .VJP|No JVP|No VJP"):
            lamina.grad(custom(f))(1.0)


class Anything:
    pass


THING = Anything()
AUX = ["text", ("a", 1), {"key": "text", "n": 2.5}, THING, [None, THING, "b"], frozenset({1})]


@pytest.mark.parametrize("aux", AUX, ids=range(len(AUX)))
def test_an_auxiliary_result_holds_anything(aux: Any) -> None:
    def f(x: Any) -> Any:
        return (x * x).sum(), aux

    x = lnp.asarray(X)
    assert lamina.grad(f, has_aux=True)(x)[1] == aux
    assert lamina.value_and_grad(f, has_aux=True)(x)[0][1] == aux
    assert lamina.vjp(f, x, has_aux=True)[2] == aux
    assert lamina.jvp(f, (x,), (x,), has_aux=True)[2] == aux
    assert lamina.linearize(f, x, has_aux=True)[2] == aux
    assert lamina.jacrev(f, has_aux=True)(x)[1] == aux
    gradient = lamina.jit(lambda x: lamina.grad(f, has_aux=True)(x)[0])(x)
    np.testing.assert_array_equal(gradient, 2 * X)


def test_arrays_in_an_auxiliary_result_are_primal_values() -> None:
    def f(x: Any) -> Any:
        return x.sum(), (THING, 3 * x, "text")

    _, (thing, values, text) = lamina.grad(f, has_aux=True)(lnp.asarray(X))
    assert thing is THING and text == "text"
    np.testing.assert_array_equal(values, 3 * X)
    mapped = lamina.vmap(lambda x: lamina.grad(f, has_aux=True)(x)[1][1])(X.reshape(3, 1))
    np.testing.assert_array_equal(mapped, 3 * X.reshape(3, 1))


# ---- the same branch several times ---------------------------------------------------------------
@pytest.mark.parametrize("transform", [lambda f: f, lamina.jit, lamina.vmap, lamina.grad])
def test_a_branch_that_is_there_four_times_is_traced_once(transform: Any) -> None:
    calls = []
    weights = lnp.asarray(X)

    def f(x: Any) -> Any:
        calls.append("f")
        return x * weights[1] + 1

    def g(x: Any) -> Any:
        calls.append("g")
        return -x

    def run(x: Any) -> Any:
        return lax.switch(2, [f, g, f, f, g], x)

    x = lnp.asarray(X) if transform is lamina.vmap else lnp.float32(3)
    out = transform(run)(x)
    assert sorted(calls) == ["f", "g"]
    np.testing.assert_array_equal(out, 1 if transform is lamina.grad else x + 1)


def test_each_branch_is_run_by_its_index() -> None:
    double, negate = Doubler(), lambda x: -x
    for i, want in enumerate([2, -1, 2, -1]):
        out = lamina.jit(lambda i: lax.switch(i, [double, negate, double, negate], X))(i)  # noqa: B023
        np.testing.assert_array_equal(out, want * X)


def test_the_same_branch_that_writes_a_ref() -> None:
    ref = lamina.new_ref(lnp.zeros(()))

    def add(x: Any) -> Any:
        ref[...] += x
        return x

    lax.switch(1, [add, add, add], lnp.float32(2))
    assert float(ref[...]) == 2


# ---- shapes of sequences -------------------------------------------------------------------------
@pytest.mark.parametrize(
    "a", [[1, 2, 3], [[1], [2]], (1, 2), 1, [X, X], [], [[]], range(3), "text", None, [np.int8(1), 2.0]],
    ids=lambda a: type(a).__name__,
)
@pytest.mark.filterwarnings("ignore:(shape|ndim|size) requires ndarray:DeprecationWarning")
def test_shape_of_sequences(a: Any) -> None:
    import jax.numpy as jnp

    assert (lnp.shape(a), lnp.ndim(a), lnp.size(a)) == (jnp.shape(a), jnp.ndim(a), jnp.size(a))


def test_shape_of_tracers_in_sequences() -> None:
    assert lamina.jit(lambda x: lnp.zeros(lnp.shape([[x, x]])))(X).shape == (1, 2, 3)
    assert lnp.size([[1, 2]], axis=1) == 2 and lnp.size(np.zeros((2, 3, 4)), axis=(0, -1)) == 8
    for wrong in ([[1], [2, 3]], [X, 1]):
        with pytest.raises(ValueError, match="different shapes"):
            lnp.shape(wrong)


@pytest.mark.parametrize("axis", [range(1), range(2), [0, 1], (0, -1), np.array([0, 2]), np.int32(1)])
def test_expand_dims_takes_any_axes(axis: Any) -> None:
    np.testing.assert_array_equal(lnp.expand_dims(X, axis), jax.numpy.expand_dims(X, axis))


# ---- select by integers --------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", "int8 uint8 int16 uint16 int32 uint32 int4 uint4".split())
def test_select_by_integers_of_any_type(dtype: str) -> None:
    def select(m: Any) -> Any:
        which = m.np.asarray([2, 0, 1]).astype(dtype)
        x = m.np.asarray(X)
        many = m.lax.select_n(which, x, 10 * x, 100 * x)
        return many, m.lax.select(which % 2, x, -x), m.lax.select_n(which[2], x, 2 * x)

    oracle.check(select)


def test_select_by_floats_is_refused() -> None:
    with pytest.raises(TypeError, match="boolean or integer type, got float32"):
        lax.select(X, X, X)


# ---- complex initializers ------------------------------------------------------------------------
@pytest.mark.parametrize("distribution", ["normal", "uniform", "truncated_normal"])
@pytest.mark.parametrize("mode", ["fan_in", "fan_avg"])
def test_complex_parameters(distribution: str, mode: str) -> None:
    def draw(m: Any) -> Any:
        init = m.module.nn.initializers.variance_scaling(2.0, mode, distribution)
        return init(m.module.random.key(7), (30, 20), np.complex64)

    oracle.check(draw, rtol=1e-4, atol=1e-5)
    big = lamina.nn.initializers.variance_scaling(2.0, "fan_in", distribution)(
        lamina.random.key(1), (200, 300), np.complex64
    )
    assert abs(float((abs(big) ** 2).mean()) * 200 - 2) < 0.05


def test_a_wrapped_function_becomes_a_jaxpr() -> None:
    from lamina.extend import linear_util as lu
    from lamina.interpreters import partial_eval as pe

    aval = lamina.core.ShapedArray((3,), np.dtype("float32"))
    jaxpr, out, consts = pe.trace_to_jaxpr_dynamic(lu.wrap_init(lambda x: [x + X, x]), [aval])
    assert [a.shape for a in out] == [(3,), (3,)]
    np.testing.assert_array_equal(lamina.core.eval_jaxpr(jaxpr, consts, X)[0], 2 * X)
