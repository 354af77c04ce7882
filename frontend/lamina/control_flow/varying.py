"""Programs in primitives, made to fit operands that vary along more mesh axes than they did.

In a shard_map body with check_vma types say along which mesh axes a value varies. Operands that do
not all vary alike are cast (`align`); a primitive with programs in it has an `align` of its own, of
the pieces here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lamina import config
from lamina.core.avals import NOWHERE, ShapedArray
from lamina.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from lamina.core.primitive import Primitive
from lamina.core.trace import Tracer, get_aval
from lamina.core.weak_cache import cache_on_jaxpr

Varying = frozenset[Any]
Params = dict[str, Any]


def align(primitive: Primitive, args: tuple[Any, ...], params: Params) -> tuple[Any, Params]:
    """Operands, and with them programs, that vary along the same axes, for any primitive."""
    if primitive.align is not None:
        return primitive.align(args, params)
    along = NOWHERE.union(*varying(args))
    if not config.auto_pcast.value:
        _check_alike(primitive, args, along)
    if primitive.varying is not None:
        along, _ = primitive.varying(along, params)
    return tuple(cast(x, along) for x in args), params


def _check_alike(primitive: Primitive, args: tuple[Any, ...], along: Varying) -> None:
    """Raises ValueError where an operand of the program does not vary along all of these axes."""
    avals = [get_aval(x) for x in args if isinstance(x, Tracer)]
    if all(aval.vma == along for aval in avals):
        return
    given = ", ".join(aval.str_short() for aval in avals)
    raise ValueError(
        f"{primitive} requires varying manual axes to match, but its operands are {given}: lax.pcast(x, axes, "
        "to='varying') casts one, and the setting auto_pcast would cast all"
    )


def as_given(args: tuple[Any, ...], params: Params) -> tuple[Any, Params]:
    """The `align` of primitives that take operands as they come."""
    return args, params


def varying(args: Sequence[Any]) -> list[Varying]:
    """For each value, the axes along which it may vary."""
    return [get_aval(x).vma for x in args]


def cast(x: Any, along: Varying) -> Any:
    """x varying along these axes, too. Numbers and arrays that a program closes over stay what
    they are: nothing is differentiated by them."""
    from lamina import lax

    return lax.pvary(x, tuple(along)) if isinstance(x, Tracer) and along else x


def retyped(
    closed: ClosedJaxpr, inputs: Sequence[Varying], outputs: Sequence[Varying] | None = None
) -> ClosedJaxpr:
    """The program on inputs that vary along these axes, its results at least along those."""
    fits = all(a.vma == v for a, v in zip(closed.in_avals, inputs, strict=True))
    if fits and (
        outputs is None or all(v <= a.vma for a, v in zip(closed.out_avals, outputs, strict=True))
    ):
        return closed
    return _retyped(closed, tuple(inputs), None if outputs is None else tuple(outputs))


@cache_on_jaxpr
def _retyped(
    closed: ClosedJaxpr, inputs: tuple[Varying, ...], outputs: tuple[Varying, ...] | None
) -> ClosedJaxpr:
    from lamina import lax
    from lamina.interpreters.staging import trace_to_jaxpr

    def fun(*args: Any) -> list[Any]:
        outs = jaxpr_as_fun(closed)(*args)
        if outputs is None:
            return outs
        return [lax.pvary(x, tuple(v)) if v else x for x, v in zip(outs, outputs, strict=True)]

    avals: list[ShapedArray] = [
        a.update(vma=v) for a, v in zip(closed.in_avals, inputs, strict=True)
    ]
    return trace_to_jaxpr(fun, avals, closed.jaxpr.debug_info)


def grown(start: Sequence[Varying], step: Callable[[list[Varying]], Sequence[Varying]]) -> list[Varying]:  # fmt: skip
    """Along what carried values vary, once a further step does not make them vary more."""
    carry = list(start)
    while True:
        new = [a | b for a, b in zip(carry, step(carry), strict=True)]
        if new == carry:
            return carry
        carry = new


def results(closed: ClosedJaxpr, inputs: Sequence[Varying]) -> list[Varying]:
    """Along what the results vary, of inputs that vary so."""
    return [a.vma for a in retyped(closed, inputs).out_avals]


def aligns_call(name: str) -> Callable[[tuple[Any, ...], Params], tuple[Any, Params]]:
    """The `align` of a primitive that calls the program in its parameter `name` on its operands."""

    def align_call(args: tuple[Any, ...], params: Params) -> tuple[Any, Params]:
        return args, {**params, name: retyped(params[name], varying(args))}

    return align_call
