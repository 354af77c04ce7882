"""NumPy's functions on lamina's arrays, with JAX's semantics where the two differ.

Results are immutable arrays; dtypes are promoted by lamina's lattice (Python scalars are weak);
what NumPy does in place is `x.at[index].set(y)`. Files follow the chapters of NumPy's reference.
"""

# ruff: noqa: F401
import importlib as _importlib

from lamina.array import Array as _Array
from lamina.array import from_dlpack
from lamina.core.trace import Tracer as _Tracer
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
    arange,
    array,
    asarray,
    copy,
    diag,
    diag_indices,
    diagflat,
    diagonal,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    identity,
    indices,
    linspace,
    logspace,
    meshgrid,
    ones,
    ones_like,
    tri,
    tril,
    tril_indices,
    triu,
    triu_indices,
    zeros,
    zeros_like,
)  # fmt: skip
from lamina.numpy.cumulative import (
    cumprod,
    cumsum,
    cumulative_prod,
    cumulative_sum,
    diff,
    ediff1d,
    nancumprod,
    nancumsum,
    trapezoid,
)  # fmt: skip
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
    float8_e3m4,
    float8_e4m3,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float16,
    float32,
    float64,
    float_,
    floating,
    generic,
    inexact,
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
    argpartition,
    argsort,
    lexsort,
    median,
    nanmedian,
    nanpercentile,
    nanquantile,
    partition,
    percentile,
    quantile,
    sort,
)  # fmt: skip
from lamina.numpy.statistics import (
    bincount,
    convolve,
    corrcoef,
    correlate,
    cov,
    histogram,
    histogram_bin_edges,
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

bool = bool_


class _ArrayMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:  # type: ignore[valid-type]
        return isinstance(instance, (_Array, _Tracer))


class ndarray(metaclass=_ArrayMeta):
    """The type of arrays for isinstance, tracers included. Arrays are made by functions."""

    def __new__(cls, *args: object, **kwargs: object) -> "ndarray":
        raise TypeError("lamina.numpy.ndarray() should not be instantiated explicitly. Use "
                        "lamina.numpy.array, or lamina.numpy.zeros instead.")  # fmt: skip


# Loaded when first named.
_MODULES = frozenset({"fft", "linalg"})


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return _importlib.import_module(f"lamina.numpy.{name}")
    raise AttributeError(f"module 'lamina.numpy' has no attribute {name!r}")
