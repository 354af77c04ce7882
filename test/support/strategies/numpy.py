"""Calls of numpy: elementwise functions, reductions, sorting."""

import numpy as np
from hypothesis import strategies as st

from support.strategies.arguments import (
    add,
    arrays,
    axes,
    axis,
    broadcasting,
    call,
    maybe,
    one,
    x,
    xf,
)

any_axis = st.one_of(st.just(...), axis)
any_axes = st.one_of(st.just(...), axes)


def no_scalar_kept(c):
    """JAX keeps an axis of a scalar that has none."""
    return np.ndim(c[0][0]) or not c[1].get("keepdims")


def no_negative_power(c):
    """Integers to negative powers are whatever a program makes of them."""
    (x, y), _ = c
    return not (x.dtype.kind in "iu" and y.dtype.kind == "i" and (y < 0).any())


add("numpy", """abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh argwhere
    asin asinh atan atanh atleast_1d atleast_2d atleast_3d bitwise_count bitwise_invert bitwise_not
    cbrt ceil conj conjugate copy cos cosh deg2rad degrees exp exp2 expm1 fabs flatnonzero fliplr
    flipud floor frexp i0 imag invert iscomplex iscomplexobj isfinite isinf isnan isneginf isposinf
    isreal isrealobj isscalar log log10 log1p log2 logical_not matrix_transpose modf nan_to_num ndim
    negative nonzero ones_like positive rad2deg radians ravel real reciprocal rint round sign signbit
    sin sinc sinh size shape sort_complex spacing sqrt square squeeze tan tanh transpose trunc
    zeros_like diag_indices_from tril_indices_from triu_indices_from array asarray around
    unique_values unique_counts unique_inverse unique_all permute_dims argsort""", call(one(x)))  # fmt: skip
add("numpy", """add arctan2 atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift
    bitwise_xor copysign divide divmod equal float_power floor_divide fmax fmin fmod gcd greater
    greater_equal heaviside hypot isclose allclose array_equal array_equiv lcm left_shift less
    less_equal logaddexp logaddexp2 logical_and logical_or logical_xor maximum minimum mod multiply
    nextafter not_equal remainder right_shift subtract true_divide broadcast_arrays dot
    matmul inner outer kron vdot append ldexp""", call(broadcasting()))  # fmt: skip
add("numpy", "pow power", call(broadcasting()).filter(no_negative_power))
add("numpy", "where", call(broadcasting(3)))
add("numpy", "extract", call(broadcasting(2, equal=True)))
add("numpy", "round around", call(one(x), decimals=maybe(0, 1, 2, -1)))
add("numpy", "nan_to_num", call(one(x), nan=maybe(1.0), posinf=maybe(7), neginf=maybe(-3)))
add("numpy", "clip", call(st.tuples(x, st.sampled_from([None, 0, -1.5, 2])),
                          max=st.sampled_from([None, 1, 2.5, -3])))  # fmt: skip
products = st.sampled_from([(3,), (4,), (2,), (4, 3), (3, 3), (0, 3), (3, 0)]).flatmap(
    lambda s: st.tuples(arrays(s), st.one_of(arrays(s), arrays((s[-1],))))
)
add("numpy", "cross tensordot vecdot matvec vecmat convolve correlate", call(products))
EINSUMS = [
    ("ij,jk", (2, 3), (3, 4)), ("ij->ji", (2, 3)), ("ii", (3, 3)), ("ii->i", (3, 3)),
    ("...i,...i", (2, 3), (3,)), ("i,j->ij", (2,), (0,)), ("ijk,kl->lij", (2, 3, 4), (4, 2)),
    ("a...b,b...c->a...c", (2, 3, 4), (4, 3, 5)), ("ij,ij->", (2, 3), (2, 3)), ("i->", (4,)),
    ("bij,bjk,bkl->bil", (2, 2, 2), (2, 2, 3), (2, 3, 1)), ("iij->j", (2, 2, 3)),
    ("ij,j", (2, 1), (3,)),
]  # fmt: skip
add("numpy", "einsum", call(
    st.sampled_from(EINSUMS).flatmap(lambda s: st.tuples(st.just(s[0]), *map(arrays, s[1:]))),
    preferred_element_type=maybe("float32"), optimize=maybe("greedy", True, False),
))  # fmt: skip

# ---- reductions --------------------------------------------------------------------------------
add("numpy", """sum prod mean max min amax amin any all count_nonzero var std nansum nanmax nanmin
    nanmean nanprod nanvar nanstd ptp median nanmedian""",
    call(one(x), axis=any_axes, keepdims=maybe(True, False)))  # fmt: skip
