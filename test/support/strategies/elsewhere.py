"""Public functions that are not called on drawn arguments: why, and which file under test/ calls them."""

from __future__ import annotations

ELSEWHERE: dict[str, str] = {}


def _listed(why: str, file: str, space: str, names: str) -> None:
    """A test holds that `file` names each of them; where it is "", nothing else is to be called."""
    ELSEWHERE.update({f"{space}.{name}": file for name in names.split()})


_listed("takes a function", "test_numpy_sorting", "numpy",
        "apply_along_axis apply_over_axes piecewise vectorize")  # fmt: skip
_listed("takes a function", "test_numpy_tail", "numpy", "fromfunction frompyfunc mask_indices")
_listed("in JAX since 0.12", "test_since_0_12", "numpy", "minmax top_k")
_listed("in JAX since 0.12", "samples/elementwise", "lax", "log2 one_minus_square polynomial")
_listed("in JAX since 0.12", "test_since_0_12", "scipy.special", "erfcinv")
_listed("texts, files and printing", "test_numpy_tail", "numpy",
        "array_repr array_str frombuffer fromfile fromiter fromstring load printoptions "
        "save")  # fmt: skip
_listed("exchanges memory", "test_namespaces", "numpy", "from_dlpack")
_listed("NumPy's own, or opt_einsum's", "", "numpy",
        "einsum_path get_printoptions savez set_printoptions")  # fmt: skip
_listed("on dtypes", "test_dtypes", "numpy", "issubdtype")
_listed("on dtypes", "test_type_promotion", "numpy", "promote_types result_type")
_listed("on dtypes", "test_numpy_creation", "numpy", "can_cast isdtype")
_listed("in no order", "test_fits", "numpy", "roots")
_listed("unique up to signs and order", "test_linalg", "numpy.linalg", "eig eigh tensorsolve")
_listed("unique up to signs and order", "test_linalg", "lax.linalg", "eig eigh")
_listed("unique up to signs and order", "test_scipy_linalg", "lax.linalg", "schur tridiagonal")
_listed("unique up to signs, or of another's results", "test_scipy_linalg", "scipy.linalg",
        "cho_solve eigh eigh_tridiagonal expm_frechet funm lu_solve qr_multiply rsf2csf schur")  # fmt: skip
_listed("takes functions", "test_control_flow", "lax",
        "associative_scan cond fori_loop map scan switch while_loop")  # fmt: skip
_listed("takes functions", "test_lax_functions", "lax",
        "composite platform_dependent reduce reduce_window")  # fmt: skip
_listed("takes functions", "test_scipy_solvers", "lax", "custom_linear_solve custom_root")
_listed("takes dimension numbers", "samples/indexing", "lax",
        "gather scatter scatter_add scatter_max scatter_min scatter_mul scatter_sub")  # fmt: skip
_listed("takes dimension numbers", "test_lax_functions", "lax",
        "conv_general_dilated_local conv_general_dilated_patches index_take ragged_dot "
        "ragged_dot_general")  # fmt: skip
_listed("what x.at[...].apply and conv_general_dilated are made of", "", "lax",
        "conv_dimension_numbers scatter_apply")  # fmt: skip
_listed("a type, and a step of compilation", "", "lax", "DotDimensionNumbers stage")
_listed("on shapes alone", "test_lax_functions", "lax",
        "conv_general_permutations conv_general_shape_tuple conv_shape_tuple "
        "conv_transpose_shape_tuple dtype reduce_window_shape_tuple shape_as_value")  # fmt: skip
_listed("on named axes", "test_named_axes", "lax",
        "all_gather all_to_all axis_index axis_size pbroadcast pmax pmean pmin ppermute "
        "pshuffle psum psum_scatter psum_scatter_start pswapaxes ragged_all_to_all")  # fmt: skip
_listed("on named axes", "test_varying", "lax", "pcast")
_listed("on devices and effects", "test_lax_functions", "lax",
        "after_all broadcast_like create_token")  # fmt: skip
_listed("on devices and effects", "test_sharding", "lax", "with_sharding_constraint")
_listed("has no result", "samples/shapes", "lax", "dce_sink")
_listed("random or unspecified bits", "test_lax_functions", "lax",
        "empty rng_bit_generator rng_uniform scaled_dot")  # fmt: skip
_listed("another algorithm than JAX's", "samples/elementwise", "lax",
        "igamma_grad_a random_gamma_grad")  # fmt: skip
_listed("scales beside operands", "test_attention", "nn",
        "get_scaled_dot_general_config scaled_dot_general scaled_matmul")  # fmt: skip
_listed("gives a function", "test_nn", "nn.initializers",
        "constant glorot_normal glorot_uniform he_normal he_uniform kaiming_normal "
        "kaiming_uniform lecun_normal lecun_uniform normal ones truncated_normal uniform "
        "variance_scaling xavier_normal xavier_uniform zeros")  # fmt: skip
_listed("gives a function", "test_matrix_distributions", "nn.initializers",
        "delta_orthogonal orthogonal")  # fmt: skip
_listed("of typed keys", "test_keys", "random", "key key_dtype")
_listed("a type", "", "random", "Key")
_listed("of typed keys", "test_generators", "random", "wrap_key_data")
_listed("SciPy's other order of arguments", "test_special", "scipy.special", "sph_harm_y")
_listed("of stft's results", "test_scipy_signal", "scipy.signal", "istft")
_listed("takes a function", "test_scipy_solvers", "scipy.optimize", "minimize")
_listed("takes a function", "test_scipy_solvers", "scipy.sparse.linalg", "bicgstab cg gmres")
_listed("takes axes of its own", "test_namespaces", "image", "scale_and_translate")
