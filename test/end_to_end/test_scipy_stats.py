"""lamina.scipy.stats against SciPy: every function of every distribution, as one program."""

import inspect

import jax
import jax.scipy.stats
import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from support.oracle.judge import assert_same

import lamina
import lamina.numpy as jnp
from lamina.scipy import stats

_N = 24
_RANDOM = np.random.RandomState(0)


def _between(low, high, whole=False):
    drawn = _RANDOM.uniform(low, high, _N)
    return (np.round(drawn) if whole else drawn).astype(np.float32)


_SHAPES = {
    "beta": {"a": (0.3, 5), "b": (0.3, 5)}, "chi2": {"df": (0.5, 9)}, "gamma": {"a": (0.3, 9)},
    "gennorm": {"beta": (0.5, 4)}, "pareto": {"b": (0.5, 4)}, "t": {"df": (0.5, 20)},
    "truncnorm": {"a": (-5, 0), "b": (0.1, 6)}, "vonmises": {"kappa": (0, 30)},
    "wrapcauchy": {"c": (0.05, 0.95)}, "poisson": {"mu": (0.1, 30)}, "geom": {"p": (0.1, 0.9)},
    "binom": {"n": (1, 20, True), "p": (0.05, 0.95)},
    "nbinom": {"n": (1, 20, True), "p": (0.05, 0.95)},
    "betabinom": {"n": (1, 20, True), "a": (0.3, 5), "b": (0.3, 5)}, "bernoulli": {"p": (0, 1)},
    "norm": {}, "expon": {}, "cauchy": {}, "laplace": {}, "logistic": {}, "uniform": {},
    "gumbel_r": {}, "gumbel_l": {},
}  # fmt: skip
_DISCRETE = {"poisson", "geom", "binom", "nbinom", "betabinom", "bernoulli"}
_VECTORS = {"dirichlet", "multinomial"}


def _functions(module):
    return [n for n in dir(module) if n[0] != "_"]


def _calls():
    calls = {}
    for name, shapes in _SHAPES.items():
        drawn = {k: _between(*v) for k, v in shapes.items()}
        x = _between(-2, 12, True) if name in _DISCRETE else _between(-4, 4)
        q = np.concatenate([_between(0, 1)[4:], np.float32([0, 1, -0.1, 1.5])])
        x[-3:] = 0, 1, 0.5
        for function in _functions(getattr(jax.scipy.stats, name)):
            signature = inspect.signature(getattr(getattr(stats, name), function))
            first, *rest = signature.parameters
            if name == "bernoulli":
                q = np.where(q == 0, np.float32(0.2), q)  # SciPy's is -1, before the support
            value = drawn.get(first, q if function in ("ppf", "isf") else x)
            extra = {"loc": np.float32(1 if name in _DISCRETE else 0.3), "scale": np.float32(1.5)}
            calls[name, function] = [value, *(drawn[p] if p in drawn else extra[p] for p in rest)]
    return calls


def test_every_name_and_signature_is_there():
    names = [n for n in dir(jax.scipy.stats) if n[0] != "_"]
    assert not {n for n in names if not hasattr(stats, n)}
    for name in [*_SHAPES, *_VECTORS]:
        theirs, ours = getattr(jax.scipy.stats, name), getattr(stats, name)
        for function in _functions(theirs):
            want = list(inspect.signature(getattr(theirs, function)).parameters)
            assert list(inspect.signature(getattr(ours, function)).parameters) == want, (name, function)


def test_distributions_are_scipys():
    calls = _calls()
    flat = {f"{n}.{f}": a for (n, f), a in calls.items()}
    got = lamina.jit(
        lambda c: {k: getattr(getattr(stats, k.split(".")[0]), k.split(".")[1])(*a) for k, a in c.items()}
    )(flat)
    failed = []
    for (name, function), args in calls.items():
        with np.errstate(all="ignore"):
            reference = getattr(getattr(scipy.stats, name), function)
            want = np.broadcast_to(reference(*(np.float64(a) for a in args)), (_N,))
            value = np.asarray(got[f"{name}.{function}"])
            assert value.dtype == np.float32
            fine = (value == want) | (np.isnan(value) & np.isnan(want))
            fine |= np.abs(value - want) <= 5e-5 * np.maximum(np.abs(want), 1e-2)
        for i in np.flatnonzero(~fine):
            at = [float(np.broadcast_to(a, (_N,))[i]) for a in args]
            failed.append(f"{name}.{function}{at}: {value[i]}, not {want[i]}")
    assert not failed, "\n".join(failed)


def test_vector_distributions():
    alpha, x = np.float32([0.5, 2, 3]), np.float32([[0.2, 0.5], [0.3, 0.1], [0.5, 0.4]])
    np.testing.assert_allclose(stats.dirichlet.logpdf(x, alpha), scipy.stats.dirichlet.logpdf(
        x / x.sum(0, dtype=np.float64), alpha), rtol=1e-5)  # fmt: skip
    np.testing.assert_allclose(stats.dirichlet.pdf(x[:2], alpha), stats.dirichlet.pdf(x, alpha), rtol=1e-5)
    assert float(stats.dirichlet.logpdf(np.float32([0.5, 0.6, 0.5]), alpha)) == -np.inf
    counts, p = np.int32([[2, 3, 5], [1, 1, 1]]), np.float32([0.2, 0.3, 0.5])
    np.testing.assert_allclose(stats.multinomial.pmf(counts, 10, p), [0.08505, 0], rtol=1e-5)
    with pytest.raises(ValueError, match="one-dimensional"):
        stats.dirichlet.logpdf(x, alpha[None])


def test_derivatives_are_jaxs():
    def program(m, s):
        def total(x, a):
            return (s.norm.logcdf(x) + s.gamma.logpdf(a, 2.0) + s.t.logpdf(x, a) + s.beta.cdf(0.3 * x, 2.0, 1.5)
                    + s.gamma.cdf(a, 2.5) + s.poisson.logpmf(3, a) + s.truncnorm.logpdf(0.3 * x, -1.0, a))  # fmt: skip

        return m.jit(m.grad(total, (0, 1)))(0.7, 1.3)

    assert_same(program(lamina, stats), program(jax, jax.scipy.stats), rtol=1e-4, weak=False)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8))
def test_summaries(values):
    x = np.float32(values + [9] * (8 - len(values)))  # one size: one program
    np.testing.assert_array_equal(stats.mode(x), scipy.stats.mode(x))
    for method in ("average", "min", "max", "dense", "ordinal"):
        np.testing.assert_array_equal(stats.rankdata(x, method), scipy.stats.rankdata(x, method))
    np.testing.assert_allclose(stats.sem(x), scipy.stats.sem(x), rtol=1e-5)


def test_summaries_as_jax_gives_them():
    x = np.float32([[3, 1, 1, np.nan], [2, 2, 0, 0]])

    def program(m, s):
        return {
            "mode": tuple(s.mode(x)), "along": tuple(s.mode(x, 1)), "kept": tuple(s.mode(x, None, keepdims=True)),
            **{n: s.rankdata(x, n, axis=1) for n in ("average", "min", "max", "dense", "ordinal")},
            "flat": s.rankdata(x[1]), "sem": s.sem(x, 1), "omit": s.sem(x, 1, nan_policy="omit"),
            "all": s.sem(x, None, ddof=0),
        }  # fmt: skip

    assert_same(program(jnp, stats), program(jax.numpy, jax.scipy.stats), rtol=1e-5, weak=False)
    for call in (stats.mode, stats.sem, stats.rankdata):
        with pytest.raises(ValueError, match="nan_policy"):
            call(x, nan_policy="ignore")
