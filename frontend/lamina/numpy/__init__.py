"""NumPy's functions on lamina's arrays, with JAX's semantics where the two differ.

Results are immutable arrays; dtypes are promoted by lamina's lattice (Python scalars are weak);
what NumPy does in place is `x.at[index].set(y)`. Files follow the chapters of NumPy's reference.
"""

# ruff: noqa: F401
import importlib as _importlib

from lamina.array import from_dlpack
from lamina.core.array_class import Array as ndarray
from lamina.core.library import library as _library
from lamina.numpy.arithmetic import (
    abs,
    absolute,
    add,
    cbrt,
    clip,
    conj,
    conjugate,
    copysign,
    divide,
    divmod,
    fabs,
    float_power,
    floor_divide,
    fmax,
    fmin,
    fmod,
    gcd,
    heaviside,
    imag,
    lcm,
    maximum,
    minimum,
    mod,
    multiply,
    negative,
    nextafter,
    positive,
    pow,
    power,
    real,
    reciprocal,
    remainder,
    sign,
    sqrt,
    square,
    subtract,
    true_divide,
)  # fmt: skip
from lamina.numpy.classification import (
    iscomplex,
    isfinite,
    isinf,
    isnan,
    isneginf,
    isposinf,
    isreal,
    nan_to_num,
    signbit,
)  # fmt: skip
from lamina.numpy.constants import e, euler_gamma, inf, nan, newaxis, pi
from lamina.numpy.creation import (
    array,
    asarray,
    copy,
    empty,
    empty_like,
    full,
    full_like,
    ones,
    ones_like,
    zeros,
    zeros_like,
)  # fmt: skip
from lamina.numpy.cumulative import accumulated_logaddexp as _accumulated_logaddexp
from lamina.numpy.cumulative import accumulated_maximum as _accumulated_maximum
from lamina.numpy.cumulative import accumulated_minimum as _accumulated_minimum
from lamina.numpy.cumulative import (
    cumprod,
    cumsum,
    cumulative_prod,
    cumulative_sum,
    nancumprod,
    nancumsum,
)  # fmt: skip
from lamina.numpy.diagonals import (
    diag,
    diag_indices,
    diagflat,
    diagonal,
    eye,
    identity,
    tri,
    tril,
    tril_indices,
    triu,
    triu_indices,
)  # fmt: skip
from lamina.numpy.differences import diff, ediff1d, gradient, trapezoid, unwrap
from lamina.numpy.einsums import einsum, einsum_path
from lamina.numpy.exponents import (
    acos,
    acosh,
    angle,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    deg2rad,
    degrees,
    exp,
    exp2,
    expm1,
    hypot,
    i0,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logaddexp2,
    rad2deg,
    radians,
    sin,
    sinc,
    sinh,
    tan,
    tanh,
)  # fmt: skip
from lamina.numpy.functional import apply_along_axis, apply_over_axes, piecewise, vectorize
from lamina.numpy.indexing import take, take_along_axis
from lamina.numpy.joining import (
    append,
    array_split,
    block,
    column_stack,
    concat,
    concatenate,
    dsplit,
    dstack,
    hsplit,
    hstack,
    split,
    stack,
    unstack,
    vsplit,
    vstack,
)  # fmt: skip
from lamina.numpy.logic import (
    allclose,
    array_equal,
    array_equiv,
    bitwise_and,
    bitwise_count,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    equal,
    greater,
    greater_equal,
    invert,
    isclose,
    left_shift,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
    right_shift,
)  # fmt: skip
from lamina.numpy.manipulation import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    expand_dims,
    flip,
    fliplr,
    flipud,
    matrix_transpose,
    moveaxis,
    permute_dims,
    ravel,
    repeat,
    reshape,
    roll,
    rollaxis,
    rot90,
    squeeze,
    swapaxes,
    tile,
    transpose,
)  # fmt: skip
from lamina.numpy.nan_reductions import (
    nanargmax,
    nanargmin,
    nanmax,
    nanmean,
    nanmin,
    nanprod,
    nanstd,
    nansum,
    nanvar,
)  # fmt: skip
from lamina.numpy.padding import pad
from lamina.numpy.partial_sorting import argpartition, partition, top_k
from lamina.numpy.products import (
    cross,
    dot,
    inner,
    kron,
    matmul,
    matvec,
    outer,
    tensordot,
    trace,
    vdot,
    vecdot,
    vecmat,
)  # fmt: skip
from lamina.numpy.ranges import arange, geomspace, linspace, logspace
from lamina.numpy.reductions import (
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    average,
    count_nonzero,
    max,
    mean,
    min,
    minmax,
    prod,
    ptp,
    std,
    sum,
    var,
)  # fmt: skip
from lamina.numpy.rounding import around, ceil, fix, floor, rint, round, trunc
from lamina.numpy.scalar_types import (
    bfloat16,
    bool_,
    cdouble,
    character,
    complex64,
    complex128,
    complex_,
    complexfloating,
    csingle,
    double,
    flexible,
    float4_e2m1fn,
    float6_e2m3fn,
    float6_e3m2fn,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    float_,
    floating,
    generic,
    inexact,
    int1,
    int2,
    int4,
    int8,
    int16,
    int32,
    int64,
    int_,
    integer,
    number,
    object_,
    signedinteger,
    single,
    uint,
    uint1,
    uint2,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
    unsignedinteger,
)  # fmt: skip
from lamina.numpy.searching import (
    argwhere,
    digitize,
    extract,
    flatnonzero,
    interp,
    nonzero,
    ravel_multi_index,
    searchsorted,
    unravel_index,
)  # fmt: skip
from lamina.numpy.selection import choose, select, where
from lamina.numpy.set_operations import (
    intersect1d,
    isin,
    setdiff1d,
    setxor1d,
    union1d,
    unique,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
)  # fmt: skip
from lamina.numpy.sorting import (
    argsort,
    lexsort,
    median,
    nanmedian,
    nanpercentile,
    nanquantile,
    percentile,
    quantile,
    sort,
    sort_complex,
)  # fmt: skip
from lamina.numpy.statistics import (
    bincount,
    convolve,
    corrcoef,
    correlate,
    cov,
)  # fmt: skip
from lamina.numpy.type_functions import (
    astype,
    can_cast,
    dtype,
    finfo,
    iinfo,
    iscomplexobj,
    isdtype,
    isrealobj,
    isscalar,
    issubdtype,
    iterable,
    ndim,
    promote_types,
    result_type,
    shape,
    size,
)  # fmt: skip
from lamina.numpy.ufuncs import frompyfunc, ufunc
from lamina.numpy.ufuncs import named as _named

