"""Operations on arrays that transformations know, and the functions that apply them.

Names and meanings are JAX's `lax`. Nothing here promotes dtypes or broadcasts beyond scalars:
lamina.numpy does. Each family has a file of its own; a primitive named p is `p_p`.
"""

# ruff: noqa: F401, E402, I001
import typing as _typing

from lamina.core.lazy_names import lazy_names as _lazy_names
from lamina.lax.rounding import RoundingMethod as RoundingMethod
from lamina.lax.arithmetic import abs as abs
from lamina.lax.arithmetic import abs_p as abs_p
from lamina.lax.arithmetic import add as add
from lamina.lax.arithmetic import add_any as add_any
from lamina.lax.arithmetic import add_any_p as add_any_p
from lamina.lax.arithmetic import add_p as add_p
from lamina.lax.rounding import ceil as ceil
from lamina.lax.rounding import ceil_p as ceil_p
from lamina.lax.arithmetic import div as div
from lamina.lax.arithmetic import div_p as div_p
from lamina.lax.rounding import floor as floor
from lamina.lax.rounding import floor_p as floor_p
from lamina.lax.powers import integer_pow as integer_pow
from lamina.lax.powers import integer_pow_p as integer_pow_p
from lamina.lax.rounding import is_finite as is_finite
from lamina.lax.rounding import is_finite_p as is_finite_p
from lamina.lax.arithmetic import max as max
from lamina.lax.arithmetic import max_p as max_p
from lamina.lax.arithmetic import min as min
from lamina.lax.arithmetic import min_p as min_p
from lamina.lax.arithmetic import mul as mul
from lamina.lax.arithmetic import mul_p as mul_p
from lamina.lax.arithmetic import neg as neg
from lamina.lax.arithmetic import neg_p as neg_p
from lamina.lax.rounding import nextafter as nextafter
from lamina.lax.rounding import nextafter_p as nextafter_p
from lamina.lax.powers import pow as pow
from lamina.lax.powers import pow_p as pow_p
from lamina.lax.powers import reciprocal as reciprocal
from lamina.lax.arithmetic import rem as rem
from lamina.lax.arithmetic import rem_p as rem_p
from lamina.lax.rounding import round as round
from lamina.lax.rounding import round_p as round_p
from lamina.lax.rounding import sign as sign
from lamina.lax.rounding import sign_p as sign_p
from lamina.lax.powers import square as square
from lamina.lax.powers import square_p as square_p
from lamina.lax.arithmetic import sub as sub
from lamina.lax.arithmetic import sub_p as sub_p
from lamina.lax.bitwise import and_p as and_p
from lamina.lax.bitwise import bitwise_and as bitwise_and
from lamina.lax.bitwise import bitwise_not as bitwise_not
from lamina.lax.bitwise import bitwise_or as bitwise_or
from lamina.lax.bitwise import bitwise_xor as bitwise_xor
from lamina.lax.bitwise import clz as clz
from lamina.lax.bitwise import clz_p as clz_p
from lamina.lax.bitwise import not_p as not_p
from lamina.lax.bitwise import or_p as or_p
from lamina.lax.bitwise import population_count as population_count
from lamina.lax.bitwise import population_count_p as population_count_p
from lamina.lax.bitwise import shift_left as shift_left
from lamina.lax.bitwise import shift_left_p as shift_left_p
from lamina.lax.bitwise import shift_right_arithmetic as shift_right_arithmetic
from lamina.lax.bitwise import shift_right_arithmetic_p as shift_right_arithmetic_p
from lamina.lax.bitwise import shift_right_logical as shift_right_logical
from lamina.lax.bitwise import shift_right_logical_p as shift_right_logical_p
from lamina.lax.bitwise import xor_p as xor_p
from lamina.lax.compare import eq as eq
from lamina.lax.compare import eq_p as eq_p
from lamina.lax.compare import ge as ge
from lamina.lax.compare import ge_p as ge_p
from lamina.lax.compare import gt as gt
from lamina.lax.compare import gt_p as gt_p
from lamina.lax.compare import le as le
from lamina.lax.compare import le_p as le_p
from lamina.lax.compare import lt as lt
from lamina.lax.compare import lt_p as lt_p
from lamina.lax.compare import ne as ne
from lamina.lax.compare import ne_p as ne_p
from lamina.lax.complex import complex as complex
from lamina.lax.complex import complex_p as complex_p
from lamina.lax.complex import conj as conj
from lamina.lax.complex import conj_p as conj_p
from lamina.lax.complex import imag as imag
from lamina.lax.complex import imag_p as imag_p
from lamina.lax.complex import real as real
from lamina.lax.complex import real_p as real_p
from lamina.lax.convert import bitcast_convert_type as bitcast_convert_type
from lamina.lax.convert import bitcast_convert_type_p as bitcast_convert_type_p
from lamina.lax.convert import convert_element_type as convert_element_type
from lamina.lax.convert import convert_element_type_p as convert_element_type_p
from lamina.lax.convert import dtype as dtype
from lamina.lax.convert import reduce_precision as reduce_precision
from lamina.lax.convert import reduce_precision_p as reduce_precision_p
from lamina.lax.creation import broadcasted_iota as broadcasted_iota
from lamina.lax.creation import empty as empty
from lamina.lax.creation import full as full
from lamina.lax.creation import full_like as full_like
from lamina.lax.creation import iota as iota
from lamina.lax.creation import iota_p as iota_p
from lamina.lax.creation import zeros_like as zeros_like
from lamina.lax.cumulative import cummax as cummax
from lamina.lax.cumulative import cummax_p as cummax_p
from lamina.lax.cumulative import cummin as cummin
from lamina.lax.cumulative import cummin_p as cummin_p
from lamina.lax.cumulative import cumprod as cumprod
from lamina.lax.cumulative import cumprod_p as cumprod_p
from lamina.lax.cumulative import cumsum as cumsum
from lamina.lax.cumulative import cumsum_p as cumsum_p
from lamina.lax.dot_general import DotAlgorithm as DotAlgorithm
from lamina.lax.dot_general import DotAlgorithmPreset as DotAlgorithmPreset
from lamina.lax.dot_general import DotDimensionNumbers as DotDimensionNumbers
from lamina.lax.dot_general import Precision as Precision
from lamina.lax.dot_general import PrecisionLike as PrecisionLike
from lamina.lax.dot_general import batch_matmul as batch_matmul
from lamina.lax.dot_general import dot as dot
from lamina.lax.dot_general import dot_general as dot_general
from lamina.lax.dot_general import dot_general_p as dot_general_p
from lamina.lax.dynamic_slicing import dynamic_index_in_dim as dynamic_index_in_dim
from lamina.lax.dynamic_slicing import dynamic_slice as dynamic_slice
from lamina.lax.dynamic_slicing import dynamic_slice_in_dim as dynamic_slice_in_dim
from lamina.lax.dynamic_slicing import dynamic_slice_p as dynamic_slice_p
from lamina.lax.dynamic_slicing import dynamic_update_index_in_dim as dynamic_update_index_in_dim
from lamina.lax.dynamic_slicing import dynamic_update_slice as dynamic_update_slice
from lamina.lax.dynamic_slicing import dynamic_update_slice_in_dim as dynamic_update_slice_in_dim
from lamina.lax.dynamic_slicing import dynamic_update_slice_p as dynamic_update_slice_p
from lamina.lax.fft import FftType as FftType
from lamina.lax.fft import fft as fft
from lamina.lax.fft import fft_p as fft_p
from lamina.lax.gather import gather as gather
from lamina.lax.gather import gather_p as gather_p
from lamina.lax.gather import take_along_axis as take_along_axis
from lamina.lax.identity import after_all as after_all
from lamina.lax.identity import create_token as create_token
from lamina.lax.identity import dce_sink as dce_sink
from lamina.lax.identity import dce_sink_p as dce_sink_p
from lamina.lax.identity import optimization_barrier as optimization_barrier
from lamina.lax.identity import optimization_barrier_p as optimization_barrier_p
from lamina.lax.identity import stage as stage
from lamina.lax.identity import stop_gradient as stop_gradient
from lamina.lax.identity import stop_gradient_p as stop_gradient_p
from lamina.lax.indexing import GatherDimensionNumbers as GatherDimensionNumbers
from lamina.lax.indexing import GatherScatterMode as GatherScatterMode
from lamina.lax.indexing import ScatterDimensionNumbers as ScatterDimensionNumbers
from lamina.lax.joining import concatenate as concatenate
from lamina.lax.joining import concatenate_p as concatenate_p
from lamina.lax.joining import pad as pad
from lamina.lax.joining import pad_p as pad_p
from lamina.lax.joining import split as split
from lamina.lax.joining import split_p as split_p
from lamina.lax.exponentials import AccuracyMode as AccuracyMode
from lamina.lax.exponentials import Tolerance as Tolerance
from lamina.lax.exponentials import exp as exp
from lamina.lax.exponentials import exp2 as exp2
from lamina.lax.exponentials import exp2_p as exp2_p
from lamina.lax.exponentials import exp_p as exp_p
from lamina.lax.exponentials import expm1 as expm1
from lamina.lax.exponentials import expm1_p as expm1_p
from lamina.lax.exponentials import log as log
from lamina.lax.exponentials import log1p as log1p
from lamina.lax.exponentials import log1p_p as log1p_p
from lamina.lax.exponentials import log2 as log2
from lamina.lax.exponentials import log2_p as log2_p
from lamina.lax.exponentials import log_p as log_p
from lamina.lax.math import acos as acos
from lamina.lax.math import acos_p as acos_p
from lamina.lax.math import acosh as acosh
from lamina.lax.math import acosh_p as acosh_p
from lamina.lax.math import asin as asin
from lamina.lax.math import asin_p as asin_p
from lamina.lax.math import asinh as asinh
from lamina.lax.math import asinh_p as asinh_p
from lamina.lax.math import atan as atan
from lamina.lax.math import atan2 as atan2
from lamina.lax.math import atan2_p as atan2_p
from lamina.lax.math import atan_p as atan_p
from lamina.lax.math import atanh as atanh
from lamina.lax.math import atanh_p as atanh_p
from lamina.lax.math import cbrt as cbrt
from lamina.lax.math import cbrt_p as cbrt_p
from lamina.lax.math import cos as cos
from lamina.lax.math import cos_p as cos_p
from lamina.lax.math import cosh as cosh
from lamina.lax.math import cosh_p as cosh_p
from lamina.lax.gamma_and_erf import erf as erf
from lamina.lax.gamma_and_erf import erf_inv as erf_inv
from lamina.lax.gamma_and_erf import erf_inv_p as erf_inv_p
from lamina.lax.gamma_and_erf import erf_p as erf_p
from lamina.lax.gamma_and_erf import erfc as erfc
from lamina.lax.gamma_and_erf import erfc_p as erfc_p
from lamina.lax.gamma_and_erf import lgamma as lgamma
from lamina.lax.gamma_and_erf import lgamma_p as lgamma_p
from lamina.lax.math import logistic as logistic
from lamina.lax.math import logistic_p as logistic_p
from lamina.lax.gamma_and_erf import polygamma as polygamma
from lamina.lax.gamma_and_erf import polygamma_p as polygamma_p
from lamina.lax.math import rsqrt as rsqrt
from lamina.lax.math import rsqrt_p as rsqrt_p
from lamina.lax.math import sin as sin
from lamina.lax.math import sin_p as sin_p
from lamina.lax.math import sinh as sinh
from lamina.lax.math import sinh_p as sinh_p
from lamina.lax.math import sqrt as sqrt
from lamina.lax.math import sqrt_p as sqrt_p
from lamina.lax.math import tan as tan
from lamina.lax.math import tan_p as tan_p
from lamina.lax.math import tanh as tanh
from lamina.lax.math import tanh_p as tanh_p
from lamina.lax.gamma_and_erf import zeta as zeta
from lamina.lax.gamma_and_erf import zeta_p as zeta_p
from lamina.lax.polynomial import one_minus_square as one_minus_square
from lamina.lax.polynomial import one_minus_square_p as one_minus_square_p
from lamina.lax.polynomial import polynomial as polynomial
from lamina.lax.polynomial import polynomial_p as polynomial_p
from lamina.lax.random_keys import random_unwrap_p as random_unwrap_p
from lamina.lax.random_keys import random_wrap_p as random_wrap_p
from lamina.lax.rearranging import broadcast_like as broadcast_like
from lamina.lax.rearranging import index_take as index_take
from lamina.lax.rearranging import shape_as_value as shape_as_value
from lamina.lax.rearranging import stack as stack
from lamina.lax.rearranging import tile as tile
from lamina.lax.rearranging import unstack as unstack
from lamina.lax.reduce import argmax as argmax
from lamina.lax.reduce import argmax_p as argmax_p
from lamina.lax.reduce import argmin as argmin
from lamina.lax.reduce import argmin_p as argmin_p
from lamina.lax.reduce import reduce_and as reduce_and
from lamina.lax.reduce import reduce_and_p as reduce_and_p
from lamina.lax.reduce import reduce_max as reduce_max
from lamina.lax.reduce import reduce_max_p as reduce_max_p
from lamina.lax.reduce import reduce_min as reduce_min
from lamina.lax.reduce import reduce_min_p as reduce_min_p
from lamina.lax.reduce import reduce_or as reduce_or
from lamina.lax.reduce import reduce_or_p as reduce_or_p
from lamina.lax.reduce import reduce_prod as reduce_prod
from lamina.lax.reduce import reduce_prod_p as reduce_prod_p
from lamina.lax.reduce import reduce_sum as reduce_sum
from lamina.lax.reduce import reduce_sum_p as reduce_sum_p
from lamina.lax.reduce import reduce_xor as reduce_xor
from lamina.lax.reduce import reduce_xor_p as reduce_xor_p
from lamina.lax.scatter import scatter as scatter
from lamina.lax.scatter import scatter_add as scatter_add
from lamina.lax.scatter import scatter_add_p as scatter_add_p
from lamina.lax.scatter import scatter_apply as scatter_apply
from lamina.lax.scatter import scatter_max as scatter_max
from lamina.lax.scatter import scatter_max_p as scatter_max_p
from lamina.lax.scatter import scatter_min as scatter_min
from lamina.lax.scatter import scatter_min_p as scatter_min_p
from lamina.lax.scatter import scatter_mul as scatter_mul
from lamina.lax.scatter import scatter_mul_p as scatter_mul_p
from lamina.lax.scatter import scatter_p as scatter_p
from lamina.lax.scatter import scatter_sub as scatter_sub
from lamina.lax.select import clamp as clamp
from lamina.lax.select import clamp_p as clamp_p
from lamina.lax.select import select as select
from lamina.lax.select import select_n as select_n
from lamina.lax.select import select_n_p as select_n_p
from lamina.lax.shape import broadcast as broadcast
from lamina.lax.shape import broadcast_in_dim as broadcast_in_dim
from lamina.lax.shape import broadcast_in_dim_p as broadcast_in_dim_p
from lamina.lax.shape import broadcast_shapes as broadcast_shapes
from lamina.lax.shape import broadcast_to_rank as broadcast_to_rank
from lamina.lax.shape import collapse as collapse
from lamina.lax.shape import copy as copy
from lamina.lax.shape import copy_p as copy_p
from lamina.lax.shape import expand_dims as expand_dims
from lamina.lax.shape import reshape as reshape
from lamina.lax.shape import reshape_p as reshape_p
from lamina.lax.shape import rev as rev
from lamina.lax.shape import rev_p as rev_p
from lamina.lax.shape import squeeze as squeeze
from lamina.lax.shape import squeeze_p as squeeze_p
from lamina.lax.shape import transpose as transpose
from lamina.lax.shape import transpose_p as transpose_p
from lamina.lax.slicing import index_in_dim as index_in_dim
from lamina.lax.slicing import slice as slice
from lamina.lax.slicing import slice_in_dim as slice_in_dim
from lamina.lax.slicing import slice_p as slice_p
from lamina.lax.sort import sort as sort
from lamina.lax.sort import sort_key_val as sort_key_val
from lamina.lax.sort import sort_p as sort_p
from lamina.lax.top_k import approx_max_k as approx_max_k
from lamina.lax.top_k import approx_min_k as approx_min_k
from lamina.lax.top_k import top_k as top_k
from lamina.lax.top_k import top_k_p as top_k_p
from lamina.lax.windows import reduce_window_max_p as reduce_window_max_p
from lamina.lax.windows import reduce_window_min_p as reduce_window_min_p
from lamina.lax.windows import reduce_window_sum_p as reduce_window_sum_p
from lamina.lax.windows import window_argmax_p as window_argmax_p
from lamina.lax.windows import window_argmin_p as window_argmin_p

