"""Calls of random: raw keys, shapes, parameters that broadcast to them or not."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from support.strategies.arguments import DTYPES, Draw, add, arrays, call, maybe, x

keys = st.integers(0, 5).map(lambda n: np.array([n, 7 * n], np.uint32))
sizes = st.sampled_from([(), (3,), (2, 3), (0,), (17,)])
dtypes = maybe("float16", "bfloat16", "float32", "int32")
given = st.one_of(st.just(...), st.none(), sizes)


@st.composite
def parameter(draw: Draw, low: float = 0.2, high: float = 3.0) -> Any:
    """A number, or an array of some."""
    shape = draw(st.sampled_from([None, (), (3,), (2, 1), (0,)]))
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    if shape is None:
        return draw(st.sampled_from([low, high, (low + high) / 2]))
    return np.asarray(rng.uniform(low, high, shape), np.float32)


def drawn(names: str, *parameters: Any, **options: Any) -> None:
    """Functions of a key and parameters, to which a shape may be given."""
    add("random", names, call(st.tuples(keys, *parameters), **({"shape": given} | options)))


p = parameter()
drawn("""normal uniform gumbel exponential laplace logistic cauchy maxwell rademacher orthogonal""",
      shape=maybe((), (3,), (2, 3), (0,)), dtype=dtypes)  # fmt: skip
drawn("bits", shape=sizes, dtype=maybe("uint8", "uint16", "uint32", "int32"))
drawn("gumbel", shape=sizes, mode=maybe("low", "high", "middle"))
drawn("uniform", shape=given, minval=p, maxval=p)
drawn("bernoulli", parameter(0.0, 1.0), mode=maybe("low", "high"))
drawn("gamma loggamma chisquare t rayleigh pareto wald poisson lognormal", p, dtype=dtypes)
drawn("beta f", p, p, dtype=dtypes)
drawn("double_sided_maxwell weibull_min", p, p, shape=sizes, dtype=dtypes)
drawn("geometric", parameter(0.05, 1.0), dtype=maybe("int8", "int32", "float32"))
drawn("triangular", parameter(-2, -1), parameter(-0.5, 0.5), parameter(1, 2))
drawn("truncated_normal", parameter(-3, 0), parameter(0.5, 3), dtype=dtypes)
drawn("binomial", parameter(0, 30), parameter(0, 1))
drawn("generalized_normal", st.sampled_from([1.0, 2.0, 0.7]), shape=sizes)
drawn("ball", st.integers(1, 3), p=maybe(1, 2), shape=maybe((), (3,)))
drawn("orthogonal", st.integers(0, 4), shape=maybe((), (2,)), m=maybe(2, 5))
shares = arrays(st.sampled_from([(3,), (2, 4), (1,), ()]), ["float32"], special=False)
drawn("dirichlet", shares.map(lambda a: np.abs(a) + 0.3))
drawn("multinomial", parameter(0, 12), shares.map(lambda a: np.abs(a) / max(np.abs(a).sum(), 1)))
drawn("categorical", shares, axis=maybe(0, -1, 1), replace=maybe(True, False), shape=given)
means = st.sampled_from([(2,), (3, 2), ()]).flatmap(lambda s: arrays(s, ["float32"], special=False))
drawn("multivariate_normal", means, st.just(np.float32([[2, 0.5], [0.5, 1]])),
      method=maybe("svd", "eigh", "cholesky"))  # fmt: skip
some = st.one_of(st.integers(0, 6), x)
drawn("permutation", some, shape=st.just(...), axis=maybe(0, 1, -1), independent=maybe(True))
drawn("choice", some, shape=sizes, replace=maybe(True, False), axis=maybe(0, 1, -1))
ends = st.one_of(
    st.integers(-5, 9), arrays(st.sampled_from([(3,), ()]), ["int32", "int8", "uint8"])
)
add("random", "randint",
    call(st.tuples(keys, sizes, ends, ends), dtype=maybe("int8", "uint8", "uint32", "float32")))  # fmt: skip
add("random", "split", call(st.tuples(keys, st.sampled_from([1, 3, (2, 2), 0, (0,)]))))
add("random", "fold_in", call(st.tuples(keys, st.one_of(st.integers(-1, 2**32), x))))
seeds = st.one_of(st.integers(-(2**33), 2**33), arrays(st.just(()), DTYPES))
add("random", "PRNGKey", call(st.tuples(seeds), impl=maybe("rbg", "philox4x32", "mt19937")))
add("random", "key_data clone key_impl", call(st.tuples(keys)))