bool = bool_

# What NumPy's ufuncs have beside the call: reduce, accumulate, at, outer, reduceat. Operators and
# functions of this package use the plain functions.
add = _named(add, identity=0, reduce=sum, accumulate=cumsum, at="add")
multiply = _named(multiply, identity=1, reduce=prod, accumulate=cumprod, at="multiply")
subtract = _named(subtract, at="subtract")
negative = _named(negative, nin=1)
maximum = _named(maximum, reduce=max, accumulate=_accumulated_maximum, at="max")
minimum = _named(minimum, reduce=min, accumulate=_accumulated_minimum, at="min")
logical_and = _named(logical_and, identity=True, reduce=all)
logical_or = _named(logical_or, identity=False, reduce=any)
logical_xor = _named(logical_xor, identity=False)
bitwise_and = _named(bitwise_and, identity=-1)
bitwise_or = _named(bitwise_or, identity=0)
bitwise_xor = _named(bitwise_xor, identity=0)
logaddexp = _named(logaddexp, identity=-inf, accumulate=_accumulated_logaddexp)
logaddexp2 = _named(logaddexp2, identity=-inf)

# Parts and chapters that are loaded when one of their names is first used.
_MODULES = frozenset({"fft", "linalg"})
_LAZY = {
    "array_api": ("__array_api_version__", "__array_namespace_info__"),
    "bit_packing": ("packbits", "unpackbits"),
    "editing": ("compress", "delete", "diag_indices_from", "fill_diagonal", "insert",
                "mask_indices", "place", "put", "put_along_axis", "resize", "tril_indices_from",
                "trim_zeros", "triu_indices_from"),
    "float_parts": ("frexp", "ldexp", "modf", "spacing"),
    "grids": ("c_", "index_exp", "indices", "ix_", "meshgrid", "mgrid", "ogrid", "r_", "s_"),
    "histograms": ("histogram", "histogram2d", "histogram_bin_edges", "histogramdd"),
    "polynomials": ("poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul",
                    "polysub", "polyval", "roots", "vander"),
    "reading": ("frombuffer", "fromfile", "fromfunction", "fromiter", "fromstring", "load"),
    "windows": ("bartlett", "blackman", "hamming", "hanning", "kaiser"),
}  # fmt: skip
_HOME = {name: module for module, names in _LAZY.items() for name in names}
# NumPy's own, which take arrays as they are.
_NUMPYS = frozenset({
    "array_repr", "array_str", "get_printoptions", "printoptions", "save", "savez",
    "set_printoptions",
})  # fmt: skip


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return _importlib.import_module(f"lamina.numpy.{name}")
    if name in _HOME:
        value = getattr(_importlib.import_module(f"lamina.numpy.{_HOME[name]}"), name)
    elif name in _NUMPYS:
        value = getattr(_importlib.import_module("numpy"), name)
    elif name == "ComplexWarning":
        value = _importlib.import_module("numpy.exceptions").ComplexWarning
    else:
        raise AttributeError(f"module '{_library}.numpy' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_HOME, *_NUMPYS, "ComplexWarning"})
