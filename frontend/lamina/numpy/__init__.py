"""NumPy's functions on lamina's arrays, with JAX's semantics where the two differ.

Results are immutable arrays; dtypes are promoted by lamina's lattice (Python scalars are weak);
what NumPy does in place is `x.at[index].set(y)`. Files follow the chapters of NumPy's reference.
"""

# ruff: noqa: F401
import typing as _typing

from lamina.array import from_dlpack as from_dlpack
from lamina.core.array_class import Array as _Array
from lamina.core.lazy_names import lazy_names as _lazy_names
from lamina.numpy.arithmetic import abs as abs
from lamina.numpy.arithmetic import absolute as absolute
from lamina.numpy.arithmetic import add as add
from lamina.numpy.arithmetic import cbrt as cbrt
from lamina.numpy.arithmetic import conj as conj
from lamina.numpy.arithmetic import conjugate as conjugate
from lamina.numpy.arithmetic import copysign as copysign
from lamina.numpy.arithmetic import divide as divide
from lamina.numpy.arithmetic import divmod as divmod
from lamina.numpy.arithmetic import fabs as fabs
from lamina.numpy.arithmetic import float_power as float_power
from lamina.numpy.arithmetic import floor_divide as floor_divide
from lamina.numpy.arithmetic import fmod as fmod
from lamina.numpy.arithmetic import gcd as gcd
from lamina.numpy.arithmetic import heaviside as heaviside
from lamina.numpy.arithmetic import imag as imag
from lamina.numpy.arithmetic import lcm as lcm
from lamina.numpy.arithmetic import mod as mod
from lamina.numpy.arithmetic import multiply as multiply
from lamina.numpy.arithmetic import negative as negative
from lamina.numpy.arithmetic import nextafter as nextafter
from lamina.numpy.arithmetic import positive as positive
from lamina.numpy.arithmetic import pow as pow
from lamina.numpy.arithmetic import power as power
from lamina.numpy.arithmetic import real as real
from lamina.numpy.arithmetic import reciprocal as reciprocal
from lamina.numpy.arithmetic import remainder as remainder
from lamina.numpy.arithmetic import sign as sign
from lamina.numpy.arithmetic import sqrt as sqrt
from lamina.numpy.arithmetic import square as square
from lamina.numpy.arithmetic import subtract as subtract
from lamina.numpy.arithmetic import true_divide as true_divide
from lamina.numpy.averages import average as average
from lamina.numpy.averages import mean as mean
from lamina.numpy.averages import std as std
from lamina.numpy.averages import var as var
from lamina.numpy.constants import e as e
from lamina.numpy.constants import euler_gamma as euler_gamma
from lamina.numpy.constants import inf as inf
from lamina.numpy.constants import nan as nan
from lamina.numpy.constants import newaxis as newaxis
from lamina.numpy.constants import pi as pi
from lamina.numpy.creation import array as array
from lamina.numpy.creation import asarray as asarray
from lamina.numpy.creation import copy as copy
from lamina.numpy.creation import empty as empty
from lamina.numpy.creation import empty_like as empty_like
from lamina.numpy.creation import full as full
from lamina.numpy.creation import full_like as full_like
from lamina.numpy.creation import ones as ones
from lamina.numpy.creation import ones_like as ones_like
from lamina.numpy.creation import zeros as zeros
from lamina.numpy.creation import zeros_like as zeros_like
from lamina.numpy.cumulative import accumulated_logaddexp as _accumulated_logaddexp
from lamina.numpy.cumulative import accumulated_maximum as _accumulated_maximum
from lamina.numpy.cumulative import accumulated_minimum as _accumulated_minimum
from lamina.numpy.cumulative import cumprod as cumprod
from lamina.numpy.cumulative import cumsum as cumsum
from lamina.numpy.cumulative import cumulative_prod as cumulative_prod
from lamina.numpy.cumulative import cumulative_sum as cumulative_sum
from lamina.numpy.cumulative import nancumprod as nancumprod
from lamina.numpy.cumulative import nancumsum as nancumsum
from lamina.numpy.exponents import acos as acos
from lamina.numpy.exponents import acosh as acosh
from lamina.numpy.exponents import angle as angle
from lamina.numpy.exponents import arccos as arccos
from lamina.numpy.exponents import arccosh as arccosh
from lamina.numpy.exponents import arcsin as arcsin
from lamina.numpy.exponents import arcsinh as arcsinh
from lamina.numpy.exponents import arctan as arctan
from lamina.numpy.exponents import arctan2 as arctan2
from lamina.numpy.exponents import arctanh as arctanh
from lamina.numpy.exponents import asin as asin
from lamina.numpy.exponents import asinh as asinh
from lamina.numpy.exponents import atan as atan
from lamina.numpy.exponents import atan2 as atan2
from lamina.numpy.exponents import atanh as atanh
from lamina.numpy.exponents import cos as cos
from lamina.numpy.exponents import cosh as cosh
from lamina.numpy.exponents import deg2rad as deg2rad
from lamina.numpy.exponents import degrees as degrees
from lamina.numpy.exponents import exp as exp
from lamina.numpy.exponents import exp2 as exp2
from lamina.numpy.exponents import expm1 as expm1
from lamina.numpy.exponents import hypot as hypot
from lamina.numpy.exponents import i0 as i0
from lamina.numpy.exponents import log as log
from lamina.numpy.exponents import log1p as log1p
from lamina.numpy.exponents import log2 as log2
from lamina.numpy.exponents import log10 as log10
from lamina.numpy.exponents import logaddexp as logaddexp
from lamina.numpy.exponents import logaddexp2 as logaddexp2
from lamina.numpy.exponents import rad2deg as rad2deg
from lamina.numpy.exponents import radians as radians
from lamina.numpy.exponents import sin as sin
from lamina.numpy.exponents import sinc as sinc
from lamina.numpy.exponents import sinh as sinh
from lamina.numpy.exponents import tan as tan
from lamina.numpy.exponents import tanh as tanh
from lamina.numpy.extrema import clip as clip
from lamina.numpy.extrema import fmax as fmax
from lamina.numpy.extrema import fmin as fmin
from lamina.numpy.extrema import maximum as maximum
from lamina.numpy.extrema import minimum as minimum
from lamina.numpy.indexing import take as take
from lamina.numpy.indexing import take_along_axis as take_along_axis
from lamina.numpy.joining import append as append
from lamina.numpy.joining import array_split as array_split
from lamina.numpy.joining import block as block
from lamina.numpy.joining import column_stack as column_stack
from lamina.numpy.joining import concat as concat
from lamina.numpy.joining import concatenate as concatenate
from lamina.numpy.joining import dsplit as dsplit
from lamina.numpy.joining import dstack as dstack
from lamina.numpy.joining import hsplit as hsplit
from lamina.numpy.joining import hstack as hstack
from lamina.numpy.joining import split as split
from lamina.numpy.joining import stack as stack
from lamina.numpy.joining import unstack as unstack
from lamina.numpy.joining import vsplit as vsplit
from lamina.numpy.joining import vstack as vstack
from lamina.numpy.logic import allclose as allclose
from lamina.numpy.logic import array_equal as array_equal
from lamina.numpy.logic import array_equiv as array_equiv
from lamina.numpy.logic import bitwise_and as bitwise_and
from lamina.numpy.logic import bitwise_count as bitwise_count
from lamina.numpy.logic import bitwise_invert as bitwise_invert
from lamina.numpy.logic import bitwise_left_shift as bitwise_left_shift
from lamina.numpy.logic import bitwise_not as bitwise_not
from lamina.numpy.logic import bitwise_or as bitwise_or
from lamina.numpy.logic import bitwise_right_shift as bitwise_right_shift
from lamina.numpy.logic import bitwise_xor as bitwise_xor
from lamina.numpy.logic import equal as equal
from lamina.numpy.logic import greater as greater
from lamina.numpy.logic import greater_equal as greater_equal
from lamina.numpy.logic import invert as invert
from lamina.numpy.logic import isclose as isclose
from lamina.numpy.logic import left_shift as left_shift
from lamina.numpy.logic import less as less
from lamina.numpy.logic import less_equal as less_equal
from lamina.numpy.logic import logical_and as logical_and
from lamina.numpy.logic import logical_not as logical_not
from lamina.numpy.logic import logical_or as logical_or
from lamina.numpy.logic import logical_xor as logical_xor
from lamina.numpy.logic import not_equal as not_equal
from lamina.numpy.logic import right_shift as right_shift
from lamina.numpy.manipulation import atleast_1d as atleast_1d
from lamina.numpy.manipulation import atleast_2d as atleast_2d
from lamina.numpy.manipulation import atleast_3d as atleast_3d
from lamina.numpy.manipulation import broadcast_arrays as broadcast_arrays
from lamina.numpy.manipulation import broadcast_shapes as broadcast_shapes
from lamina.numpy.manipulation import broadcast_to as broadcast_to
from lamina.numpy.manipulation import expand_dims as expand_dims
from lamina.numpy.manipulation import matrix_transpose as matrix_transpose
from lamina.numpy.manipulation import moveaxis as moveaxis
from lamina.numpy.manipulation import permute_dims as permute_dims
from lamina.numpy.manipulation import ravel as ravel
from lamina.numpy.manipulation import reshape as reshape
from lamina.numpy.manipulation import rollaxis as rollaxis
from lamina.numpy.manipulation import squeeze as squeeze
from lamina.numpy.manipulation import swapaxes as swapaxes
from lamina.numpy.manipulation import transpose as transpose
from lamina.numpy.partial_sorting import argpartition as argpartition
from lamina.numpy.partial_sorting import partition as partition
from lamina.numpy.partial_sorting import top_k as top_k
from lamina.numpy.products import cross as cross
from lamina.numpy.products import dot as dot
from lamina.numpy.products import inner as inner
from lamina.numpy.products import kron as kron
from lamina.numpy.products import matmul as matmul
from lamina.numpy.products import matvec as matvec
from lamina.numpy.products import outer as outer
from lamina.numpy.products import tensordot as tensordot
from lamina.numpy.products import trace as trace
from lamina.numpy.products import vdot as vdot
from lamina.numpy.products import vecdot as vecdot
from lamina.numpy.products import vecmat as vecmat
from lamina.numpy.ranges import arange as arange
from lamina.numpy.ranges import geomspace as geomspace
from lamina.numpy.ranges import linspace as linspace
from lamina.numpy.ranges import logspace as logspace
from lamina.numpy.rearranging import flip as flip
from lamina.numpy.rearranging import fliplr as fliplr
from lamina.numpy.rearranging import flipud as flipud
from lamina.numpy.rearranging import repeat as repeat
from lamina.numpy.rearranging import roll as roll
from lamina.numpy.rearranging import rot90 as rot90
from lamina.numpy.rearranging import tile as tile
from lamina.numpy.reductions import all as all
from lamina.numpy.reductions import amax as amax
from lamina.numpy.reductions import amin as amin
from lamina.numpy.reductions import any as any
from lamina.numpy.reductions import argmax as argmax
from lamina.numpy.reductions import argmin as argmin
from lamina.numpy.reductions import count_nonzero as count_nonzero
from lamina.numpy.reductions import max as max
from lamina.numpy.reductions import min as min
from lamina.numpy.reductions import minmax as minmax
from lamina.numpy.reductions import prod as prod
from lamina.numpy.reductions import ptp as ptp
from lamina.numpy.reductions import sum as sum
from lamina.numpy.rounding import around as around
from lamina.numpy.rounding import ceil as ceil
from lamina.numpy.rounding import fix as fix
from lamina.numpy.rounding import floor as floor
from lamina.numpy.rounding import rint as rint
from lamina.numpy.rounding import round as round
from lamina.numpy.rounding import trunc as trunc
from lamina.numpy.scalar_types import bfloat16 as bfloat16
from lamina.numpy.scalar_types import bool_ as bool_
from lamina.numpy.scalar_types import cdouble as cdouble
from lamina.numpy.scalar_types import character as character
from lamina.numpy.scalar_types import complex64 as complex64
from lamina.numpy.scalar_types import complex128 as complex128
from lamina.numpy.scalar_types import complex_ as complex_
from lamina.numpy.scalar_types import complexfloating as complexfloating
from lamina.numpy.scalar_types import csingle as csingle
from lamina.numpy.scalar_types import double as double
from lamina.numpy.scalar_types import flexible as flexible
from lamina.numpy.scalar_types import float4_e2m1fn as float4_e2m1fn
from lamina.numpy.scalar_types import float6_e2m3fn as float6_e2m3fn
from lamina.numpy.scalar_types import float6_e3m2fn as float6_e3m2fn
from lamina.numpy.scalar_types import float8_e3m4 as float8_e3m4
from lamina.numpy.scalar_types import float8_e4m3 as float8_e4m3
from lamina.numpy.scalar_types import float8_e4m3b11fnuz as float8_e4m3b11fnuz
from lamina.numpy.scalar_types import float8_e4m3fn as float8_e4m3fn
from lamina.numpy.scalar_types import float8_e4m3fnuz as float8_e4m3fnuz
from lamina.numpy.scalar_types import float8_e5m2 as float8_e5m2
from lamina.numpy.scalar_types import float8_e5m2fnuz as float8_e5m2fnuz
from lamina.numpy.scalar_types import float8_e8m0fnu as float8_e8m0fnu
from lamina.numpy.scalar_types import float16 as float16
from lamina.numpy.scalar_types import float32 as float32
from lamina.numpy.scalar_types import float64 as float64
from lamina.numpy.scalar_types import float_ as float_
from lamina.numpy.scalar_types import floating as floating
from lamina.numpy.scalar_types import generic as generic
from lamina.numpy.scalar_types import inexact as inexact
from lamina.numpy.scalar_types import int1 as int1
from lamina.numpy.scalar_types import int2 as int2
from lamina.numpy.scalar_types import int4 as int4
from lamina.numpy.scalar_types import int8 as int8
from lamina.numpy.scalar_types import int16 as int16
from lamina.numpy.scalar_types import int32 as int32
from lamina.numpy.scalar_types import int64 as int64
from lamina.numpy.scalar_types import int_ as int_
from lamina.numpy.scalar_types import integer as integer
from lamina.numpy.scalar_types import number as number
from lamina.numpy.scalar_types import object_ as object_
from lamina.numpy.scalar_types import signedinteger as signedinteger
from lamina.numpy.scalar_types import single as single
from lamina.numpy.scalar_types import uint as uint
from lamina.numpy.scalar_types import uint1 as uint1
from lamina.numpy.scalar_types import uint2 as uint2
from lamina.numpy.scalar_types import uint4 as uint4
from lamina.numpy.scalar_types import uint8 as uint8
from lamina.numpy.scalar_types import uint16 as uint16
from lamina.numpy.scalar_types import uint32 as uint32
from lamina.numpy.scalar_types import uint64 as uint64
from lamina.numpy.scalar_types import unsignedinteger as unsignedinteger
from lamina.numpy.searching import argwhere as argwhere
from lamina.numpy.searching import digitize as digitize
from lamina.numpy.searching import extract as extract
from lamina.numpy.searching import flatnonzero as flatnonzero
from lamina.numpy.searching import interp as interp
from lamina.numpy.searching import nonzero as nonzero
from lamina.numpy.searching import ravel_multi_index as ravel_multi_index
from lamina.numpy.searching import searchsorted as searchsorted
from lamina.numpy.searching import unravel_index as unravel_index
from lamina.numpy.selection import choose as choose
from lamina.numpy.selection import select as select
from lamina.numpy.selection import where as where
from lamina.numpy.sorting import argsort as argsort
from lamina.numpy.sorting import lexsort as lexsort
from lamina.numpy.sorting import sort as sort
from lamina.numpy.sorting import sort_complex as sort_complex
from lamina.numpy.type_functions import astype as astype
from lamina.numpy.type_functions import can_cast as can_cast
from lamina.numpy.type_functions import dtype as dtype
from lamina.numpy.type_functions import finfo as finfo
from lamina.numpy.type_functions import iinfo as iinfo
from lamina.numpy.type_functions import iscomplexobj as iscomplexobj
from lamina.numpy.type_functions import isdtype as isdtype
from lamina.numpy.type_functions import isrealobj as isrealobj
from lamina.numpy.type_functions import isscalar as isscalar
from lamina.numpy.type_functions import issubdtype as issubdtype
from lamina.numpy.type_functions import iterable as iterable
from lamina.numpy.type_functions import ndim as ndim
from lamina.numpy.type_functions import promote_types as promote_types
from lamina.numpy.type_functions import result_type as result_type
from lamina.numpy.type_functions import shape as shape
from lamina.numpy.type_functions import size as size
from lamina.numpy.ufuncs import frompyfunc as frompyfunc
from lamina.numpy.ufuncs import named as _named
from lamina.numpy.ufuncs import ufunc as ufunc

