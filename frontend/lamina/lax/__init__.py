"""Operations on arrays that transformations know, and the functions that apply them.

Names and meanings are JAX's `lax`. Nothing here promotes dtypes or broadcasts beyond scalars:
lamina.numpy does. Each family has a file of its own; a primitive named p is `p_p`.
"""

# ruff: noqa: F401, E402, I001
from typing import TYPE_CHECKING as _TYPE_CHECKING

from lamina.lax.checks import library as _library
from lamina.lax.arithmetic import (
    RoundingMethod, abs, abs_p, add, add_any, add_any_p, add_p, ceil, ceil_p, div, div_p, floor,
    floor_p, integer_pow, integer_pow_p, is_finite, is_finite_p, max, max_p, min, min_p, mul, mul_p,
    neg, neg_p, nextafter, nextafter_p, pow, pow_p, reciprocal, rem, rem_p, round, round_p, sign,
    sign_p, square, square_p, sub, sub_p,
)  # fmt: skip
from lamina.lax.bitwise import (
    and_p, bitwise_and, bitwise_not, bitwise_or, bitwise_xor, clz, clz_p, not_p, or_p,
    population_count, population_count_p, shift_left, shift_left_p, shift_right_arithmetic,
    shift_right_arithmetic_p, shift_right_logical, shift_right_logical_p, xor_p,
)  # fmt: skip
from lamina.lax.collective_exchanges import all_to_all, all_to_all_p, pswapaxes, ragged_all_to_all
from lamina.lax.collective_gathers import (
    all_gather, all_gather_invariant_p, all_gather_p, psum_scatter, psum_scatter_start, reduce_scatter_p,
)  # fmt: skip
from lamina.lax.collective_permutes import (
    axis_index, axis_index_p, axis_size, pbroadcast, ppermute, ppermute_p, pshuffle,
)  # fmt: skip
from lamina.lax.collective_sums import (
    pcast, pmax, pmax_p, pmean, pmin, pmin_p, psum, psum_invariant_p, psum_p, pvary, pvary_p,
)  # fmt: skip
from lamina.lax.compare import (
    eq, eq_p, ge, ge_p, gt, gt_p, le, le_p, lt, lt_p, ne, ne_p,
)  # fmt: skip
from lamina.lax.complex import complex, complex_p, conj, conj_p, imag, imag_p, real, real_p
from lamina.lax.convert import (
    bitcast_convert_type, bitcast_convert_type_p, convert_element_type, convert_element_type_p, dtype,
    reduce_precision, reduce_precision_p,
)  # fmt: skip
from lamina.lax.conv_patches import conv_general_dilated_local, conv_general_dilated_patches
from lamina.lax.conv_layouts import (
    ConvDimensionNumbers, ConvGeneralDilatedDimensionNumbers, conv_dimension_numbers,
)  # fmt: skip
from lamina.lax.convolution import (
    conv, conv_general_dilated, conv_general_dilated_p, conv_transpose, conv_with_general_padding,
)  # fmt: skip
from lamina.lax.creation import (
    broadcasted_iota, empty, full, full_like, iota, iota_p, zeros_like,
)  # fmt: skip
from lamina.lax.cumulative import (
    cummax, cummax_p, cummin, cummin_p, cumprod, cumprod_p, cumsum, cumsum_p,
)  # fmt: skip
from lamina.lax.dot_general import (
    DotAlgorithm, DotAlgorithmPreset, DotDimensionNumbers, Precision, PrecisionLike, batch_matmul,
    dot, dot_general, dot_general_p,
)  # fmt: skip
from lamina.lax.dynamic_slicing import (
    dynamic_index_in_dim, dynamic_slice, dynamic_slice_in_dim, dynamic_slice_p,
    dynamic_update_index_in_dim, dynamic_update_slice, dynamic_update_slice_in_dim,
    dynamic_update_slice_p,
)  # fmt: skip
from lamina.lax.fft import FftType, fft, fft_p
from lamina.lax.gather import gather, gather_p, take_along_axis
from lamina.lax.identity import (
    after_all, create_token, dce_sink, dce_sink_p, optimization_barrier, optimization_barrier_p, stage, stop_gradient,
    stop_gradient_p,
)  # fmt: skip
from lamina.lax.indexing import (
    GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers,
)  # fmt: skip
from lamina.lax.joining import concatenate, concatenate_p, pad, pad_p, split, split_p
from lamina.lax.exponentials import (
    AccuracyMode, Tolerance, exp, exp2, exp2_p, exp_p, expm1, expm1_p, log, log1p, log1p_p, log2,
    log2_p, log_p,
)  # fmt: skip
from lamina.lax.math import (
    acos, acos_p, acosh, acosh_p, asin, asin_p, asinh, asinh_p, atan, atan2, atan2_p, atan_p, atanh,
    atanh_p, cbrt, cbrt_p, cos, cos_p, cosh, cosh_p, erf, erf_inv, erf_inv_p, erf_p, erfc, erfc_p,
    lgamma, lgamma_p, logistic, logistic_p, polygamma, polygamma_p, rsqrt, rsqrt_p, sin, sin_p,
    sinh, sinh_p, sqrt, sqrt_p, tan, tan_p, tanh, tanh_p, zeta, zeta_p,
)  # fmt: skip
from lamina.lax.polynomial import (
    one_minus_square, one_minus_square_p, polynomial, polynomial_p,
)  # fmt: skip
from lamina.lax.random_keys import random_unwrap_p, random_wrap_p
from lamina.lax.random_bits import (
    philox2x32_p,
    philox4x32_p,
    threefry2x32,
    threefry2x32_p,
    threefry4x32_p,
    threefry_2x32,
)
from lamina.lax.ragged import (
    RaggedDotDimensionNumbers, ragged_dot, ragged_dot_general, scaled_dot,
)  # fmt: skip
from lamina.lax.rearranging import (
    broadcast_like, index_take, shape_as_value, stack, tile, unstack,
)  # fmt: skip
from lamina.lax.reduce import (
    argmax, argmax_p, argmin, argmin_p, reduce_and, reduce_and_p, reduce_max, reduce_max_p,
    reduce_min, reduce_min_p, reduce_or, reduce_or_p, reduce_prod, reduce_prod_p, reduce_sum,
    reduce_sum_p, reduce_xor, reduce_xor_p,
)  # fmt: skip
from lamina.lax.rng import (
    RandomAlgorithm, rng_bit_generator, rng_bit_generator_p, rng_uniform, rng_uniform_p,
)  # fmt: skip
from lamina.lax.scatter import (
    scatter, scatter_add, scatter_add_p, scatter_apply, scatter_max, scatter_max_p, scatter_min, scatter_min_p,
    scatter_mul, scatter_mul_p, scatter_p, scatter_sub,
)  # fmt: skip
from lamina.lax.select import clamp, clamp_p, select, select_n, select_n_p
from lamina.lax.shape import (
    broadcast, broadcast_in_dim, broadcast_in_dim_p, broadcast_shapes, broadcast_to_rank, collapse,
    copy, copy_p, expand_dims, reshape, reshape_p, rev, rev_p, squeeze, squeeze_p, transpose, transpose_p,
)  # fmt: skip
from lamina.lax.slicing import index_in_dim, slice, slice_in_dim, slice_p
from lamina.lax.sort import sort, sort_key_val, sort_p
from lamina.lax.top_k import approx_max_k, approx_min_k, top_k, top_k_p
from lamina.lax.wide_products import mulhi
from lamina.lax.window_padding import padtype_to_pads
from lamina.lax.window_shapes import (
    conv_general_permutations, conv_general_shape_tuple, conv_shape_tuple,
    conv_transpose_shape_tuple, reduce_window_shape_tuple,
)  # fmt: skip
from lamina.lax.windows import (
    reduce_window_max_p, reduce_window_min_p, reduce_window_sum_p,
    window_argmax_p, window_argmin_p,
)  # fmt: skip

