"""What custom_jvp and custom_vjp share: calls of functions whose rules the user gives."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from lamina.control_flow.jit_call import transpose_call
from lamina.control_flow.mutation import SetAside, keeping_refs
from lamina.control_flow.residuals import hoist_consts
from lamina.control_flow.static_arguments import resolve_keywords
from lamina.control_flow.tracing import avals_of, debug_info, trace_function
from lamina.core import dtypes, refs, tree
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from lamina.core.source_info import at_places
from lamina.core.tangents import Zero
from lamina.core.trace import Tracer, get_aval
from lamina.core.weak_cache import cache_on_jaxpr
from lamina.core.wrapping import function_name, location_of, named_place, update_wrapper
from lamina.interpreters.batching import batch_jaxpr, move_batch
from lamina.interpreters.staging import is_staging

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")


class SymbolicZero:
    """In a rule defined with symbolic_zeros=True: a tangent or cotangent that is zero, as a type."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: len(self.aval.shape))
    size = property(lambda self: self.aval.size)
    weak_type = property(lambda self: self.aval.weak_type)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymbolicZero) and self.aval == other.aval

    def __hash__(self) -> int:
        return hash(self.aval)

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval.str_short()})"


class CustomRule(Generic[P, R]):
    """A function of which some arguments, by position or name, are static Python values."""

    fun: Callable[P, R]
    nondiff_argnums: tuple[int, ...]
    __name__: str

    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
    ) -> None:
        update_wrapper(self, fun).__name__ = function_name(fun)
        self.fun = fun
        nums = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        self.nondiff_argnums = tuple(sorted({*nums, *_positions(fun, nondiff_argnames)}))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        return setter_of_inner(self, name)

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(
        self: CustomRule[Concatenate[Any, Q], R], instance: object, owner: Any = None
    ) -> Callable[Q, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


_SETTERS = ("defjvp", "defjvps", "defvjp", "def_vmap")


def setter_of_inner(outer: Any, name: str) -> Any:
    """What sets a rule of another kind, of the function that a rule was added to; AttributeError where it has
    none: custom_vmap(custom_jvp(f)).defjvp is that of custom_jvp(f)."""
    inner = outer.__dict__.get("fun")
    if name in _SETTERS and inner is not None and hasattr(inner, name):
        return getattr(inner, name)
    raise AttributeError(f"{type(outer).__name__!r} object has no attribute {name!r}", name=name, obj=outer)


def _closed_over(fun: Callable[..., Any]) -> list[Any]:
    cells = getattr(inspect.unwrap(fun), "__closure__", None) or ()
    return tree.leaves([c.cell_contents for c in cells if _is_filled(c)])


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:  # a name that has no value yet
        return False
    return True


def _positions(fun: Callable[..., Any], names: Sequence[str]) -> list[int]:
    if not names:
        return []
    known = list(inspect.signature(fun).parameters)
    for name in names:
        if name not in known:
            raise ValueError(f"nondiff_argnames: {fun} has no parameter {name!r}")
    return [known.index(name) for name in ([names] if isinstance(names, str) else names)]


class _Lifted:
    """In a static argument: stands for an operand, by number."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class Call:
    """One call of such a function: its arguments apart, and the function of the dynamic ones.

    lifts  traced values in static arguments are operands too, before the dynamic ones, so that rules may
           run when their trace is over; `lifted` says how many.
    """

    def __init__(
        self,
        rule: CustomRule[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        lifts: bool = False,
    ) -> None:
        full = resolve_keywords(rule.fun, args, kwargs, type(rule).__name__)
        nums = {n % len(full) for n in rule.nondiff_argnums if -len(full) <= n < len(full)}
        self.n_args = len(full)
        self.static = {i: full[i] for i in sorted(nums)}
        self.dynamic = tuple(x for i, x in enumerate(full) if i not in nums)
        if refs.alive and SetAside(rule.fun, type(rule).__name__, tuple(full), {}).refs:
            refs.keep()
        self.leaves, self.in_tree = tree.flatten(keeping_refs(self.dynamic) if refs.alive else self.dynamic)
        traced = self._lift() if lifts and self.static else []
        self.leaves, self.lifted = traced + self.leaves, len(traced)
        self.rule = rule
        self.out_tree: Any = None  # of the result, once known

    def _lift(self) -> list[Tracer]:
        """The traced values in static arguments, which have their numbers instead."""
        from lamina.lax.identity import stop_gradient

        found: list[Tracer] = []

        def number(leaf: Any) -> Any:
            if not isinstance(leaf, Tracer):
                return leaf
            leaf = stop_gradient(leaf)
            if not isinstance(leaf, Tracer) or leaf.concrete() is not None:
                return leaf
            found.append(leaf)
            return _Lifted(len(found) - 1)

        self.static = {i: tree.map(number, value) for i, value in self.static.items()}
        return found

    def statics(self, leaves: Sequence[Any]) -> dict[int, Any]:
        """The static arguments; those that were lifted are the first of these values."""
        if not self.lifted:
            return self.static
        fill = lambda leaf: leaves[leaf.number] if type(leaf) is _Lifted else leaf  # noqa: E731
        return {i: tree.map(fill, value) for i, value in self.static.items()}

    def runs_now(self) -> bool:
        """Whether the function, or its rules, can run as Python does: nothing is being staged and
        the values of all arguments are known, though they may be being differentiated."""
        return (
            not is_staging()
            and all(not isinstance(x, Tracer) or x.concrete() is not None for x in self.leaves)
            and not any(isinstance(x, Tracer) for x in _closed_over(self.rule.fun))
        )

    def forget_values(self) -> None:
        """Lets go of the arguments, once they are those of an equation: the rules, which the equation
        keeps, would keep them alive."""
        self.dynamic, self.leaves = (), []

    def run(self, *leaves: Any) -> list[Any]:
        """The flat results of the function."""
        outs, self.out_tree = tree.flatten(self.rule.fun(*self.arguments(leaves)))
        return outs

    def arguments(self, leaves: Sequence[Any]) -> list[Any]:
        """All arguments, in order, of these operands."""
        dynamic = iter(tree.unflatten(self.in_tree, leaves[self.lifted :]))
        static = self.statics(leaves)
        return [static[i] if i in static else next(dynamic) for i in range(self.n_args)]

    def merged(self, dynamic: Sequence[Any]) -> list[Any]:
        """All arguments, in order, where none was lifted."""
        given = iter(dynamic)
        return [self.static[i] if i in self.static else next(given) for i in range(self.n_args)]

    def prepared(self, kind: str) -> tuple[Any, list[ShapedArray] | None, list[Any]]:
        """What `call_jaxpr` is: the function itself where it can run now, else its jaxpr. And the
        types of its results where they are known, and what the jaxpr closes over."""
        if self.runs_now():
            return self.run, None, []
        closed, consts = self.trace(kind)
        return closed, closed.out_avals, consts

    def trace(self, kind: str) -> tuple[ClosedJaxpr, list[Any]]:
        """The function's jaxpr, and what it closes over (its first inputs)."""
        fun, name = self.rule.fun, self.rule.__name__
        info = debug_info(fun, kind)
        avals = avals_of(self.leaves, name)
        if self.lifted:
            flat = tree.structure(tuple(self.leaves))
            of_leaves = lambda *xs: fun(*self.arguments(xs))  # noqa: E731
            closed, consts, self.out_tree = trace_function(of_leaves, flat, avals, info)
        else:
            closed, consts, self.out_tree = trace_function(
                lambda *xs: fun(*self.merged(xs)), self.in_tree, avals, info
            )
        return closed, consts


def call_types(*_: Any, call_jaxpr: ClosedJaxpr, **__: Any) -> list[Any]:
    """abstract_eval of such a call."""
    return call_jaxpr.out_avals


def lower_call(ctx: Any, *args: Any, call_jaxpr: ClosedJaxpr, **_: Any) -> Any:
    """lowering of such a call: rules are for derivatives alone."""
    return ctx.lower_jaxpr(call_jaxpr.jaxpr, call_jaxpr.consts, args)


def run_call(*args: Any, call_jaxpr: Any, **_: Any) -> list[Any]:
    """impl of such a call: of its jaxpr, or of the Python function where that can run."""
    run = jaxpr_as_fun(call_jaxpr) if isinstance(call_jaxpr, ClosedJaxpr) else call_jaxpr
    return run(*args)


def transpose_of_call(
    cts: list[Any], *args: Any, call_jaxpr: ClosedJaxpr, name: str, **_: Any
) -> list[Any]:
    """transpose of such a call: under linear_transpose nothing is differentiated, so that it is the
    function itself, if it is linear."""
    return transpose_call(cts, *args, jaxpr=call_jaxpr, name=name)


def run_rule(rule: Callable[..., Any], *args: Any) -> Any:
    """Runs a rule of the user's; its lines are the places of what it computes."""
    with at_places() as at:
        at(None)
        return rule(*args)


def name_of(rule: Any) -> str:
    """How messages call a function."""
    return named_place(rule)


def tangent_or_zero(x: Any, out_aval: ShapedArray) -> Any:
    """What a rule gave as the tangent of a result, with symbolic zeros as Zero."""
    if isinstance(x, (SymbolicZero, Zero)) or not dtypes.is_inexact(out_aval.dtype):
        return Zero(out_aval.to_tangent_aval())
    return x


batched_call = cache_on_jaxpr(lambda closed, n, batched: batch_jaxpr(closed, n, batched, False))
"""The jaxpr of such a call on batches, and which of its results differ from lane to lane."""


class BatchedResults:
    """Which results of such a call on batches differ from lane to lane: those of the function and, while the call is
    made, those of a rule that is asked at once."""

    def __init__(self, batched: Sequence[bool], size: int, name: str) -> None:
        self.batched, self.size, self.name = list(batched), size, name
        self._is_made = False

    def dims(self) -> list[int | None]:
        """The batch dimensions, when the call is made."""
        self._is_made = True
        return [0 if b else None for b in self.batched]

    def join(self, dims: Sequence[int | None]) -> None:
        """Makes results differ that a rule gives along such dimensions. Raises ValueError where the call is made."""
        for i, dim in enumerate(dims):
            if dim is not None and not self.batched[i]:
                if self._is_made:
                    raise ValueError(
                        f"a rule of {self.name} gives a result, or its tangent, that is batched along the mapped "
                        f"axis of a vmap, where that of {self.name} is the same for all lanes. Make it depend on "
                        "the arguments: x * 0 in place of zeros"
                    )
                self.batched[i] = True

    def placed(self, xs: Sequence[Any], dims: Sequence[int | None], which: Sequence[int]) -> list[Any]:
        """Values of these results with the batch first, where they have one."""
        return [
            move_batch(x, d, self.size) if self.batched[i] else x
            for x, d, i in zip(xs, dims, which, strict=True)
        ]


def without_consts(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """The jaxpr with its constants as leading inputs, and those."""
    return hoist_consts(closed) if closed.consts else (closed, [])


def shapes_of(values: Sequence[Any]) -> str:
    """For messages: float32[2], int32[]."""
    return ", ".join(get_aval(x).str_long() for x in values)


def place_of(rule: Any) -> str:
    """For the ends of messages: where a rule is."""
    location = location_of(rule)
    return f"\n{function_name(rule)} is at {location}." if location else ""