# ---- control flow (lamina.control_flow) ---------------------------------------------------------
from lamina.control_flow import associative_scan as associative_scan
from lamina.control_flow import composite as composite
from lamina.control_flow import cond as cond
from lamina.control_flow import cumlogsumexp as cumlogsumexp
from lamina.control_flow import cumlogsumexp_p as cumlogsumexp_p
from lamina.control_flow import custom_linear_solve as custom_linear_solve
from lamina.control_flow import custom_root as custom_root
from lamina.control_flow import fori_loop as fori_loop
from lamina.control_flow import map as map
from lamina.control_flow import platform_dependent as platform_dependent
from lamina.control_flow import reduce as reduce
from lamina.control_flow import reduce_p as reduce_p
from lamina.control_flow import reduce_window as reduce_window
from lamina.control_flow import reduce_window_p as reduce_window_p
from lamina.control_flow import scan as scan
from lamina.control_flow import switch as switch
from lamina.control_flow import while_loop as while_loop
from lamina.control_flow.cond import cond_p as cond_p
from lamina.control_flow.custom_linear_solve import linear_solve_p as linear_solve_p
from lamina.control_flow.scan_rules import scan_p as scan_p
from lamina.control_flow.while_rules import while_p as while_p

# ---- end of control flow ------------------------------------------------------------------------
if _typing.TYPE_CHECKING:
    from lamina.lax import linalg as linalg
    from lamina.lax.collective_exchanges import all_to_all as all_to_all
    from lamina.lax.collective_exchanges import all_to_all_p as all_to_all_p
    from lamina.lax.collective_exchanges import pswapaxes as pswapaxes
    from lamina.lax.collective_exchanges import ragged_all_to_all as ragged_all_to_all
    from lamina.lax.collective_gathers import all_gather as all_gather
    from lamina.lax.collective_gathers import all_gather_invariant_p as all_gather_invariant_p
    from lamina.lax.collective_gathers import all_gather_p as all_gather_p
    from lamina.lax.collective_gathers import all_gather_reduced_p as all_gather_reduced_p
    from lamina.lax.collective_gathers import psum_scatter as psum_scatter
    from lamina.lax.collective_gathers import psum_scatter_start as psum_scatter_start
    from lamina.lax.collective_gathers import reduce_scatter_p as reduce_scatter_p
    from lamina.lax.collective_gathers import unreduced_reduce_scatter_p as unreduced_reduce_scatter_p
    from lamina.lax.collective_permutes import axis_index as axis_index
    from lamina.lax.collective_permutes import axis_index_p as axis_index_p
    from lamina.lax.collective_permutes import axis_size as axis_size
    from lamina.lax.collective_permutes import pbroadcast as pbroadcast
    from lamina.lax.collective_permutes import ppermute as ppermute
    from lamina.lax.collective_permutes import ppermute_p as ppermute_p
    from lamina.lax.collective_permutes import pshuffle as pshuffle
    from lamina.lax.collective_sums import pcast as pcast
    from lamina.lax.collective_sums import pmax as pmax
    from lamina.lax.collective_sums import pmax_p as pmax_p
    from lamina.lax.collective_sums import pmean as pmean
    from lamina.lax.collective_sums import pmin as pmin
    from lamina.lax.collective_sums import pmin_p as pmin_p
    from lamina.lax.collective_sums import psum as psum
    from lamina.lax.collective_sums import psum_invariant_p as psum_invariant_p
    from lamina.lax.collective_sums import psum_p as psum_p
    from lamina.lax.collective_sums import pvary as pvary
    from lamina.lax.collective_sums import pvary_p as pvary_p
    from lamina.lax.conv_layouts import ConvDimensionNumbers as ConvDimensionNumbers
    from lamina.lax.conv_layouts import ConvGeneralDilatedDimensionNumbers as ConvGeneralDilatedDimensionNumbers
    from lamina.lax.conv_layouts import conv_dimension_numbers as conv_dimension_numbers
    from lamina.lax.conv_patches import conv_general_dilated_local as conv_general_dilated_local
    from lamina.lax.conv_patches import conv_general_dilated_patches as conv_general_dilated_patches
    from lamina.lax.convolution import conv as conv
    from lamina.lax.convolution import conv_general_dilated as conv_general_dilated
    from lamina.lax.convolution import conv_general_dilated_p as conv_general_dilated_p
    from lamina.lax.convolution import conv_transpose as conv_transpose
    from lamina.lax.convolution import conv_with_general_padding as conv_with_general_padding
    from lamina.lax.ragged import RaggedDotDimensionNumbers as RaggedDotDimensionNumbers
    from lamina.lax.ragged import ragged_dot as ragged_dot
    from lamina.lax.ragged import ragged_dot_general as ragged_dot_general
    from lamina.lax.ragged import scaled_dot as scaled_dot
    from lamina.lax.random_bits import philox2x32_p as philox2x32_p
    from lamina.lax.random_bits import philox4x32_p as philox4x32_p
    from lamina.lax.random_bits import threefry2x32 as threefry2x32
    from lamina.lax.random_bits import threefry2x32_p as threefry2x32_p
    from lamina.lax.random_bits import threefry4x32_p as threefry4x32_p
    from lamina.lax.random_bits import threefry_2x32 as threefry_2x32
    from lamina.lax.rng import RandomAlgorithm as RandomAlgorithm
    from lamina.lax.rng import rng_bit_generator as rng_bit_generator
    from lamina.lax.rng import rng_bit_generator_p as rng_bit_generator_p
    from lamina.lax.rng import rng_uniform as rng_uniform
    from lamina.lax.rng import rng_uniform_p as rng_uniform_p
    from lamina.lax.special.bessel import bessel_i0e as bessel_i0e
    from lamina.lax.special.bessel import bessel_i0e_p as bessel_i0e_p
    from lamina.lax.special.bessel import bessel_i1e as bessel_i1e
    from lamina.lax.special.bessel import bessel_i1e_p as bessel_i1e_p
    from lamina.lax.special.beta import betainc as betainc
    from lamina.lax.special.beta import betainc_grad_a_p as betainc_grad_a_p
    from lamina.lax.special.beta import betainc_grad_b_p as betainc_grad_b_p
    from lamina.lax.special.beta import regularized_incomplete_beta_p as regularized_incomplete_beta_p
    from lamina.lax.special.digamma import digamma as digamma
    from lamina.lax.special.digamma import digamma_p as digamma_p
    from lamina.lax.special.gamma import igamma as igamma
    from lamina.lax.special.gamma import igamma_grad_a as igamma_grad_a
    from lamina.lax.special.gamma import igamma_grad_a_p as igamma_grad_a_p
    from lamina.lax.special.gamma import igamma_p as igamma_p
    from lamina.lax.special.gamma import igammac as igammac
    from lamina.lax.special.gamma import igammac_p as igammac_p
    from lamina.lax.special.gamma import random_gamma_grad as random_gamma_grad
    from lamina.lax.special.gamma import random_gamma_grad_p as random_gamma_grad_p
    from lamina.lax.special.integer_power import integer_power as integer_power
    from lamina.lax.special.integer_power import integer_power_p as integer_power_p
    from lamina.lax.terms import preduced_p as preduced_p
    from lamina.lax.terms import reduced_vary_cast_p as reduced_vary_cast_p
    from lamina.lax.terms import unreduced_psum_p as unreduced_psum_p
    from lamina.lax.terms import vary_unreduced_cast_p as vary_unreduced_cast_p
    from lamina.lax.wide_products import mulhi as mulhi
    from lamina.lax.window_padding import padtype_to_pads as padtype_to_pads
    from lamina.lax.window_shapes import conv_general_permutations as conv_general_permutations
    from lamina.lax.window_shapes import conv_general_shape_tuple as conv_general_shape_tuple
    from lamina.lax.window_shapes import conv_shape_tuple as conv_shape_tuple
    from lamina.lax.window_shapes import conv_transpose_shape_tuple as conv_transpose_shape_tuple
    from lamina.lax.window_shapes import reduce_window_shape_tuple as reduce_window_shape_tuple
    from lamina.sharding.constraint import as_typed as as_typed
    from lamina.sharding.constraint import sharding_constraint_p as sharding_constraint_p
    from lamina.sharding.constraint import placed_of as placed_of
    from lamina.sharding.constraint import spread_batch as spread_batch
    from lamina.sharding.constraint import laid as laid
    from lamina.sharding.constraint import place_like as place_like
    from lamina.sharding.constraint import under as under
    from lamina.sharding.constraint import with_sharding_constraint as with_sharding_constraint