ndarray = _Array
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

if _typing.TYPE_CHECKING:
    from numpy import array_repr as array_repr
    from numpy import array_str as array_str
    from numpy import get_printoptions as get_printoptions
    from numpy import printoptions as printoptions
    from numpy import save as save
    from numpy import savez as savez
    from numpy import set_printoptions as set_printoptions
    from numpy.exceptions import ComplexWarning as ComplexWarning

    from lamina.numpy import fft as fft
    from lamina.numpy import linalg as linalg
    from lamina.numpy.array_api import (
        __array_api_version__,
        __array_namespace_info__,
    )  # fmt: skip
    from lamina.numpy.bit_packing import packbits as packbits
    from lamina.numpy.bit_packing import unpackbits as unpackbits
    from lamina.numpy.classification import iscomplex as iscomplex
    from lamina.numpy.classification import isfinite as isfinite
    from lamina.numpy.classification import isinf as isinf
    from lamina.numpy.classification import isnan as isnan
    from lamina.numpy.classification import isneginf as isneginf
    from lamina.numpy.classification import isposinf as isposinf
    from lamina.numpy.classification import isreal as isreal
    from lamina.numpy.classification import nan_to_num as nan_to_num
    from lamina.numpy.classification import signbit as signbit
    from lamina.numpy.diagonals import diag as diag
    from lamina.numpy.diagonals import diag_indices as diag_indices
    from lamina.numpy.diagonals import diagflat as diagflat
    from lamina.numpy.diagonals import diagonal as diagonal
    from lamina.numpy.diagonals import eye as eye
    from lamina.numpy.diagonals import identity as identity
    from lamina.numpy.diagonals import tri as tri
    from lamina.numpy.diagonals import tril as tril
    from lamina.numpy.diagonals import tril_indices as tril_indices
    from lamina.numpy.diagonals import triu as triu
    from lamina.numpy.diagonals import triu_indices as triu_indices
    from lamina.numpy.differences import diff as diff
    from lamina.numpy.differences import ediff1d as ediff1d
    from lamina.numpy.differences import gradient as gradient
    from lamina.numpy.differences import trapezoid as trapezoid
    from lamina.numpy.differences import unwrap as unwrap
    from lamina.numpy.editing import compress as compress
    from lamina.numpy.editing import delete as delete
    from lamina.numpy.editing import diag_indices_from as diag_indices_from
    from lamina.numpy.editing import insert as insert
    from lamina.numpy.editing import mask_indices as mask_indices
    from lamina.numpy.editing import resize as resize
    from lamina.numpy.editing import tril_indices_from as tril_indices_from
    from lamina.numpy.editing import trim_zeros as trim_zeros
    from lamina.numpy.editing import triu_indices_from as triu_indices_from
    from lamina.numpy.einsums import einsum as einsum
    from lamina.numpy.einsums import einsum_path as einsum_path
    from lamina.numpy.float_parts import frexp as frexp
    from lamina.numpy.float_parts import ldexp as ldexp
    from lamina.numpy.float_parts import modf as modf
    from lamina.numpy.float_parts import spacing as spacing
    from lamina.numpy.functional import apply_along_axis as apply_along_axis
    from lamina.numpy.functional import apply_over_axes as apply_over_axes
    from lamina.numpy.functional import piecewise as piecewise
    from lamina.numpy.functional import vectorize as vectorize
    from lamina.numpy.grids import c_ as c_
    from lamina.numpy.grids import index_exp as index_exp
    from lamina.numpy.grids import indices as indices
    from lamina.numpy.grids import ix_ as ix_
    from lamina.numpy.grids import meshgrid as meshgrid
    from lamina.numpy.grids import mgrid as mgrid
    from lamina.numpy.grids import ogrid as ogrid
    from lamina.numpy.grids import r_ as r_
    from lamina.numpy.grids import s_ as s_
    from lamina.numpy.histograms import histogram as histogram
    from lamina.numpy.histograms import histogram2d as histogram2d
    from lamina.numpy.histograms import histogram_bin_edges as histogram_bin_edges
    from lamina.numpy.histograms import histogramdd as histogramdd
    from lamina.numpy.nan_reductions import nanargmax as nanargmax
    from lamina.numpy.nan_reductions import nanargmin as nanargmin
    from lamina.numpy.nan_reductions import nanmax as nanmax
    from lamina.numpy.nan_reductions import nanmean as nanmean
    from lamina.numpy.nan_reductions import nanmin as nanmin
    from lamina.numpy.nan_reductions import nanprod as nanprod
    from lamina.numpy.nan_reductions import nanstd as nanstd
    from lamina.numpy.nan_reductions import nansum as nansum
    from lamina.numpy.nan_reductions import nanvar as nanvar
    from lamina.numpy.padding import pad as pad
    from lamina.numpy.polynomials import poly as poly
    from lamina.numpy.polynomials import polyadd as polyadd
    from lamina.numpy.polynomials import polyder as polyder
    from lamina.numpy.polynomials import polydiv as polydiv
    from lamina.numpy.polynomials import polyfit as polyfit
    from lamina.numpy.polynomials import polyint as polyint
    from lamina.numpy.polynomials import polymul as polymul
    from lamina.numpy.polynomials import polysub as polysub
    from lamina.numpy.polynomials import polyval as polyval
    from lamina.numpy.polynomials import roots as roots
    from lamina.numpy.polynomials import vander as vander
    from lamina.numpy.quantiles import median as median
    from lamina.numpy.quantiles import nanmedian as nanmedian
    from lamina.numpy.quantiles import nanpercentile as nanpercentile
    from lamina.numpy.quantiles import nanquantile as nanquantile
    from lamina.numpy.quantiles import percentile as percentile
    from lamina.numpy.quantiles import quantile as quantile
    from lamina.numpy.reading import frombuffer as frombuffer
    from lamina.numpy.reading import fromfile as fromfile
    from lamina.numpy.reading import fromfunction as fromfunction
    from lamina.numpy.reading import fromiter as fromiter
    from lamina.numpy.reading import fromstring as fromstring
    from lamina.numpy.reading import load as load
    from lamina.numpy.replacing import fill_diagonal as fill_diagonal
    from lamina.numpy.replacing import place as place
    from lamina.numpy.replacing import put as put
    from lamina.numpy.replacing import put_along_axis as put_along_axis
    from lamina.numpy.set_operations import intersect1d as intersect1d
    from lamina.numpy.set_operations import isin as isin
    from lamina.numpy.set_operations import setdiff1d as setdiff1d
    from lamina.numpy.set_operations import setxor1d as setxor1d
    from lamina.numpy.set_operations import union1d as union1d
    from lamina.numpy.set_operations import unique as unique
    from lamina.numpy.set_operations import unique_all as unique_all
    from lamina.numpy.set_operations import unique_counts as unique_counts
    from lamina.numpy.set_operations import unique_inverse as unique_inverse
    from lamina.numpy.set_operations import unique_values as unique_values
    from lamina.numpy.statistics import bincount as bincount
    from lamina.numpy.statistics import convolve as convolve
    from lamina.numpy.statistics import corrcoef as corrcoef
    from lamina.numpy.statistics import correlate as correlate
    from lamina.numpy.statistics import cov as cov
    from lamina.numpy.windows import bartlett as bartlett
    from lamina.numpy.windows import blackman as blackman
    from lamina.numpy.windows import hamming as hamming
    from lamina.numpy.windows import hanning as hanning
    from lamina.numpy.windows import kaiser as kaiser

