"""Calls of lax and numpy on several axes at once: contractions, convolutions, slices, factorisations."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from support.strategies.arguments import (
    DTYPES,
    FLOATS,
    INTS,
    Draw,
    add,
    arrays,
    call,
    filled,
    matrices,
    maybe,
    one,
    square,
    x,
)

wide = maybe("float32", "int32", "complex64", "int8")


@st.composite
def contractions(draw: Draw) -> Any:
    """Operands of dot_general and their dimension numbers, which are sometimes wrong."""
    numbers, left, right = draw(st.sampled_from([
        (((1,), (0,)), ((), ()), (2, 3), (3, 4)), (((2,), (1,)), ((0,), (0,)), (2, 3, 4), (2, 4)),
        (((0, 1), (1, 0)), ((), ()), (2, 3), (3, 2)), (((), ()), ((0,), (1,)), (3,), (2, 3)),
        (((), ()), ((), ()), (2,), (0,)), (((1,), (1,)), ((), ()), (2, 3), (3, 4)),
        (((0,), (0,)), ((), ()), (0,), (0,)), (((-1,), (0,)), ((), ()), (2, 3), (3,)),
    ]).map(lambda c: ((c[0], c[1]), c[2], c[3])))  # fmt: skip
    kinds = [draw(st.sampled_from(DTYPES))] if draw(st.integers(0, 5)) else DTYPES
    sides = (draw(arrays(s, kinds, special=False)) for s in (left, right))
    return *sides, numbers


add("lax", "dot_general", call(contractions(), preferred_element_type=wide))


@st.composite
def convolutions(draw: Draw) -> Any:
    """Operands and keywords of conv_general_dilated."""
    kind = [draw(st.sampled_from([*FLOATS, "int32", "int8", "uint8", "complex64"]))]
    groups, space = draw(st.sampled_from([1, 1, 2])), draw(st.sampled_from([1, 2]))
    sizes = [draw(st.integers(1, 5)) for _ in range(space)]
    window = [draw(st.integers(1, 3)) for _ in range(space)]
    lhs = draw(arrays((2, 2, *sizes), kind, special=False))
    rhs = draw(arrays((2, 2 // groups, *window), kind, special=False))
    options = {
        "window_strides": [draw(st.integers(1, 2)) for _ in range(space)],
        "padding": draw(st.sampled_from(["SAME", "VALID", [(1, 0)] * space, [(-1, 2)] * space])),
        "feature_group_count": groups,
    }
    for name in ("lhs_dilation", "rhs_dilation"):
        if draw(st.booleans()):
            options[name] = [draw(st.integers(1, 2)) for _ in range(space)]
    preferred = draw(wide)
    if preferred is not ... and kind[0] not in ("complex64",):
        options["preferred_element_type"] = preferred
    return (lhs, rhs), options


add("lax", "conv_general_dilated", convolutions())
images = st.tuples(arrays((1, 2, 5), FLOATS, special=False), arrays((2, 2, 2), FLOATS, special=False))
add("lax", "conv", call(st.tuples(images, st.sampled_from([(1,), (2,)]), st.sampled_from(
    ["SAME", "VALID"])).map(lambda a: (*a[0], *a[1:]))))  # fmt: skip

# ---- parts and fillings ------------------------------------------------------------------------
starts = st.lists(st.integers(-3, 5), min_size=2, max_size=2).map(tuple)
ends = st.lists(st.integers(0, 4), min_size=2, max_size=2).map(tuple)
grids = arrays((3, 4))
add("lax", "slice", call(st.tuples(grids, starts, ends, maybe(None, (1, 2)).map(
    lambda s: None if s is ... else s))))  # fmt: skip
add("lax", "dynamic_slice", call(st.tuples(grids, starts, ends)))
sized = st.sampled_from(DTYPES).flatmap(
    lambda d: st.tuples(arrays((3, 4), [d]), arrays(st.sampled_from([(2, 2), (3, 1), (4, 4)]), [d]))
)
add("lax", "dynamic_update_slice", call(st.tuples(sized, starts).map(lambda a: (*a[0], a[1]))))
rows = st.sampled_from(DTYPES).flatmap(
    lambda d: st.tuples(arrays((3, 4), [d]), arrays(st.sampled_from([(4,), (1, 4), (3,), ()]), [d]))
)
add("lax", "dynamic_update_slice_in_dim dynamic_update_index_in_dim", call(
    st.tuples(rows, st.integers(-4, 4), st.integers(-2, 1)).map(lambda a: (*a[0], *a[1:]))))  # fmt: skip
add("lax", "broadcast_in_dim", call(st.tuples(
    arrays(st.sampled_from([(), (3,), (1, 3)])), st.sampled_from([(3,), (2, 3), (3, 2)]),
    st.sampled_from([(), (0,), (1,), (0, 1)]))))  # fmt: skip
shapes = st.sampled_from([(), (3,), (2, 3), (0,), 4])
types = st.sampled_from([*DTYPES, "uint4", "float8_e5m2"])
add("lax", "convert_element_type", call(st.tuples(x, types)))
add("lax", "full", call(st.tuples(shapes, st.sampled_from([0, 1.5, True])), dtype=maybe("int8", "bfloat16")))
add("lax", "iota", call(st.tuples(types, st.integers(0, 5))))
add("lax", "broadcasted_iota", call(st.tuples(types, st.sampled_from([(3,), (2, 3)]), st.integers(-1, 2))))
add("lax", "broadcast_shapes", call(st.tuples(st.sampled_from([(3,), (2, 1)]), st.sampled_from([(3,), (2, 2)]))))
add("lax", "sort_key_val", call(st.tuples(arrays((7,)), arrays((7,))), dimension=maybe(0, -1, 1)))
add("lax", "unstack", call(one(x), axis=maybe(0, 1, -1)))
add("lax", "fft", call(st.tuples(
    arrays(st.sampled_from([(6,), (2, 5), (0,)]), ["float32", "complex64"], special=False),
    st.sampled_from(["fft", "ifft", "rfft", "irfft", "dct"]), st.sampled_from([(6,), (5,), (2,)]))))  # fmt: skip
add("numpy", "zeros ones empty", call(one(shapes), dtype=maybe("int8", "bfloat16", "complex64")))
add("numpy", "full", call(st.tuples(shapes, st.sampled_from([0, 1.5, True, 2j])), dtype=maybe("int8")))
add("numpy", "broadcast_shapes", call(st.tuples(st.sampled_from([(3,), (2, 1), ()]), shapes)))
few = st.integers(0, 4)
add("numpy", "diag_indices", call(one(few), ndim=maybe(1, 3)))
pointed = arrays(st.sampled_from([(2,), (3,), (0,)]), ["int32"], special=False)
add("numpy", "put", call(st.tuples(x, pointed, x), inplace=st.just(False), mode=maybe("clip", "wrap")))
add("numpy", "place", call(st.tuples(arrays((4,)), arrays((4,), ["bool", "int32"]), arrays((2,))),
                           inplace=st.just(False)))  # fmt: skip
add("numpy", "put_along_axis", call(st.tuples(arrays((3, 4)), arrays((3, 1), ["int32"]), st.just(7),
                                              st.sampled_from([0, 1, -1, None])), inplace=st.just(False)))  # fmt: skip
add("numpy", "fill_diagonal", call(st.tuples(x, st.sampled_from([5, 1.5])), wrap=maybe(True),
                                   inplace=st.just(False)))  # fmt: skip
add("numpy", "ix_", call(st.tuples(*[arrays(st.sampled_from([(2,), (3,), (0,)]), INTS, special=False)] * 2)))
points = arrays((9,), ["float32", "int32"], special=False)
add("numpy", "histogram2d", call(st.tuples(points, points), bins=maybe(3, [2, 4]), density=maybe(True)))
add("numpy", "histogramdd", call(one(arrays((9, 2), ["float32"], special=False)), bins=maybe(3)))
add("numpy", "polyfit", call(st.tuples(
    st.just(np.float32([0, 1, 2, 3, 5])), arrays((5,), ["float32"], special=False), st.integers(0, 2))))  # fmt: skip

# ---- matrices ----------------------------------------------------------------------------------
lower = square().map(lambda a: (np.tril(a[0]),))
add("numpy.linalg", "outer tensordot cross", call(st.tuples(arrays((3,)), arrays((3,)))))
add("numpy.linalg", "matmul vecdot", call(st.tuples(arrays((2, 3)), arrays(st.sampled_from([(3,), (3, 2), (2, 3)])))))
add("numpy.linalg", "multi_dot", call(one(st.tuples(*(arrays(s, ["float32", "int32"], special=False)
                                                      for s in [(2, 3), (3, 4), (4, 2)])))))  # fmt: skip
add("numpy.linalg", "tensorinv", call(square(extra=None).map(lambda a: a), ind=maybe(1)))
add("numpy.linalg", "qr", call(one(matrices().map(lambda a: a)), mode=maybe("r", "reduced", "complete")))
add("numpy.linalg", "svd", call(one(matrices()), compute_uv=st.just(False), full_matrices=maybe(True)))
add("numpy.linalg", "eigvals", call(lower))
add("lax.linalg", "cholesky symmetric_product", call(square(largest=3).map(
    lambda a: (a[0] @ np.conj(np.swapaxes(a[0], -1, -2)),))))  # fmt: skip
add("lax.linalg", "qdwh", call(square(["float32"], 3).filter(lambda a: a[0].size > 0 and a[0].ndim == 2)))
add("lax.linalg", "lu", call(square()))
add("lax.linalg", "hessenberg", call(square().filter(lambda a: a[0].size)))
add("lax.linalg", "qr", call(one(matrices()), full_matrices=maybe(False, True)))
add("lax.linalg", "svd", call(one(matrices()), compute_uv=st.just(False)))
add("lax.linalg", "triangular_solve", call(
    square(extra="columns"), left_side=st.just(True), lower=maybe(True), transpose_a=maybe(True),
    conjugate_a=maybe(True), unit_diagonal=maybe(True)))  # fmt: skip
bands = st.tuples(*[arrays((4,), ["float32"], special=False)] * 3, arrays((4, 2), ["float32"], special=False))
add("lax.linalg", "tridiagonal_solve", call(bands.map(lambda a: (
    np.where(np.arange(4) > 0, a[0], 0).astype("f4"), a[1] + 20 * np.sign(a[1]) + 1e-3,
    np.where(np.arange(4) < 3, a[2], 0).astype("f4"), a[3]))))  # fmt: skip
add("lax.linalg", "householder_product", call(st.just(
    (filled((4, 3), "float32", 1), filled((3,), "float32", 2)))))  # fmt: skip
add("lax.linalg", "lu_pivots_to_permutation", call(st.tuples(
    st.sampled_from([np.int32([1, 1, 2]), np.int32([[0, 1]])]), st.integers(2, 4))))  # fmt: skip
add("scipy.linalg", "lu_factor", call(square()))
add("scipy.linalg", "lu", call(square(), permute_l=maybe(True)))
add("scipy.linalg", "qr", call(one(matrices()), mode=maybe("full", "r", "economic")))
add("scipy.linalg", "svd", call(one(matrices()), compute_uv=st.just(False)))
add("scipy.linalg", "hessenberg", call(square(largest=4), calc_q=maybe(True)))
add("scipy.linalg", "sqrtm polar", call(square(largest=3)))
add("scipy.linalg", "fiedler_companion convolution_matrix", call(st.tuples(
    arrays((4,), ["float32"], special=False), st.integers(1, 3)).map(lambda a: a)))  # fmt: skip
systems = square(["float32"], 3).flatmap(lambda a: st.just((a[0], a[0] + 1, a[0])))
add("scipy.linalg", "solve_sylvester", call(systems))

# ---- the rest of scipy and nn ------------------------------------------------------------------
signals = arrays(st.sampled_from([(8,), (2, 9)]), ["float32", "int32", "complex64"], special=False)
add("scipy.fft", "dct idct", call(one(signals), n=maybe(4, 12), norm=maybe("ortho"), axis=maybe(0, -1)))
add("scipy.fft", "dctn idctn", call(one(signals), norm=maybe("ortho"), axes=maybe((0,), (-1,))))
add("scipy.signal", "welch", call(one(signals), nperseg=maybe(4), scaling=maybe("spectrum")))
add("scipy.signal", "csd", call(st.tuples(signals, signals), nperseg=maybe(4)))
add("scipy.signal", "stft", call(one(signals), nperseg=maybe(4), boundary=maybe(None, "even")))
add("scipy.integrate", "trapezoid", call(one(x), dx=maybe(0.5), axis=maybe(0, -1, 3)))
places = arrays(st.sampled_from([(3,), (2, 2)]), ["float32", "int32"], special=False)
add("scipy.ndimage", "map_coordinates", call(
    st.tuples(grids, st.tuples(places, places).map(list), st.sampled_from([0, 1, 2])),
    mode=maybe("nearest", "wrap", "mirror", "reflect", "grid-wrap"), cval=maybe(2.5)))  # fmt: skip
add("scipy.cluster.vq", "vq", call(st.tuples(arrays((5, 2), ["float32", "int32"]), arrays((3, 2), ["float32"]))))
add("scipy.stats", "mode", call(one(arrays(special=False)), axis=maybe(0, 1, None), keepdims=maybe(True)))
orders = arrays((4,), ["int32"], special=False).map(np.abs)
real = arrays((4,), ["float32"], special=False).map(lambda a: np.abs(a) + np.float32(0.1))
add("scipy.special", "expn", call(st.tuples(orders, real)))
add("scipy.special", "hyp1f1", call(st.tuples(real, real, real)))
add("scipy.special", "hyp2f1", call(st.tuples(real, real, real, real.map(lambda a: a / 20))))
add("scipy.special", "bessel_jn", call(one(real), v=st.integers(0, 3), n_iter=maybe(40)))
heads = st.sampled_from(["float32", "bfloat16"]).flatmap(
    lambda d: st.tuples(arrays((2, 3, 2, 4), [d], special=False),
                        *[arrays((2, 5, 2, 4), [d], special=False)] * 2)
)  # fmt: skip
add("nn", "dot_product_attention", call(heads, is_causal=maybe(True), scale=maybe(0.5)))
add("numpy", "empty_like iterable", call(one(x)))
add("lax", "padtype_to_pads", call(st.tuples(
    st.just((5, 4)), st.just((2, 3)), st.sampled_from([(1, 1), (2, 1)]),
    st.sampled_from(["SAME", "VALID", "SAME_LOWER", "OTHER"]))))  # fmt: skip
add("lax", "conv_transpose", call(
    st.just((filled((1, 4, 2), "float32", 1), filled((3, 2, 2), "float32", 2), (2,), "SAME")),
    dimension_numbers=st.just(("NHC", "HIO", "NHC")), transpose_kernel=maybe(True)))  # fmt: skip
add("lax", "conv_with_general_padding", call(st.just((
    filled((1, 2, 5), "float32", 1), filled((2, 2, 2), "float32", 2), (1,), [(0, 1)], None, (2,)))))  # fmt: skip
reduced = st.sampled_from([(3, 2), (4, 4), (2, 1)]).map(
    lambda s: (filled(s, "float32", 1), filled((s[1],), "float32", 2),
               filled((s[0], 2), "float32", 3)))  # fmt: skip
add("lax.linalg", "ormqr", call(reduced, left=maybe(True), transpose=maybe(True)))
factor = np.triu(filled((3, 3), "float32", 4)) + 4 * np.eye(3, dtype=np.float32)
add("lax.linalg", "cholesky_update", call(st.just((factor, filled((3,), "float32", 5)))))