# Operations that are loaded when they are first named.
_MODULES = frozenset({"linalg"})
_HOMES = {
    "lamina.lax.collective_exchanges": (
        "all_to_all", "all_to_all_p", "pswapaxes", "ragged_all_to_all"
    ),
    "lamina.lax.collective_gathers": (
        "all_gather", "all_gather_invariant_p", "all_gather_p", "all_gather_reduced_p",
        "psum_scatter", "psum_scatter_start", "reduce_scatter_p", "unreduced_reduce_scatter_p"
    ),
    "lamina.lax.collective_permutes": (
        "axis_index", "axis_index_p", "axis_size", "pbroadcast", "ppermute", "ppermute_p",
        "pshuffle"
    ),
    "lamina.lax.collective_sums": (
        "pcast", "pmax", "pmax_p", "pmean", "pmin", "pmin_p", "psum", "psum_invariant_p",
        "psum_p", "pvary", "pvary_p"
    ),
    "lamina.lax.conv_layouts": (
        "ConvDimensionNumbers", "ConvGeneralDilatedDimensionNumbers", "conv_dimension_numbers"
    ),
    "lamina.lax.conv_patches": ("conv_general_dilated_local", "conv_general_dilated_patches"),
    "lamina.lax.convolution": (
        "conv", "conv_general_dilated", "conv_general_dilated_p", "conv_transpose",
        "conv_with_general_padding"
    ),
    "lamina.lax.ragged": (
        "RaggedDotDimensionNumbers", "ragged_dot", "ragged_dot_general", "scaled_dot"
    ),
    "lamina.lax.random_bits": (
        "philox2x32_p", "philox4x32_p", "threefry2x32", "threefry2x32_p", "threefry4x32_p",
        "threefry_2x32"
    ),
    "lamina.lax.rng": (
        "RandomAlgorithm", "rng_bit_generator", "rng_bit_generator_p", "rng_uniform",
        "rng_uniform_p"
    ),
    "lamina.lax.special.bessel": ("bessel_i0e", "bessel_i0e_p", "bessel_i1e", "bessel_i1e_p"),
    "lamina.lax.special.beta": (
        "betainc", "betainc_grad_a_p", "betainc_grad_b_p", "regularized_incomplete_beta_p"
    ),
    "lamina.lax.special.digamma": ("digamma", "digamma_p"),
    "lamina.lax.special.gamma": (
        "igamma", "igamma_grad_a", "igamma_grad_a_p", "igamma_p", "igammac", "igammac_p",
        "random_gamma_grad", "random_gamma_grad_p"
    ),
    "lamina.lax.special.integer_power": ("integer_power", "integer_power_p"),
    "lamina.lax.terms": (
        "preduced_p", "reduced_vary_cast_p", "unreduced_psum_p", "vary_unreduced_cast_p"
    ),
    "lamina.lax.wide_products": ("mulhi",),
    "lamina.lax.window_padding": ("padtype_to_pads",),
    "lamina.lax.window_shapes": (
        "conv_general_permutations", "conv_general_shape_tuple", "conv_shape_tuple",
        "conv_transpose_shape_tuple", "reduce_window_shape_tuple"
    ),
    "lamina.sharding.constraint": (
        "as_typed", "laid", "place_like", "placed_of", "sharding_constraint_p", "spread_batch", "under",
        "with_sharding_constraint"
    ),
}  # fmt: skip

if not _typing.TYPE_CHECKING:  # which knows the names
    __getattr__, __dir__ = _lazy_names(__name__, _MODULES, _HOMES)
