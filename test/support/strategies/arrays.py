"""Calls of numpy: functions that make, move and join arrays, take parts of them; polynomials."""

import numpy as np
from hypothesis import strategies as st

from support.strategies.arguments import (
    DTYPES,
    FLOATS,
    add,
    arrays,
    axes,
    axis,
    call,
    maybe,
    one,
    vec,
    x,
)

any_axis = st.one_of(st.just(...), axis)
any_axes = st.one_of(st.just(...), axes)

# ---- moved -------------------------------------------------------------------------------------
add("numpy", "flip squeeze", call(one(x), axis=axes))
add("numpy", "expand_dims",
    call(one(x), axis=st.one_of(axis, st.lists(axis, max_size=2).map(tuple))))  # fmt: skip
add("numpy", "unstack", call(one(x), axis=axis))
add(
    "numpy",
    "roll",
    call(st.tuples(x, st.one_of(st.integers(-5, 5), st.just((1, 2)))), axis=any_axes),
)
add("numpy", "rollaxis swapaxes moveaxis", call(st.tuples(x, axis, axis)))
add("numpy", "rot90", call(one(x), k=maybe(0, 1, 2, 3, -1)))
add("numpy", "repeat", call(st.tuples(x, st.integers(0, 3)), axis=any_axis))
tiles = st.one_of(st.integers(0, 3), st.lists(st.integers(0, 2), max_size=4).map(tuple))
add("numpy", "tile", call(st.tuples(x, tiles)))
sizes = st.sampled_from([-1, (-1, 1), (1, -1), (2, -1), (3, 4), (), (0, 0)])
add("numpy", "reshape", call(st.tuples(x, sizes), order=maybe("C", "F")))
add("numpy", "ravel", call(one(x), order=maybe("C", "F")))
add("numpy", "resize", call(st.tuples(x, st.sampled_from([(3,), (2, 5), (0,), ()]))))
add("numpy", "broadcast_to",
    call(st.tuples(x, st.sampled_from([(3,), (2, 3), (4, 1, 3), (0,), (2, 3, 4)]))))  # fmt: skip
add("numpy", "trace diagonal", call(
    one(x), offset=maybe(0, 1, -1, 4), axis1=maybe(0, 1, -1), axis2=maybe(1, 0, 2)))  # fmt: skip
add("numpy", "diag diagflat tril triu", call(one(x), k=maybe(0, 1, -1, 5)))
add("numpy", "astype", call(
    st.tuples(x, st.sampled_from([*DTYPES, "uint16", "int4", "uint4", "float8_e4m3fn"]))))  # fmt: skip
bits = arrays(dtypes=["bool", "uint8", "int32"])
add("numpy", "packbits", call(one(bits), axis=any_axis, bitorder=maybe("little")))
add("numpy", "unpackbits",
    call(one(arrays(dtypes=["uint8"])), axis=any_axis, bitorder=maybe("little"), count=maybe(3, 10)))  # fmt: skip

# ---- joined and split --------------------------------------------------------------------------


def some(*shapes):
    return st.lists(arrays(st.sampled_from(shapes)), min_size=1, max_size=3)


add("numpy", "stack", call(one(some((2, 3))), axis=any_axis))
add("numpy", "concatenate concat", call(one(some((2, 3), (1, 3), (0, 3))), axis=any_axes))
add("numpy", "hstack vstack dstack column_stack block", call(one(some((2, 3), (2, 3), (3,), ()))))
places = st.one_of(st.integers(1, 4), st.lists(st.integers(0, 4), max_size=3).map(sorted))
add("numpy", "split array_split", call(st.tuples(x, places), axis=any_axis))
add("numpy", "hsplit vsplit dsplit", call(st.tuples(x, places)))
inserted = st.one_of(st.integers(-3, 3), st.just(np.array([0, 1])))
add("numpy", "delete", call(st.tuples(x, st.one_of(inserted, st.just(slice(0, 2)))), axis=any_axis))
add("numpy", "insert", call(st.tuples(x, inserted, st.just(9)), axis=any_axis))
add("numpy", "pad", call(st.tuples(x, st.sampled_from([0, 1, (1, 2), ((1, 0),)])), mode=st.sampled_from(
    """constant edge reflect symmetric wrap linear_ramp maximum mean median minimum empty""".split()
)))  # fmt: skip

