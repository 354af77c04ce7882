"""Calls of scipy, numpy.linalg and numpy.fft."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from support.strategies.arguments import (
    CALLS,
    FLOATS,
    add,
    arrays,
    axes,
    axis,
    broadcasting,
    call,
    matrices,
    maybe,
    one,
    square,
    vec,
    x,
)

any_axis = st.one_of(st.just(...), axis)
any_axes = st.one_of(st.just(...), axes)


def positive(a):
    """A positive definite matrix."""
    return (a[0] @ np.conj(np.swapaxes(a[0], -1, -2)),)


# ---- linear algebra ----------------------------------------------------------------------------
add("numpy.linalg", "cholesky", call(square().map(positive), upper=maybe(True)))
add("numpy.linalg", "det inv slogdet svdvals pinv cond matrix_rank", call(square()))
add("numpy.linalg", "eigvalsh", call(square().map(positive)))
add("numpy.linalg", "det inv slogdet",
    call(square(dtypes=["float32", "int32", "bfloat16", "bool"], largest=4)))  # fmt: skip
add("numpy.linalg", "solve", call(square(extra="rhs")))
add("numpy.linalg", "matrix_power",
    call(st.tuples(square(largest=3).map(lambda a: a[0]), st.integers(-2, 5))))  # fmt: skip
add("numpy.linalg", "svdvals", call(one(matrices())))
add("numpy.linalg", "norm", call(
    one(x), ord=maybe(None, 1, 2, np.inf, -np.inf, "fro", "nuc", 3, 0), axis=any_axes,
    keepdims=maybe(True)))  # fmt: skip
add("numpy.linalg", "vector_norm", call(
    one(x), ord=maybe(1, 2, np.inf, -np.inf, 3, 0), axis=any_axes, keepdims=maybe(True)))  # fmt: skip
add("numpy.linalg", "matrix_norm", call(
    one(matrices()), ord=maybe(1, 2, np.inf, -np.inf, "fro", "nuc", -2), keepdims=maybe(True)))  # fmt: skip
add("numpy.linalg", "diagonal trace matrix_transpose", call(one(x)))
tall = matrices(["float32"]).filter(lambda a: a.ndim == 2 and a.size)
add("numpy.linalg", "lstsq", call(tall.map(lambda a: (a, np.ones(a.shape[0], np.float32)))))
add("scipy.linalg", "det inv expm", call(square(largest=4)))
add("scipy.linalg", "cholesky cho_factor", call(square().map(positive), lower=maybe(True)))
add("scipy.linalg", "solve", call(square(extra="rhs"), lower=maybe(True), assume_a=maybe("gen")))
add("scipy.linalg", "solve_triangular", call(
    square(extra="rhs"), lower=maybe(True), trans=maybe(0, 1, 2, "T", "C"),
    unit_diagonal=maybe(True)))  # fmt: skip
blocks = st.lists(arrays(st.sampled_from([(2, 3), (1, 1), (2,), (), (0, 2)])), max_size=3)
add("scipy.linalg", "block_diag", call(blocks.map(tuple)))
vectors = arrays(st.sampled_from([(4,), (1,), (2,), (2, 3)]), special=False)
add("scipy.linalg", "toeplitz circulant hankel companion fiedler", call(one(vectors)))
add("scipy.linalg", "toeplitz hankel", call(st.tuples(vec, vec)))
add("scipy.linalg", "hilbert invhilbert pascal invpascal helmert dft", call(
    one(st.sampled_from([1, 2, 4, 5]))))  # fmt: skip
add("scipy.linalg", "hadamard", call(one(st.sampled_from([1, 2, 4]))))
add("scipy.linalg", "leslie",
    call(st.tuples(arrays((4,), special=False), arrays((3,), special=False))))  # fmt: skip

# ---- signals -----------------------------------------------------------------------------------
lengths = maybe(None, 1, 4, 7, 0)
waves = arrays(special=False, dtypes=["float32", "complex64", "int32", "bool"])
add("numpy.fft", "fft ifft rfft irfft hfft ihfft",
    call(one(waves), n=lengths, axis=any_axis, norm=maybe(None, "ortho", "forward", "bad")))  # fmt: skip
add("numpy.fft", "fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn",
    call(one(waves), norm=maybe("ortho", "forward")))  # fmt: skip
add("numpy.fft", "fftn ifftn rfftn irfftn", call(
    one(waves), s=maybe(None, (3,), (2, 5)), axes=maybe(None, (0,), (-1, 0), (1, 1), (0, 1))))  # fmt: skip
add("numpy.fft", "fftshift ifftshift", call(one(x), axes=any_axes))
add("numpy.fft", "fftfreq rfftfreq", call(one(st.integers(1, 6)), d=maybe(0.5, 2)))
SHAPES = [((5,), (3,)), ((4, 4), (2, 3)), ((2,), (6,)), ((1,), (1,)), ((3, 1), (1, 4))]
WIDE = ["float32", "complex64", "int32", "uint8"]
modes = maybe("full", "same", "valid")


def both(shapes):
    return st.sampled_from(shapes).flatmap(
        lambda s: st.tuples(*(arrays(n, WIDE, special=False) for n in s))
    )


add("scipy.signal", "convolve correlate fftconvolve", call(both(SHAPES), mode=modes))
add("scipy.signal", "convolve2d correlate2d",
    call(both([((4, 4), (2, 3)), ((5, 2), (1, 1))]), mode=modes))  # fmt: skip
add("scipy.signal", "detrend", call(
    one(arrays(st.sampled_from([(8,), (3, 8)]), ["float32"], special=False)),
    type=maybe("constant", "linear"), axis=maybe(-1)))  # fmt: skip

# ---- special functions and distributions -------------------------------------------------------
SCALE = [*FLOATS, "int32"]
add("scipy.special", """dawsn digamma entr erf erfc erfcx erfinv exp1 expi expit fresnel gamma gammaln
    gammasgn i0 i0e i1 i1e log_ndtr logit ndtr ndtri sici spence wofz factorial loggamma""",
    call(one(arrays(dtypes=[*SCALE, "bool"]))))  # fmt: skip
add("scipy.special", """beta betaln boxcox boxcox1p gammainc gammaincc kl_div poch polygamma rel_entr
    xlog1py xlogy zeta owens_t comb""", call(broadcasting(dtypes=SCALE)))  # fmt: skip
inside = broadcasting(3, ["float32"], equal=True, special=False).map(
    lambda a: (np.abs(a[0]) + 0.5, np.abs(a[1]) + 0.5, np.abs(a[2]) / 20)
)
add("scipy.special", "betainc", call(inside))
add("lax", "betainc", call(inside))
add("scipy.special", "softmax log_softmax", call(one(x), axis=any_axes))
add("scipy.special", "logsumexp",
    call(one(x), axis=any_axes, keepdims=maybe(True), return_sign=maybe(True)))  # fmt: skip
large = arrays(dtypes=["float32", "int32"]).map(lambda a: np.abs(a) + a.dtype.type(4))
add("scipy.special", "multigammaln", call(st.tuples(large, st.integers(1, 4))))
add("scipy.special", "bernoulli", call(one(st.integers(0, 12))))
add("scipy.stats", "rankdata", call(
    one(arrays(special=False)), axis=any_axis, method=maybe("min", "max", "dense", "ordinal")))  # fmt: skip
add("scipy.stats", "sem", call(one(arrays(special=False)), axis=any_axis, keepdims=maybe(True)))
_PARAMETERS = {
    "bernoulli": 1, "beta": 2, "binom": 2, "cauchy": 0, "chi2": 1, "expon": 0, "gamma": 1,
    "gennorm": 1, "geom": 1, "gumbel_l": 0, "gumbel_r": 0, "laplace": 0, "logistic": 0, "nbinom": 2,
    "norm": 0, "pareto": 1, "poisson": 1, "t": 1, "truncnorm": 2, "uniform": 0, "vonmises": 1,
    "wrapcauchy": 1, "betabinom": 3,
}  # fmt: skip
_FUNCTIONS = "pdf logpdf pmf logpmf cdf logcdf sf logsf ppf isf".split()


def add_densities(stats: Any) -> None:
    """The functions of the distributions that `stats` has: of a sample and as many parameters."""
    for name, count in _PARAMETERS.items():
        module = getattr(stats, name)
        scaled = hasattr(module, "pdf") and name not in ("vonmises", "wrapcauchy", "gennorm")
        options = {"loc": maybe(1, 0.5), **({"scale": maybe(2.0, 0.5)} if scaled else {})}
        for f in _FUNCTIONS:
            if hasattr(module, f):
                drawn = broadcasting(count + 1, ["float32", "int32"], special=False)
                CALLS[f"scipy.stats.{name}.{f}"] = call(drawn, **options)