# Chapters and functions that are loaded when they are first named.
_MODULES = frozenset({"fft", "linalg"})
_HOMES = {
    "lamina.numpy.array_api": ("__array_api_version__", "__array_namespace_info__"),
    "lamina.numpy.bit_packing": ("packbits", "unpackbits"),
    "lamina.numpy.classification": (
        "iscomplex", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal", "nan_to_num",
        "signbit"
    ),
    "lamina.numpy.diagonals": (
        "diag", "diag_indices", "diagflat", "diagonal", "eye", "identity", "tri", "tril",
        "tril_indices", "triu", "triu_indices"
    ),
    "lamina.numpy.differences": ("diff", "ediff1d", "gradient", "trapezoid", "unwrap"),
    "lamina.numpy.editing": (
        "compress", "delete", "diag_indices_from", "insert", "mask_indices", "resize",
        "tril_indices_from", "trim_zeros", "triu_indices_from"
    ),
    "lamina.numpy.einsums": ("einsum", "einsum_path"),
    "lamina.numpy.float_parts": ("frexp", "ldexp", "modf", "spacing"),
    "lamina.numpy.functional": ("apply_along_axis", "apply_over_axes", "piecewise", "vectorize"),
    "lamina.numpy.grids": (
        "c_", "index_exp", "indices", "ix_", "meshgrid", "mgrid", "ogrid", "r_", "s_"
    ),
    "lamina.numpy.histograms": ("histogram", "histogram2d", "histogram_bin_edges", "histogramdd"),
    "lamina.numpy.nan_reductions": (
        "nanargmax", "nanargmin", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum",
        "nanvar"
    ),
    "lamina.numpy.padding": ("pad",),
    "lamina.numpy.polynomials": (
        "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub",
        "polyval", "roots", "vander"
    ),
    "lamina.numpy.quantiles": (
        "median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"
    ),
    "lamina.numpy.reading": (
        "frombuffer", "fromfile", "fromfunction", "fromiter", "fromstring", "load"
    ),
    "lamina.numpy.replacing": ("fill_diagonal", "place", "put", "put_along_axis"),
    "lamina.numpy.set_operations": (
        "intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all",
        "unique_counts", "unique_inverse", "unique_values"
    ),
    "lamina.numpy.statistics": ("bincount", "convolve", "corrcoef", "correlate", "cov"),
    "lamina.numpy.windows": ("bartlett", "blackman", "hamming", "hanning", "kaiser"),
    "numpy": (
        "array_repr", "array_str", "get_printoptions", "printoptions", "save", "savez",
        "set_printoptions"
    ),
    "numpy.exceptions": ("ComplexWarning",),
}  # fmt: skip

if not _typing.TYPE_CHECKING:  # which knows the names
    __getattr__, __dir__ = _lazy_names(__name__, _MODULES, _HOMES)
