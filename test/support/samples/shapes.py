"""Sample applications of primitives: shapes and slices."""

from __future__ import annotations

import numpy as np

from lamina import lax
from support.samples.sample import b1, f32, i8, i32, row, u8

# fmt: off

# ---- shape --------------------------------------------------------------------------------------
row("broadcast_in_dim", f32(2, 4), shape=(2, 3, 4), broadcast_dimensions=(0, 2))
row("broadcast_in_dim", f32(2, 1), shape=(2, 3), broadcast_dimensions=(0, 1))
row("broadcast_in_dim", f32(), shape=(2, 3), broadcast_dimensions=())
row("broadcast_in_dim", f32(3), shape=(0, 3), broadcast_dimensions=(1,))
row("broadcast_in_dim", b1(3), shape=(2, 3), broadcast_dimensions=(1,))
row("reshape", f32(3, 4), numpy=lambda x: x.reshape(4, 3), new_sizes=(4, 3))
row("reshape", f32(1, 1), numpy=lambda x: x.reshape(()), new_sizes=())
row("reshape", f32(3, 0), numpy=lambda x: x.reshape(0, 5), new_sizes=(0, 5))
row("reshape", f32(3, 4), numpy=lambda x: x.T.reshape(12), note="dimensions", new_sizes=(12,),
    dimensions=(1, 0))
row("transpose", f32(2, 3, 4), numpy=lambda x: x.transpose(2, 0, 1), permutation=(2, 0, 1))
row("transpose", i8(2, 3), numpy=np.transpose, permutation=(1, 0))
row("squeeze", f32(1, 3, 1), numpy=np.squeeze, dimensions=(0, 2))
row("squeeze", f32(3, 1), numpy=np.squeeze, dimensions=(-1,))
row("broadcast_in_dim", f32(3), function="expand_dims", numpy=lambda x: x[None, :, None],
    dimensions=(0, -1))
row("rev", f32(2, 3, 4), numpy=lambda x: x[::-1, :, ::-1], dimensions=(0, 2))
row("concatenate", f32(2, 3), f32(1, 3), f32(0, 3), call=lambda lib, *xs: lib.concatenate(xs, 0),
    numpy=lambda *xs: np.concatenate(xs))
row("concatenate", b1(2, 3), b1(2, 2), call=lambda lib, *xs: lib.concatenate(xs, 1),
    numpy=lambda *xs: np.concatenate(xs, 1))
row("split", f32(2, 5), call=lambda lib, x: tuple(lib.split(x, (2, 0, 3), 1)),
    numpy=lambda x: tuple(np.split(x, (2, 2), 1)))
row("pad", f32(2, 3), f32(), padding_config=((1, 2, 0), (0, 0, 1)))
row("pad", f32(3, 3), f32(), padding_config=((-1, 0, 0), (1, -1, 2)))
row("pad", f32(0), f32(), padding_config=((2, 1, 3),))
row("pad", i32(3), i32(values=7), padding_config=((1, 1, 0),))
row("copy", f32(3, 4), call=lambda lib, x: lax.copy(x) if lib is lax else x, numpy=lambda x: x)
row("iota", call=lambda lib: lib.iota(np.int32, 5), numpy=lambda: np.arange(5, dtype=np.int32))
row("iota", call=lambda lib: lib.broadcasted_iota(np.float32, (2, 3), 1))
row("iota", call=lambda lib: lib.iota(np.uint8, 0), note="empty")
row("stop_gradient", f32(3), numpy=lambda x: x, smooth=False)
row("dce_sink", f32(3), call=lambda lib, x: (lib.dce_sink(lib.sin(x)), lib.cos(x))[1])
row("optimization_barrier", f32(3), i32(2), call=lambda lib, x, y: lib.optimization_barrier((x, y)))

# ---- slices -------------------------------------------------------------------------------------
row("slice", f32(3, 4), numpy=lambda x: x[1:3], start_indices=(1, 0), limit_indices=(3, 4))
row("slice", f32(3, 6), numpy=lambda x: x[::2, 1:6:3], start_indices=(0, 1), limit_indices=(3, 6),
    strides=(2, 3))
row("slice", f32(3), numpy=lambda x: x[2:2], start_indices=(2,), limit_indices=(2,))
row("slice", f32(2, 5), function="slice_in_dim", numpy=lambda x: x[:, -3:-1], start_index=-3,
    limit_index=-1, axis=1)
row("slice", f32(2, 5), function="index_in_dim", numpy=lambda x: x[:, -1], index=-1, axis=1,
    keepdims=False)
_AT = i32(low=-4, high=6)
row("dynamic_slice", f32(4, 5), _AT, _AT,
    call=lambda lib, x, i, j: lib.dynamic_slice(x, (i, j), (2, 3)))
row("dynamic_slice", i8(3, 5), _AT, call=lambda lib, x, i: lib.dynamic_slice_in_dim(x, i, 2, 1))
row("dynamic_slice", f32(5, 2), u8(low=0, high=5),
    call=lambda lib, x, i: lib.dynamic_index_in_dim(x, i, 0, False))
row("dynamic_slice", f32(4, 5), i32(2, low=-1, high=3),
    call=lambda lib, x, i: lib.dynamic_slice(x, i, (2, 2)))
row("dynamic_update_slice", f32(4, 5), f32(2, 3), _AT, _AT,
    call=lambda lib, x, u, i, j: lib.dynamic_update_slice(x, u, (i, j)))
row("dynamic_update_slice", i32(2, 5), i32(2), _AT,
    call=lambda lib, x, u, i: lib.dynamic_update_index_in_dim(x, u, i, 1))