# ---- control flow (lamina.control_flow) ---------------------------------------------------------
from lamina.control_flow import (
    associative_scan, composite, cond, cumlogsumexp, cumlogsumexp_p, custom_linear_solve,
    custom_root, fori_loop, map, platform_dependent, reduce, reduce_p, reduce_window,
    reduce_window_p, scan, switch, while_loop,
)  # fmt: skip
from lamina.control_flow.cond import cond_p
from lamina.control_flow.custom_linear_solve import linear_solve_p
from lamina.control_flow.scan_rules import scan_p
from lamina.control_flow.while_rules import while_p

# ---- end of control flow ------------------------------------------------------------------------
# ---- special functions: programs of the above ---------------------------------------------------
from lamina.lax.special.bessel import bessel_i0e, bessel_i0e_p, bessel_i1e, bessel_i1e_p
from lamina.lax.special.beta import (
    betainc, betainc_grad_a_p, betainc_grad_b_p, regularized_incomplete_beta_p,
)  # fmt: skip
from lamina.lax.special.digamma import digamma, digamma_p
from lamina.lax.special.gamma import (
    igamma, igamma_grad_a, igamma_grad_a_p, igamma_p, igammac, igammac_p, random_gamma_grad,
    random_gamma_grad_p,
)  # fmt: skip
from lamina.lax.special.integer_power import integer_power, integer_power_p

# ---- end of special functions -------------------------------------------------------------------


if _TYPE_CHECKING:
    from lamina.lax import linalg as linalg
    from lamina.sharding.constraint import under as under


# ---- loaded when first named: linear algebra, and placement (lamina.sharding) ------------------
def __getattr__(name: str) -> object:
    if name == "linalg":
        import importlib

        return importlib.import_module("lamina.lax.linalg")
    if name in ("with_sharding_constraint", "sharding_constraint_p", "under"):
        from lamina.sharding import constraint

        return getattr(constraint, name)
    raise AttributeError(f"module '{_library}.lax' has no attribute {name!r}")
