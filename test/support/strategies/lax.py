"""Calls of lax, nn, image and ops."""

from hypothesis import strategies as st

from support.strategies.arguments import (
    DTYPES,
    add,
    arrays,
    axes,
    axis,
    broadcasting,
    call,
    flags,
    maybe,
    one,
    x,
    xf,
)

any_axis = st.one_of(st.just(...), axis)
any_axes = st.one_of(st.just(...), axes)
few_axes = st.lists(st.integers(-1, 2), max_size=2).map(tuple)

add("lax", """abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e bitwise_not cbrt ceil clz conj
    cos cosh digamma erf erf_inv erfc exp exp2 expm1 floor imag is_finite lgamma log log1p logistic
    neg population_count real reciprocal round rsqrt sign sin sinh sqrt square stop_gradient tan tanh
    full_like optimization_barrier""", call(one(x)))  # fmt: skip
same = broadcasting(same=True, equal=True)
add("lax", """add atan2 bitwise_and bitwise_or bitwise_xor complex div eq ge gt igamma igammac le lt max
    min mul mulhi ne nextafter pow rem shift_left shift_right_arithmetic shift_right_logical sub zeta
    polygamma""", call(same))  # fmt: skip
add("lax", "add mul sub eq max", call(broadcasting()))
add("lax", "clamp", call(broadcasting(3, same=True, equal=True)))
add("lax", "integer_pow", call(st.tuples(x, st.integers(-3, 5))))
add("lax", "round", call(st.tuples(x, st.sampled_from([0, 1]))))
add("lax", "reduce_precision", call(st.tuples(x, st.integers(2, 8), st.integers(1, 10))))
index_dtypes = st.sampled_from(["int32", "int8", "uint32", "float32"])
add("lax", "argmax argmin", call(st.tuples(x, axis, index_dtypes)))
add("lax", "cumsum cumprod cummax cummin cumlogsumexp",
    call(one(x), axis=any_axis, reverse=maybe(True)))  # fmt: skip
add("lax", "reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or reduce_xor",
    call(st.tuples(x, few_axes)))  # fmt: skip
add("lax", "rev expand_dims squeeze", call(st.tuples(x, few_axes)))
add("lax", "transpose",
    call(x.flatmap(lambda a: st.tuples(st.just(a), st.permutations(range(a.ndim))))))  # fmt: skip
add("lax", "reshape", call(x.flatmap(lambda a: st.tuples(
    st.just(a), st.sampled_from([(a.size,), (1, a.size), (a.size, 1), (3, 4), tuple(a.shape)])))))  # fmt: skip
add("lax", "broadcast", call(st.tuples(x, st.sampled_from([(), (2,), (0, 3)]))))
add("lax", "broadcast_to_rank", call(st.tuples(x, st.integers(0, 5))))
add("lax", "collapse", call(
    st.tuples(x, st.integers(-1, 2)), stop_dimension=st.sampled_from([None, 0, 1, 2, 3])))  # fmt: skip
add("lax", "bitcast_convert_type", call(st.tuples(x, st.sampled_from(
    ["int8", "uint8", "int16", "int32", "float32", "float16", "bool"]))))  # fmt: skip
add("lax", "slice_in_dim", call(st.tuples(
    x, st.integers(-3, 3), st.one_of(st.none(), st.integers(-3, 4)), st.integers(1, 3),
    st.integers(-2, 2))))  # fmt: skip
add("lax", "dynamic_slice_in_dim",
    call(st.tuples(x, st.integers(-9, 9), st.integers(0, 3), st.integers(-2, 2))))  # fmt: skip
add("lax", "index_in_dim dynamic_index_in_dim",
    call(st.tuples(x, st.integers(-5, 5), st.integers(-2, 2), flags)))  # fmt: skip
low_high_inside = st.tuples(st.integers(-2, 2), st.integers(-2, 2), st.integers(0, 2))
add("lax", "pad", call(x.flatmap(lambda a: st.tuples(
    st.just(a), st.just(a.dtype.type(1)),
    st.lists(low_high_inside, min_size=a.ndim, max_size=a.ndim)))))  # fmt: skip
add("lax", "sort", call(one(x), dimension=any_axis, is_stable=maybe(True, False)))
add("lax", "top_k", call(st.tuples(x, st.integers(0, 4))))
add("lax", "approx_max_k approx_min_k", call(st.tuples(xf, st.integers(1, 3))))
add("lax", "split", call(
    st.tuples(arrays((5, 4)), st.sampled_from([(2, 3), (5,), (0, 5), (2, 2)])),
    axis=st.integers(-2, 1)))  # fmt: skip
three = [arrays((4,), ["bool"]), arrays((4,), ["float32"]), arrays((4,), ["float32"])]
add("lax", "select_n select", call(st.tuples(*three)))
joined = st.sampled_from(DTYPES).flatmap(
    lambda d: st.lists(
        arrays(st.sampled_from([(2, 3), (1, 3), (0, 3)]), [d]), min_size=1, max_size=3
    )
)
add("lax", "concatenate", call(st.tuples(joined, st.integers(0, 1))))
add("lax", "stack", call(
    one(st.lists(arrays((2, 3), ["float32"]), min_size=1, max_size=3)), axis=st.integers(-3, 3)))  # fmt: skip
add("lax", "tile", call(st.tuples(arrays((2, 3)), st.tuples(st.integers(0, 2), st.integers(0, 2)))))
PAIRS = [
    ((3,), (3,)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((2, 2, 3), (2, 3, 1)), ((0, 3), (3, 2)),
    ((2, 0), (0, 2)),
]  # fmt: skip
add("lax", "dot batch_matmul", call(
    st.tuples(st.sampled_from(DTYPES), st.sampled_from(PAIRS)).flatmap(
        lambda p: st.tuples(*(arrays(s, [p[0]], special=False) for s in p[1])))))  # fmt: skip

# ---- nn, image, ops ----------------------------------------------------------------------------
add("nn", """celu elu gelu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu log1mexp
    log_sigmoid mish relu relu6 selu sigmoid silu soft_sign softplus sparse_plus sparse_sigmoid
    squareplus swish tanh""", call(one(x)))  # fmt: skip
add("nn", "softmax log_softmax logsumexp logmeanexp standardize", call(one(x), axis=any_axes))
add("nn", "logsumexp",
    call(one(x), axis=any_axes, keepdims=maybe(True), return_sign=maybe(True)))  # fmt: skip
add("nn", "glu", call(one(xf), axis=any_axis))
add("nn", "gelu", call(one(x), approximate=flags))
classes = arrays(dtypes=["int32", "uint8", "int8", "float32"])
add("nn", "one_hot",
    call(st.tuples(classes, st.integers(0, 4)), axis=any_axis, dtype=maybe("int8", "bfloat16")))  # fmt: skip
picture = arrays(st.just((3, 4)), ["float32", "int32", "bfloat16", "uint8"], special=False)
methods = st.sampled_from(["nearest", "linear", "cubic", "lanczos3", "lanczos5"])
add("image", "resize", call(
    st.tuples(picture, st.sampled_from([(5, 6), (2, 2), (3, 9), (1, 1)]), methods),
    antialias=maybe(False)))  # fmt: skip
add("ops", "segment_sum segment_prod segment_max segment_min", call(
    st.tuples(arrays((5, 2)), arrays((5,), ["int32"])), num_segments=maybe(3),
    indices_are_sorted=maybe(False), mode=maybe("clip", "drop")))  # fmt: skip
