"""Operations that give back their operands: stop_gradient, optimization_barrier, stage, tokens."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from lamina import lax
from lamina.core import NOT_DIFFERENTIABLE, NOT_LINEAR, Primitive, Zero, dtypes, get_aval, tree
from lamina.core.effects import Effect
from lamina.core.refs import Ref
from lamina.lax import hlo

T = TypeVar("T")


def stop_gradient(x: T) -> T:
    """x, held constant by differentiation.

    x  a tree of arrays; integers in it stay as they are.

    >>> lamina.grad(lambda x: x * lax.stop_gradient(x))(3.0)
    Array(3., dtype=float32, weak_type=True)
    """

    def stop(leaf: Any) -> Any:
        return stop_gradient_p.bind(leaf) if dtypes.is_inexact(get_aval(leaf).dtype) else leaf

    return tree.map(stop, x)


def optimization_barrier(operand: T, /) -> T:
    """operand computed in full before any user of the result: the compiler moves nothing across,
    nor does it join what is on both sides.

    operand  a tree of arrays; what is in refs is computed, too, and the refs are given back.

    >>> print(lax.optimization_barrier(jnp.array([1.0, 2.0])) + 1)
    [2. 3.]
    """
    leaves, treedef = tree.flatten(operand)
    values = [x.read() if isinstance(x, Ref) else x for x in leaves]
    values = optimization_barrier_p.bind(*values)
    for x, value in zip(leaves, values, strict=True):
        if isinstance(x, Ref):
            x.write(value)
    return tree.unflatten(treedef, [x if isinstance(x, Ref) else y for x, y in zip(leaves, values, strict=True)])


def create_token(_: Any = None) -> Any:
    """A token: an array without elements, that operations can be made to wait for.

    >>> lax.create_token().size
    0
    """
    return lax.full((0,), False, np.bool_)


def after_all(*operands: Any) -> Any:
    """A token that is there when all the given tokens are.

    operands  tokens; without any, the result is a new one.

    >>> lax.after_all(lax.create_token(), lax.create_token()).size
    0
    """
    if not operands:
        return create_token()
    return optimization_barrier(operands)[0]


def stage(x: Any, /) -> Any:
    """x as the result of an operation of the program that is being traced, where otherwise a
    constant would stay a constant.

    x  an array or a number.

    >>> lamina.make_jaxpr(lambda: lax.stage(3.0))()
    { lambda ; . let a:f32[] = copy 3.0 in (a,) }
    """
    return lax.copy(x)


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Keeps the operations that compute val in traced programs, though nobody reads it.

    val               a pytree of arrays.
    prevent_mlir_dce  keeps them in compiled programs, too.

    >>> lamina.make_jaxpr(lambda x: lax.dce_sink(lax.sin(x)))(1.0)
    { lambda ; a:f32[]. let
        b:f32[] = sin a
        dce_sink[prevent_mlir_dce=False] b
      in () }
    """
    for x in tree.leaves(val):
        dce_sink_p.bind(x, prevent_mlir_dce=bool(prevent_mlir_dce))


def _sink_lowering(ctx: Any, x: Any, *, prevent_mlir_dce: bool) -> list[Any]:
    if prevent_mlir_dce:
        hlo.optimization_barrier([x])
    return []


def _sink_batching(args: Any, dims: Any, **params: Any) -> tuple[list[Any], list[Any]]:
    dce_sink_p.bind(*args, **params)
    return [], []


def _sink_jvp(primals: Any, tangents: Any, **params: Any) -> tuple[list[Any], list[Any]]:
    dce_sink_p.bind(*primals, **params)
    return [], []


KEPT = Effect("kept")

dce_sink_p: Primitive = Primitive(
    "dce_sink",
    abstract_eval=lambda x, **_: [],
    lowering=_sink_lowering,
    jvp=_sink_jvp,
    transpose=NOT_LINEAR,
    batching=_sink_batching,
    effects=lambda params: frozenset((KEPT,)),
    multiple_results=True,
)

stop_gradient_p: Primitive = Primitive(
    "stop_gradient",
    abstract_eval=lambda x: x,
    lowering=lambda ctx, x: x,
    jvp=NOT_DIFFERENTIABLE,
    transpose=NOT_LINEAR,
    batching=lambda args, dims: (stop_gradient_p.bind(*args), dims[0]),
)


def _barrier_of_nonzero(values: Any) -> list[Any]:
    """The barrier of those values that are not symbolic zeros; the zeros as they are."""
    out = iter(optimization_barrier_p.bind(*(v for v in values if type(v) is not Zero)))
    return [v if type(v) is Zero else next(out) for v in values]


optimization_barrier_p: Primitive = Primitive(
    "optimization_barrier",
    abstract_eval=lambda *avals: list(avals),
    lowering=lambda ctx, *values: hlo.optimization_barrier(values),
    jvp=lambda primals, tangents: (
        optimization_barrier_p.bind(*primals),
        _barrier_of_nonzero(tangents),
    ),
    transpose=lambda cts, *_: _barrier_of_nonzero(cts),
    batching=lambda args, dims: (optimization_barrier_p.bind(*args), dims),
    multiple_results=True,
)
