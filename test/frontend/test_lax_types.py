"""What lamina.lax says of wrong arguments, and weak types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import lamina
from lamina import lax

F34, F7, I34 = np.ones((3, 4), np.float32), np.ones(7, np.float32), np.ones((3, 4), np.int32)
TAKE = lax.GatherDimensionNumbers((1,), (0,), (0,))
PUT = lax.ScatterDimensionNumbers((1,), (0,), (0,))
ROWS = np.zeros((2, 1), np.int32)

REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    # JAX's words, which people search for.
    (
        lambda: lax.add(F34, I34),
        TypeError,
        "lax.add requires arguments to have the same dtypes, got float32, int32. (Tip: jnp.add is "
        "a similar function that does automatic type promotion on inputs).",
    ),
    (
        lambda: lax.shift_left(I34, np.ones((3, 4), np.uint8)),
        TypeError,
        "lax.shift_left requires arguments to have the same dtypes, got int32, uint8. (Tip: "
        "jnp.left_shift is a similar function that does automatic type promotion on inputs).",
    ),
    (
        lambda: lax.add(F34, F7),
        TypeError,
        "add: arrays must have the same number of dimensions, got shapes",
    ),
    (
        lambda: lax.add(F34, F34[:2]),
        TypeError,
        "add got incompatible shapes for broadcasting: (3, 4), (2, 4).",
    ),
    (
        lambda: lax.sin(I34),
        TypeError,
        "sin does not accept dtype int32. Accepted dtypes are subtypes of floating, "
        "complexfloating.",
    ),
    (
        lambda: lax.bitwise_and(F34, F34),
        TypeError,
        "and does not accept dtype float32 at position 0. Accepted dtypes at position 0 are "
        "subtypes of integer, bool.",
    ),
    (
        lambda: lax.reshape(F34, (5,)),
        TypeError,
        "reshape total size must be unchanged, got new_sizes (5,) (total size 5) for shape (3, 4) "
        "(total size 12).",
    ),
    (
        lambda: lax.concatenate([F34, F34[:, :2]], 0),
        TypeError,
        "Cannot concatenate arrays with shapes that differ in dimensions other than the one being "
        "concatenated: concatenating along dimension 0 for shapes (3, 4), (3, 2).",
    ),
    (
        lambda: lax.select(F34, F34, F34),
        TypeError,
        "select `which` must be boolean or integer type, got float32.",
    ),
    (
        lambda: lax.argmax(F34[:0], 0, np.int32),
        ValueError,
        "attempt to get argmax of an empty sequence",
    ),
    (
        lambda: lax.integer_pow(I34, -1),
        TypeError,
        "Integers cannot be raised to negative powers, got integer_pow(i32[3,4], -1)",
    ),
    # Our own: the operation, what came, what was expected.
    (
        lambda: lax.dot_general(F34, np.ones((7, 2), np.float32), (((1,), (0,)), ((), ()))),
        TypeError,
        "[dot_general] contracting sizes differ: lhs f32[3,4] axis 1 is 4, rhs f32[7,2] axis 0 is 7",
    ),
    (
        lambda: lax.dot_general(F34, F34, (((2,), (0,)), ((), ()))),
        TypeError,
        "[dot_general] lhs f32[3,4] has no axes [2]",
    ),
    (
        lambda: lax.broadcast_in_dim(F34, (3, 5), (0, 1)),
        TypeError,
        "[broadcast_in_dim] operand sizes must be 1 or those of the result: f32[3,4] can't spread "
        "over (3, 5) with broadcast_dimensions (0, 1)",
    ),
    (
        lambda: lax.reduce_sum(F34, (2,)),
        ValueError,
        "[reduce_sum] axis 2 is out of bounds for array of dimension 2",
    ),
    (
        lambda: lax.reduce_sum(F34, (0, -2)),
        ValueError,
        "[reduce_sum] duplicate value in axes: (0, -2)",
    ),
    (
        lambda: lax.slice(F34, (0, 2), (3, 5)),
        TypeError,
        "[slice] f32[3,4] has no part from (0, 2) to (3, 5) with strides None: need 0 <= start <= "
        "limit <= size and positive strides",
    ),
    (
        lambda: lax.dynamic_slice(F34, (0, 0.5), (1, 1)),
        TypeError,
        "[dynamic_slice] start_indices must be integers, got dtype float32",
    ),
    (
        lambda: lax.gather(F34, ROWS.astype(np.float32), TAKE, (1, 4)),
        TypeError,
        "[gather] indices must be integers, got f32[2,1]",
    ),
    (
        lambda: lax.gather(F34, ROWS, TAKE, (1, 9)),
        TypeError,
        "[gather] slice_sizes must be at most the sizes of the operand, got (1, 9) for f32[3,4]",
    ),
    (
        lambda: lax.gather(F34, ROWS, TAKE, (1, 4), mode="nearest"),
        ValueError,
        "Unknown gather mode 'nearest': expected clip, fill, drop, promise_in_bounds or one_hot",
    ),
    (
        lambda: lax.scatter(F34, ROWS, np.ones((3, 4), np.float32), PUT),
        TypeError,
        "[scatter] updates f32[3,4] must have, beside update_window_dims=(1,), the axes of the "
        "indices i32[2,1] but its last",
    ),
    (
        lambda: lax.pad(F34, 0.0, [(1, 1, 0)]),
        ValueError,
        "[pad] padding_config needs a (low, high, interior) triple for each axis of f32[3,4], got "
        "((1, 1, 0),)",
    ),
    (
        lambda: lax.bitcast_convert_type(np.ones(3, np.uint8), np.float32),
        ValueError,
        "[bitcast_convert_type] float32 needs a last axis of size 4 to take its bits from, got "
        "u8[3]",
    ),
    (
        lambda: lax.sort((F34, F7)),
        TypeError,
        "[sort] all operands must have one shape, got f32[3,4], f32[7]",
    ),
    (
        lambda: lax.full((2, -1), 0.0),
        TypeError,
        "shapes have no negative sizes, got (2, -1)",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED, ids=[m for _, _, m in REFUSED])
def test_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        lamina.eval_shape(call)
    assert message in str(caught.value)


def test_shapes_are_concrete() -> None:
    with pytest.raises(
        TypeError, match="Shapes must be 1D sequences of concrete values of integer type"
    ):
        lamina.eval_shape(lambda n: lax.full((n,), 0.0), 3)


WEAK: dict[str, Callable[..., Any]] = {
    "two weak operands": lambda lib, x: lib.add(x, 2.0),
    "a strong operand": lambda lib, x: lib.add(x, np.float32(2.0)),
    "comparison": lambda lib, x: lib.lt(x, 2.0),
    "select": lambda lib, x: lib.select(lib.lt(x, 2.0), x, x),
    "broadcast": lambda lib, x: lib.broadcast_in_dim(x, (2, 3), ()),
    "reshape": lambda lib, x: lib.reshape(x, (1,)),
    "convert": lambda lib, x: lib.convert_element_type(x, np.int32),
    "full": lambda lib, x: lib.full((2,), x),
    "full_like": lambda lib, x: lib.full_like(x, 2),
    "reduce": lambda lib, x: lib.reduce_sum(lib.broadcast(x, (3,)), (0,)),
    "argmax": lambda lib, x: lib.argmax(lib.broadcast(x, (3,)), 0, np.int32),
    "dot": lambda lib, x: lib.dot(lib.broadcast(x, (3,)), lib.broadcast(x, (3,))),
    "pow": lambda lib, x: lib.pow(x, 2.5),
    "clamp": lambda lib, x: lib.clamp(0.0, x, 2.0),
    "sort": lambda lib, x: lib.sort(lib.broadcast(x, (3,))),
    "concatenate": lambda lib, x: lib.concatenate([lib.broadcast(x, (3,))] * 2, 0),
    "pad": lambda lib, x: lib.pad(lib.broadcast(x, (3,)), 0.0, [(1, 1, 0)]),
    "dynamic_slice": lambda lib, x: lib.dynamic_slice(lib.broadcast(x, (3,)), (1,), (2,)),
    "dynamic_update_slice": lambda lib, x: lib.dynamic_update_slice(
        lib.broadcast(x, (3,)), lib.broadcast(x, (2,)), (1,)
    ),
    "complex": lambda lib, x: lib.complex(x, x),
    "is_finite": lambda lib, x: lib.is_finite(x),
}


@pytest.mark.parametrize("name", WEAK)
def test_weak_types(name: str) -> None:
    (mine,) = lamina.make_jaxpr(lambda x: WEAK[name](lax, x))(1.0).out_avals
    (theirs,) = jax.make_jaxpr(lambda x: WEAK[name](jax.lax, x))(1.0).out_avals
    assert (mine.shape, mine.dtype, mine.weak_type) == (
        theirs.shape,
        theirs.dtype,
        theirs.weak_type,
    )