add("numpy", "sum prod", call(one(x), axis=any_axes, keepdims=maybe(True), initial=maybe(2),
                              dtype=maybe("float32", "int32", "int8", "bfloat16")))  # fmt: skip
# (jaxlib ends the process at an integer mean of nothing.)
add("numpy", "mean", call(one(x), axis=any_axes, dtype=maybe("float32", "int32")).filter(
    lambda c: c[0][0].size or c[1].get("dtype") != "int32"))  # fmt: skip
add("numpy", "var std", call(one(x), axis=any_axes, ddof=maybe(0, 1, 2, 0.5)))
add("numpy", "average", call(one(x), axis=any_axes, keepdims=maybe(True), returned=maybe(True)))
quantiles = st.sampled_from([0.3, 0.0, 1.0, np.float32([0.1, 0.9])])
add("numpy", "quantile nanquantile", call(
    st.tuples(x, quantiles), axis=any_axes, keepdims=maybe(True),
    method=maybe("lower", "higher", "nearest", "midpoint"),
).filter(no_scalar_kept))  # fmt: skip
add("numpy", "percentile nanpercentile", call(
    st.tuples(x, st.sampled_from([30.0, 0, 100, np.float32([10, 90])])), axis=any_axes,
    keepdims=maybe(True),
).filter(no_scalar_kept))  # fmt: skip
add("numpy", "argmax argmin nanargmax nanargmin",
    call(one(x), axis=st.one_of(st.none(), axis), keepdims=maybe(True)))  # fmt: skip
add("numpy", "cumsum cumprod nancumsum nancumprod",
    call(one(x), axis=any_axis, dtype=maybe("float32", "int32")))  # fmt: skip
add("numpy", "cumulative_sum cumulative_prod",
    call(one(x), axis=any_axis, include_initial=maybe(True)))  # fmt: skip
add("numpy", "diff", call(one(x), n=maybe(0, 1, 2, 5), axis=any_axis))
add("numpy", "ediff1d", call(one(x), to_begin=maybe(1), to_end=maybe(np.float32([1, 2]))))
add("numpy", "gradient", call(one(x), axis=any_axes))
add("numpy", "trapezoid", call(one(x), dx=maybe(0.5, 2), axis=any_axis))
add("numpy", "unwrap", call(one(xf), axis=any_axis, period=maybe(3.0)))
pairs = arrays(st.sampled_from([(4,), (3, 5), (1, 4), (2, 2)]), special=False)
add("numpy", "cov corrcoef", call(one(pairs), rowvar=maybe(False)))
add("numpy", "cov", call(one(pairs), bias=maybe(True), ddof=maybe(0, 1)))

# ---- sorting and searching ---------------------------------------------------------------------
add("numpy", "sort argsort",
    call(one(x), axis=st.one_of(st.none(), axis), descending=maybe(True)))  # fmt: skip
add("numpy", "partition argpartition", call(st.tuples(x, st.integers(-3, 4)), axis=any_axis))
add("numpy", "lexsort", call(one(st.lists(arrays((6,)), min_size=1, max_size=3))))
sorted_4 = arrays((4,), ["float32", "int32"], special=False).map(np.sort)
add("numpy", "searchsorted", call(st.tuples(sorted_4, x), side=maybe("left", "right"),
                                  method=maybe("scan", "sort", "compare_all")))  # fmt: skip
add("numpy", "digitize", call(st.tuples(x, sorted_4), right=maybe(True)))
add("numpy", "interp", call(
    st.tuples(xf, arrays((5,), ["float32"], special=False).map(np.sort), arrays((5,), ["float32"])),
    left=maybe(0.5), right=maybe(7), period=maybe(3.0),
))  # fmt: skip
add("numpy", "isin", call(st.tuples(x, x), invert=maybe(True), method=maybe("sort", "compare_all")))
add("numpy", "intersect1d union1d setdiff1d setxor1d", call(st.tuples(x, x)))
add("numpy", "unique", call(
    one(x), return_index=maybe(True), return_inverse=maybe(True), return_counts=maybe(True),
    axis=any_axis,
))  # fmt: skip
counted = arrays(st.sampled_from([(0,), (5,), (20,)]), ["int32", "uint8", "bool", "int8"])
add("numpy", "bincount", call(one(counted), minlength=maybe(0, 10), length=maybe(4)))
finite = arrays(special=False)
add("numpy", "histogram", call(one(finite), bins=maybe(3, 10), range=maybe((-2.1, 2.0)),
                               density=maybe(True)))  # fmt: skip
add("numpy", "histogram_bin_edges", call(one(finite), bins=maybe(3, 10), range=maybe((-2.0, 2.0))))
