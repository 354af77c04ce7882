"""What all callbacks share: the user's function on arrays, how it is called, how it is lowered."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina import config
from lamina.array import from_numpy
from lamina.core import dtypes, tree
from lamina.core.avals import ShapedArray
from lamina.core.trace import set_current_trace
from lamina.errors import JaxRuntimeError
from lamina.key_array import KeyArray
from lamina.lax.random_keys import random_unwrap


class HostFunction:
    """A user's function of a pytree of arrays, called with flat NumPy arrays.

    `static` holds the leaves of the arguments that are no arrays, by position; `keys` the dtypes of
    those that are random keys, of which the words are given. Two are equal only if they are the same
    object: nothing is known about what they do.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        in_tree: tree.PyTreeDef,
        static: dict[int, Any] | None = None,
        keys: dict[int, dtypes.KeyDType] | None = None,
    ) -> None:
        self.fun, self.in_tree, self.static, self.keys = fun, in_tree, static or {}, keys or {}

    @property
    def name(self) -> str:
        inner = self.fun
        while isinstance(inner, functools.partial):
            inner = inner.func
        return getattr(inner, "__name__", None) or type(inner).__name__

    def __call__(self, *arrays: Any) -> Any:
        given = iter(arrays)
        leaves = [
            self.static[i] if i in self.static else next(given)
            for i in range(self.in_tree.num_leaves)
        ]
        for i, dtype in self.keys.items():
            leaves[i] = KeyArray(from_numpy(leaves[i]), dtype=dtype)
        args, kwargs = tree.unflatten(self.in_tree, leaves)
        # The thread may be in the middle of tracing something else.
        with set_current_trace(None):
            return self.fun(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{self.name} at {id(self):#x}>"


def key_dtypes(leaves: Sequence[Any]) -> dict[int, dtypes.KeyDType]:
    """Which leaves are random keys, and of which kind."""
    found = {i: getattr(x, "dtype", None) for i, x in enumerate(leaves)}
    return {i: dtype for i, dtype in found.items() if isinstance(dtype, dtypes.KeyDType)}


def words_of(x: Any) -> Any:
    """An operand of a callback: the words of random keys, any other as it is."""
    return random_unwrap(x) if isinstance(getattr(x, "dtype", None), dtypes.KeyDType) else x


def result_types(result_shape_dtypes: Any) -> tuple[list[ShapedArray], tree.PyTreeDef]:
    """The types in a pytree of things with shape and dtype, and its structure.

    Raises TypeError for a leaf without them, ValueError for 64-bit types that are not enabled.
    """
    leaves, treedef = tree.flatten(result_shape_dtypes)
    avals = []
    for x in leaves:
        if not hasattr(x, "shape") or not hasattr(x, "dtype"):
            raise TypeError(
                "result_shape_dtypes must be a pytree of objects with shape and dtype, such as "
                f"ShapeDtypeStruct, got {x!r}"
            )
        dtype = np.dtype(x.dtype)
        if not config.enable_x64.value and dtypes.canonicalize(dtype) != dtype:
            raise ValueError(
                "result_shape_dtypes cannot specify 64-bit types when `jax_enable_x64` is disabled"
            )
        avals.append(ShapedArray(tuple(x.shape), dtype, False))
    return avals, treedef


def checked_results(
    what: str, callback: HostFunction, out: Any, avals: Sequence[ShapedArray], out_tree: Any
) -> tuple[np.ndarray, ...]:
    """What a callback gave as dense arrays of the promised types.

    Its containers may be of other kinds than the promised ones: leaves go by their order. Raises
    TypeError, naming the result, where their number, a shape or a dtype differs from the promise.
    """
    leaves, got_tree = tree.flatten(out)
    if got_tree.num_leaves != out_tree.num_leaves:
        raise TypeError(
            f"{what}: {callback.name} gave a result of structure {got_tree}, but "
            f"result_shape_dtypes has {out_tree}"
        )
    arrays = []
    for x, aval, path in zip(leaves, avals, tree.paths(out), strict=True):
        array = np.asarray(x)
        weak = isinstance(x, (bool, int, float, complex))
        fits = weak or dtypes.canonicalize(array.dtype) == aval.dtype or array.dtype == aval.dtype
        if array.shape != aval.shape or not fits:
            got = f"{dtypes.short_name(array.dtype)}[{','.join(map(str, array.shape))}]"
            raise TypeError(
                f"{what}: result{path} of {callback.name} has type {got}, but result_shape_dtypes "
                f"says {aval.str_short()}"
            )
        arrays.append(np.ascontiguousarray(array, aval.dtype).reshape(aval.shape))
    return tuple(arrays)


def bound_callback(
    what: str, callback: HostFunction, avals: Sequence[ShapedArray], out_tree: Any
) -> Callable[..., tuple[np.ndarray, ...]]:
    """The function that the runtime calls: NumPy arrays in, checked ones out."""

    def call(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return checked_results(what, callback, callback(*arrays), avals, out_tree)

    return call


def evaluate(
    call: Callable[..., tuple[np.ndarray, ...]], what: str, args: Sequence[Any]
) -> list[Any]:
    """Calls at once, outside any program, with the error class that programs have."""
    from lamina.runtime import array_from_numpy, to_array

    arrays = []
    for x in args:
        array = np.array(to_array(x))
        array.setflags(write=False)
        arrays.append(array)
    try:
        return [array_from_numpy(x) for x in call(*arrays)]
    except Exception as e:
        raise JaxRuntimeError(f"[{what}] a Python callback raised {type(e).__name__}: {e}") from e


def lower_call(ctx: Any, call: Callable[..., Any], args: Sequence[Any], has_effect: bool) -> Any:
    """The custom call that the backend makes a call of the runtime of."""
    from lamina.dialects import stablehlo as hlo
    from lamina.dialects.vendors import ir
    from lamina.interpreters.lowering import tensor_type

    def specs(avals: Sequence[ShapedArray]) -> list[tuple[np.dtype, tuple[int, ...]]]:
        return [(a.dtype, a.shape) for a in avals]

    frames = ctx.source.frames
    at = f"{frames[0].file}:{frames[0].line}:{frames[0].column} in {frames[0].function}" if frames else ""
    index = ctx.module.callback_index((call, specs(ctx.avals_in), specs(ctx.avals_out), at))
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), index)
    return hlo.custom_call(
        "lamina.python_callback",
        args,
        [tensor_type(a) for a in ctx.avals_out],
        has_side_effect=has_effect,
        backend_config=ir.DictAttr.get({"index": number}),
    )
