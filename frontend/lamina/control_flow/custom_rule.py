"""What custom_jvp and custom_vjp share: calls of functions whose rules the user gives."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from lamina.control_flow.residuals import hoist_consts
from lamina.control_flow.static_arguments import resolve_keywords
from lamina.control_flow.tracing import avals_of, debug_info, trace_function
from lamina.core import dtypes, tree
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import ClosedJaxpr
from lamina.core.source_info import at_places
from lamina.core.tangents import Zero
from lamina.core.trace import get_aval
from lamina.core.weak_cache import cache_on_jaxpr
from lamina.interpreters.batching import batch_jaxpr


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


class CustomRule:
    """A function of which some arguments, by position or name, are static Python values."""

    fun: Callable[..., Any]
    nondiff_argnums: tuple[int, ...]
    __name__: str

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
    ) -> None:
        functools.update_wrapper(self, fun)
        self.fun = fun
        nums = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        self.nondiff_argnums = tuple(sorted({*nums, *_positions(fun, nondiff_argnames)}))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def _positions(fun: Callable[..., Any], names: Sequence[str]) -> list[int]:
    if not names:
        return []
    import inspect

    known = list(inspect.signature(fun).parameters)
    for name in names:
        if name not in known:
            raise ValueError(f"nondiff_argnames: {fun} has no parameter {name!r}")
    return [known.index(name) for name in ([names] if isinstance(names, str) else names)]


class Call:
    """One call of such a function: its arguments apart, and the function of the dynamic ones."""

    def __init__(self, rule: CustomRule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        full = resolve_keywords(rule.fun, args, kwargs)
        nums = {n % len(full) for n in rule.nondiff_argnums if -len(full) <= n < len(full)}
        self.n_args = len(full)
        self.static = {i: full[i] for i in sorted(nums)}
        self.dynamic = tuple(x for i, x in enumerate(full) if i not in nums)
        self.leaves, self.in_tree = tree.flatten(self.dynamic)
        self.rule = rule

    def merged(self, dynamic: Sequence[Any]) -> list[Any]:
        """All arguments, in order."""
        given = iter(dynamic)
        return [self.static[i] if i in self.static else next(given) for i in range(self.n_args)]

    def trace(self, kind: str) -> tuple[ClosedJaxpr, list[Any], Any]:
        """The function's jaxpr, what it closes over (its first inputs), its result's structure."""
        fun, name = self.rule.fun, self.rule.__name__
        info = debug_info(fun, kind)
        avals = avals_of(self.leaves, name)
        return trace_function(lambda *xs: fun(*self.merged(xs)), self.in_tree, avals, info)


def run_rule(rule: Callable[..., Any], *args: Any) -> Any:
    """Runs a rule of the user's; its lines are the places of what it computes."""
    with at_places() as at:
        at(None)
        return rule(*args)


def name_of(rule: Any) -> str:
    """How messages call a function."""
    return getattr(rule, "__name__", None) or str(rule)


def tangent_or_zero(x: Any, out_aval: ShapedArray) -> Any:
    """What a rule gave as the tangent of a result, with symbolic zeros as Zero."""
    if isinstance(x, (SymbolicZero, Zero)) or not dtypes.is_inexact(out_aval.dtype):
        return Zero(out_aval.to_tangent_aval())
    return x


def check_consts_constant(tangents: Sequence[Any], error: type[Exception]) -> None:
    """Raises where what a function closes over is being differentiated."""
    if any(type(t) is not Zero for t in tangents):
        raise error


batched_call = cache_on_jaxpr(lambda closed, n, batched: batch_jaxpr(closed, n, batched, True))
"""The jaxpr of such a call on batches: all its results are batched."""


def without_consts(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """The jaxpr with its constants as leading inputs, and those."""
    return hoist_consts(closed) if closed.consts else (closed, [])


def shapes_of(values: Sequence[Any]) -> str:
    """For messages: f32[2], i32[]."""
    return ", ".join(get_aval(x).str_short() for x in values)
