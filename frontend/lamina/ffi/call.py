"""ffi_call: a compiled function as an operation, and ffi_lowering: as the lowering of one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lamina.callbacks.batched import lane_by_lane, unrolled, whole_batch
from lamina.callbacks.host import evaluate, lower_call, result_types
from lamina.callbacks.pure import METHODS, UNBATCHED
from lamina.core.avals import ShapedArray
from lamina.core.effects import NO_EFFECTS, Effect
from lamina.core.primitive import Primitive
from lamina.core.trace import get_aval
from lamina.ffi.frames import call_handler
from lamina.ffi.targets import address_of
from lamina.interpreters.batching import batched_size

FFI = Effect("FFI")


Layouts = tuple[tuple[int, ...] | None, ...] | None
"""For each array its dimensions, the slowest first; None: as they come."""


class Call:
    """What one ffi_call says, but for its operands.

    Two are equal only if they are the same object, and its text has its address: a program that holds
    one is not kept on disk, where the handler is not.

    aliases  result -> the operand whose memory it takes over.
    """

    def __init__(
        self,
        target: str,
        attributes: Mapping[str, Any],
        in_layouts: Layouts,
        out_layouts: Layouts,
        aliases: Mapping[int, int],
    ) -> None:
        self.target, self.attributes, self.aliases = target, attributes, aliases
        self.in_layouts, self.out_layouts = in_layouts, out_layouts

    def run(self, address: int, avals: Sequence[ShapedArray], *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """Calls the handler on arrays; gives new ones of these types."""
        orders = self.in_layouts or (None,) * len(arrays)
        operands = [_laid_out(x, order) for x, order in zip(arrays, orders, strict=True)]
        results = []
        for i, (aval, order) in enumerate(self._out_orders(avals)):
            shape = tuple(aval.shape[d] for d in order) if order else aval.shape
            if i in self.aliases:
                results.append(operands[self.aliases[i]].copy())
                operands[self.aliases[i]] = results[i]
            else:
                results.append(np.empty(shape, aval.dtype))
        call_handler(
            address,
            [(x, x_in.shape) for x, x_in in zip(operands, arrays, strict=True)],
            [(x, aval.shape) for x, aval in zip(results, avals, strict=True)],
            self.attributes,
        )
        return tuple(
            np.ascontiguousarray(x.transpose(np.argsort(order))) if order else x
            for x, (_, order) in zip(results, self._out_orders(avals), strict=True)
        )

    def _out_orders(self, avals: Sequence[ShapedArray]) -> list[tuple[ShapedArray, Any]]:
        return list(zip(avals, self.out_layouts or (None,) * len(avals), strict=True))

    def __repr__(self) -> str:
        return f"<{self.target} at {id(self):#x}>"


def _laid_out(x: np.ndarray, order: tuple[int, ...] | None) -> np.ndarray:
    return np.ascontiguousarray(x if order is None else x.transpose(order)).reshape(
        x.shape if order is None else [x.shape[d] for d in order]
    )


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[Any] | None = None,
    output_layouts: Any = None,
    input_output_aliases: dict[int, int] | None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable[..., Any]:
    """A function that calls a registered target: f(*arrays, **attributes).

    target_name              the name given to register_ffi_target.
    result_shape_dtypes      an object with shape and dtype, or a sequence of such: the results.
    has_side_effect          calls are kept though nobody reads their results.
    vmap_method              what batches become, as for pure_callback; None: vmap raises.
    input_layouts,           for each array its dimensions, the slowest first, or a Layout; None:
    output_layouts           row-major.
    input_output_aliases     operand -> the result that takes over its memory.
    custom_call_api_version  4.
    legacy_backend_config    None.

    Attributes are numbers (of Python as 64 bits wide), strings, arrays and dicts of such. Raises
    NotImplementedError for another custom_call_api_version and for legacy_backend_config,
    ValueError for another vmap_method; calls raise JaxRuntimeError for targets that are not
    registered and for errors of the handler. Not differentiable: wrap it in custom_jvp or
    custom_vjp.

    >>> scale = lamina.ffi.ffi_call("scale", lamina.ShapeDtypeStruct((3,), "float32"))
    >>> scale(jnp.ones(3), by=np.float32(2))
    Traceback (most recent call last):
        ...
    lamina.errors.JaxRuntimeError: ...
    """
    if custom_call_api_version != 4 or legacy_backend_config is not None:
        raise NotImplementedError(
            f"ffi_call({target_name!r}): targets of the typed interface alone can be called "
            "(custom_call_api_version=4, no legacy_backend_config)"
        )
    if vmap_method not in METHODS:
        raise ValueError(
            f"vmap_method must be one of the allowed methods {list(METHODS)}, but got: {vmap_method}"
        )
    several = isinstance(result_shape_dtypes, Sequence)
    avals, _ = result_types(list(result_shape_dtypes) if several else [result_shape_dtypes])

    def called(*args: Any, **attributes: Any) -> Any:
        call = Call(
            target_name,
            attributes,
            _orders(input_layouts, len(args), "input"),
            _orders(output_layouts if several else _alone(output_layouts), len(avals), "output"),
            _aliases(input_output_aliases or {}, [get_aval(x) for x in args], avals),
        )
        outs = ffi_call_p.bind(
            *args, call=call, result_avals=tuple(avals), vmap_method=vmap_method,
            has_side_effect=has_side_effect,
        )  # fmt: skip
        return outs if several else outs[0]

    return called


def _alone(layout: Any) -> Any:
    return None if layout is None else [layout]


def _orders(layouts: Any, count: int, which: str) -> Layouts:
    if layouts is None:
        return None
    if len(layouts) != count:
        raise ValueError(f"ffi_call got {len(layouts)} {which}_layouts for {count} arrays")
    orders = (getattr(layout, "major_to_minor", layout) for layout in layouts)
    return tuple(None if order is None else tuple(order) for order in orders)


def _aliases(
    given: Mapping[int, int], operands: Sequence[ShapedArray], results: Sequence[ShapedArray]
) -> dict[int, int]:
    for operand, result in given.items():
        for what, i, some in (("operand", operand, operands), ("result", result, results)):
            if not 0 <= i < len(some):
                raise ValueError(f"input_output_aliases names {what} {i} of {len(some)}")
        a, b = operands[operand], results[result]
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            raise ValueError(
                f"input_output_aliases: operand {operand} is {a.str_short()}, but result {result} is "
                f"{b.str_short()}"
            )
    return {result: operand for operand, result in given.items()}


def ffi_lowering(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Any]:
    """A lowering rule, for mlir.register_lowering, that calls a registered target; the parameters
    of the primitive are its attributes.

    call_target_name                 the name given to register_ffi_target.
    operand_layouts, result_layouts  for each array its dimensions, the fastest first; None:
                                     row-major.
    backend_config                   None, and
    skip_ffi_layout_processing       False: these and other options raise NotImplementedError.

    >>> from lamina.interpreters import mlir
    >>> scale_p = lamina.extend.core.Primitive("scale")
    >>> rule = mlir.register_lowering(scale_p, lamina.ffi.ffi_lowering("scale"))
    >>> callable(rule)
    True
    """
    if backend_config is not None or skip_ffi_layout_processing or lowering_args:
        raise NotImplementedError(
            f"ffi_lowering({call_target_name!r}) takes operand_layouts and result_layouts alone"
        )

    def reverse(layouts: Sequence[Any] | None) -> Any:
        return None if layouts is None else [None if x is None else tuple(x)[::-1] for x in layouts]

    def rule(ctx: Any, *values: Any, **params: Any) -> Any:
        call = Call(
            call_target_name,
            params,
            _orders(reverse(operand_layouts), len(values), "operand"),
            _orders(reverse(result_layouts), len(ctx.avals_out), "result"),
            {},
        )
        run = functools.partial(call.run, address_of(call_target_name), tuple(ctx.avals_out))
        return lower_call(ctx, run, values, has_effect=False)

    return rule


def _bound(params: Mapping[str, Any]) -> Callable[..., tuple[np.ndarray, ...]]:
    call = params["call"]
    return functools.partial(call.run, address_of(call.target), params["result_avals"])


def _refuse(primals: Any, *_: Any, call: Call, **__: Any) -> Any:
    raise ValueError(
        f"The FFI call to `{call.target}` cannot be differentiated. You can use `jax.custom_jvp` or "
        "`jax.custom_vjp` to add support."
    )


def _batching(args: list[Any], dims: list[Any], **params: Any) -> Any:
    size, method, call = batched_size(args, dims), params["vmap_method"], params["call"]
    if method is None:
        raise NotImplementedError(
            f"vmap of the FFI call to `{call.target}` needs a vmap_method: 'sequential', "
            "'sequential_unrolled', 'expand_dims', 'broadcast_all', or 'legacy_vectorized'"
        )
    if method in UNBATCHED:
        batched = tuple(a.with_axis(0, size) for a in params["result_avals"])
        operands = whole_batch(args, dims, size, UNBATCHED[method])
        grown = [len(get_aval(x).shape) > len(get_aval(a).shape) - (d is not None)
                 for x, a, d in zip(operands, args, dims, strict=True)]  # fmt: skip
        wider = Call(
            call.target,
            call.attributes,
            _with_lanes(call.in_layouts, grown),
            _with_lanes(call.out_layouts, [True] * len(batched)),
            call.aliases,
        )
        outs = ffi_call_p.bind(*operands, **{**params, "call": wider, "result_avals": batched})
        return outs, [0] * len(outs)
    each = lane_by_lane if method == "sequential" else unrolled
    return each(lambda *lane: ffi_call_p.bind(*lane, **params), args, dims, size)


def _with_lanes(layouts: Layouts, grown: Sequence[bool]) -> Layouts:
    """Layouts of arrays that have one more dimension in front, where they have grown."""
    if layouts is None:
        return None
    return tuple(
        (0, *(d + 1 for d in order)) if order is not None and new else order
        for order, new in zip(layouts, grown, strict=True)
    )


ffi_call_p = Primitive(
    "ffi_call",
    multiple_results=True,
    abstract_eval=lambda *_, result_avals, **__: list(result_avals),
    lowering=lambda ctx, *args, **params: lower_call(
        ctx, _bound(params), args, params["has_side_effect"]
    ),
    impl=lambda *args, **params: evaluate(_bound(params), "ffi_call", args),
    jvp=_refuse,
    transpose=_refuse,
    batching=_batching,
    effects=lambda params: frozenset((FFI,)) if params["has_side_effect"] else NO_EFFECTS,
)