# ---- parts -------------------------------------------------------------------------------------
indices = arrays(st.sampled_from([(), (3,), (2, 2), (0,)]), ["int32", "int8", "uint8"])
add("numpy", "take", call(st.tuples(x, indices), axis=st.one_of(any_axis, st.none()),
                          mode=maybe("clip", "wrap", "fill"), fill_value=maybe(5)))  # fmt: skip
add("numpy", "take_along_axis", call(
    st.tuples(x, x.filter(lambda a: a.dtype.kind in "iu")), axis=st.one_of(st.none(), axis)))  # fmt: skip
add("numpy", "compress", call(st.tuples(arrays((3,), ["bool", "int32"]), x), axis=any_axis))
add("numpy", "choose", call(
    st.tuples(arrays((4,), ["int32", "uint8"]), some((4,))), mode=st.sampled_from(["wrap", "clip"])))  # fmt: skip
two = st.lists(arrays((3,)), min_size=2, max_size=2)
masks = st.lists(arrays((3,), ["bool"]), min_size=2, max_size=2)
add("numpy", "select", call(st.tuples(masks, two), default=maybe(0, 7)))
add("numpy", "unravel_index", call(st.tuples(
    arrays(dtypes=["int32", "uint8"], scale=6.0), st.sampled_from([(2, 3), (7,), (2, 2, 2)]))))  # fmt: skip
both = st.tuples(arrays((4,), ["int32"]), arrays((4,), ["int32"]))
add("numpy", "ravel_multi_index",
    call(st.tuples(both, st.just((3, 4))), mode=st.sampled_from(["wrap", "clip"])))  # fmt: skip

# ---- made --------------------------------------------------------------------------------------
add("numpy", "full_like", call(
    st.tuples(x, st.sampled_from([0, 1.5, -1, True, 2j])), dtype=maybe("int8", "float32")))  # fmt: skip
numbers = st.lists(st.sampled_from([0, 1, 5, -3, 2.5, 0.3, 10]), min_size=1, max_size=3).map(tuple)
add("numpy", "arange", call(numbers, dtype=maybe("int8", "float32", "bfloat16")))
ends = st.tuples(
    st.sampled_from([1, 2.5, -3, 0.1]), st.sampled_from([10, 7.5, -1.0]), st.integers(0, 6)
)
add("numpy", "linspace geomspace",
    call(ends, endpoint=maybe(False), dtype=maybe("int32", "float32", "complex64")))  # fmt: skip
powers = st.tuples(st.sampled_from([1, 0.5, -1]), st.sampled_from([2, 1.5]), st.integers(0, 6))
add("numpy", "logspace", call(powers, base=maybe(2.0), endpoint=maybe(False)))
few = st.integers(0, 4)
add("numpy", "eye tri",
    call(one(few), M=maybe(0, 3, 6), k=maybe(-1, 0, 1, 9), dtype=maybe("int8", "bool")))  # fmt: skip
add("numpy", "identity hamming hanning blackman bartlett", call(one(few)))
add("numpy", "kaiser", call(st.tuples(few, st.sampled_from([0.0, 2.5, 14]))))
add("numpy", "meshgrid", call(st.tuples(vec, vec), indexing=maybe("ij", "xy"), sparse=maybe(True)))
add("numpy", "tril_indices triu_indices", call(one(few), k=maybe(-1, 1), m=maybe(0, 5)))
add("numpy", "indices", call(one(st.sampled_from([(2, 3), (0,), (), (4,)])), sparse=maybe(True)))

# ---- polynomials -------------------------------------------------------------------------------
add("numpy", "polyadd polysub polymul", call(st.tuples(vec, vec)))
add("numpy", "vander", call(one(vec), N=maybe(0, 1, 3), increasing=maybe(True)))
add("numpy", "polyval", call(st.tuples(vec, x)))
add("numpy", "polyder polyint", call(one(vec), m=maybe(0, 1, 2)))
divided = st.tuples(
    arrays((4,), [*FLOATS, "int32"], special=False), st.just(np.float32([2.0, 1.0]))
)
add("numpy", "polydiv", call(divided))
add("numpy", "poly", call(one(arrays(st.sampled_from([(3,), (0,), (2,)]), special=False))))
add("numpy", "trim_zeros", call(one(vec)))
