"""Primitives: the operations that transformations know. A primitive is one frozen expression."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

from lamina.core import axes as _axes
from lamina.core import placed as _placed
from lamina.core import trace as _trace
from lamina.core.avals import NOWHERE, ShapedArray
from lamina.core.effects import NO_EFFECTS, Effects


class _Marker:
    def __init__(self, name: str, doc: str) -> None:
        self.name, self.__doc__ = name, doc

    def __repr__(self) -> str:
        return self.name


def is_marker(rule: Any) -> bool:
    """Whether one of the words below stands in a rule's place."""
    return isinstance(rule, _Marker)


LINEAR: Final = _Marker("LINEAR", "As a jvp rule: the tangent map is the operation itself.")
NOT_LINEAR: Final = _Marker("NOT_LINEAR", "As a transpose rule: the operation is not linear.")
NOT_DIFFERENTIABLE: Final = _Marker(
    "NOT_DIFFERENTIABLE", "As a jvp rule: the result carries no tangent (integers, comparisons)."
)
NO_OPERANDS: Final = _Marker(
    "NO_OPERANDS", "As a batching rule: there is no operand that could be batched."
)
OWED: Final = _Marker("OWED", "A rule that could exist and does not yet.")

Rule = Callable[..., Any]
_all: weakref.WeakSet[Primitive] = weakref.WeakSet()


def all_primitives() -> list[Primitive]:
    """Every primitive that there is, those of users among them, by name."""
    return sorted(_all, key=lambda primitive: primitive.name)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Primitive:
    """An operation on arrays, with every rule that a transformation needs.

    Arrays are positional, parameters are keywords and hashable.

    name            as printed in jaxprs.
    abstract_eval   (*avals, **params) -> aval, or a list of avals with multiple_results.
    lowering        (ctx, *values, **params) -> MLIR value(s), built at the ambient insertion point.
    jvp             (primals, tangents, **params) -> (out, tangent_out); tangents may be Zero.
                    LINEAR or NOT_DIFFERENTIABLE where that is all there is to say.
    transpose       (ct, *operands, **params) -> a cotangent, None or Zero for each operand; linear
                    operands come as UndefinedPrimal. NOT_LINEAR where no operand can be linear.
    batching        (args, dims, **params) -> (out, out_dim); dims are ints or None.
    axis_batching   (axis, args, dims, **params) -> (out, out_dim): batching where `axis` (an Axis) is
                    one of the primitive's own named axes.
    axis_names      (params) -> the named axes that an application uses. Without it those that its
                    jaxprs use.
    varying         (along, params) -> (operands, results): where types say along which mesh axes a
                    value varies (shard_map with check_vma), along which the operands must and the
                    results do; `along` is where any operand does. Without it all vary along that.
    placed          (operands, *results, **params) -> the Dims of each result, where types say how
                    arrays lie on a mesh (core/placed.py): `operands` has those of the operands. Without
                    it results are split as the operands are, which have their shape.
    sums            (operands, **params) -> the Sums of the results, where operands are terms of a sum on
                    each device, or count once for all (core/placed.py). Without it they are terms where the
                    jvp is LINEAR and all operands are.
    align           (args, params) -> (args, params): the same for primitives with programs in them,
                    whose operands and programs are made to fit; results are as abstract_eval says.
    mesh            (params) -> the Mesh whose devices an application runs on together.
    partial_eval    (trace, args, params) -> results, for higher-order primitives: splits known work
                    from unknown. Without it an application with an unknown input is unknown.
    dce             (eqn, used results) -> eqn, for higher-order primitives: the application without
                    the results that nobody reads, nor what only they need.
    impl            (*args, **params) -> results: how to evaluate, where compiling the one operation
                    is not it.
    effects         (params) -> effects. Without it an operation has those of the jaxprs in its
                    parameters.
    in_python       (*args, **params): evaluates the equations inside one by one, in a Python loop or
                    branch, for higher-order primitives: how debug_nans finds the one at fault.
    shown           (params) -> params: what of its parameters a printed jaxpr shows.
    """

    name: str
    _: dataclasses.KW_ONLY
    abstract_eval: Rule
    lowering: Any = OWED
    jvp: Any = OWED
    transpose: Any = OWED
    batching: Any = OWED
    axis_batching: Rule | None = None
    axis_names: Rule | None = None
    varying: Rule | None = None
    placed: Rule | None = None
    sums: Rule | None = None
    align: Rule | None = None
    mesh: Rule | None = None
    partial_eval: Rule | None = None
    dce: Rule | None = None
    impl: Rule | None = None
    effects: Rule | None = None
    in_python: Rule | None = None
    shown: Rule | None = None
    multiple_results: bool = False

    def __post_init__(self) -> None:
        _all.add(self)

    def bind(self, *args: Any, **params: Any) -> Any:
        """Applies the primitive in the current trace."""
        if _axes._state.align is not None:
            args, params = _axes._state.align(self, args, params)
        state = _trace._state.trace
        return (state or _trace._eval_trace).process(self, args, params)  # type: ignore[union-attr]

    def effects_on(self, avals: Sequence[ShapedArray], params: dict[str, Any]) -> Effects:
        """What an application to operands of these types does besides giving results."""
        if self.effects is not None:
            found: Effects = self.effects(params)
            return found
        if not self.multiple_results:
            return NO_EFFECTS
        from lamina.core.jaxpr import subjaxprs

        return NO_EFFECTS.union(*(inner.effects for _, inner in subjaxprs(params)))

    def result_types(self, avals: Sequence[ShapedArray], params: dict[str, Any]) -> Any:
        """The type of the result, or types with multiple_results, on operands of these types."""
        out = self.abstract_eval(*avals, **params)
        if self.align is None and any([a.placed is not None for a in avals]):
            out = _placed.result_types(self, avals, params, out)
        if not _axes._state.typed or self.align is not None:
            return out
        along = NOWHERE.union(*[a.vma for a in avals])
        if self.varying is not None:
            _, along = self.varying(along, params)
        if self.multiple_results:
            return [a.update(vma=along) for a in out]
        return out.update(vma=along)

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__
