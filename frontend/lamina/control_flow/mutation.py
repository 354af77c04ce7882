"""Refs in control flow: what a body does to refs, given or from outside, becomes part of its carry or result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from lamina.control_flow.tracing import arg_names, debug_info, refuse_refs
from lamina.core import refs, tree
from lamina.core.avals import ShapedArray
from lamina.core.refs import Ref
from lamina.core.trace import get_aval
from lamina.core.wrapping import function_name, wraps
from lamina.interpreters.staging import trace_to_jaxpr

T = TypeVar("T")


class Absent:
    """Stands where a ref was given; holds nothing."""

    @staticmethod
    def flatten(_: Any) -> tuple[tuple[()], None]:
        """No children, no static data."""
        return (), None


_ABSENT = Absent()
tree.register_node(Absent, Absent.flatten, lambda *_: _ABSENT)


class _Kept:
    """Holds a ref, and no array: in a tree it is the ref itself once that is put together again."""

    def __init__(self, ref: Ref) -> None:
        self.ref = ref


tree.register_node(_Kept, lambda kept: ((), kept.ref), lambda ref, _: ref)


def keeping_refs(values: Any) -> Any:
    """A tree whose structure holds the refs in it, so that its leaves are arrays."""
    is_kept = lambda x: type(x) is _Kept  # noqa: E731
    return tree.map(lambda x: _Kept(x) if isinstance(x, Ref) else x, values, is_leaf=is_kept)


class SetAside:
    """The arguments of a function without the refs among them.

    what   is done with the function: vmap, scan, ...
    args   and kwargs: the arguments, of which `refs` are refs.

    Raises ValueError where a ref is there twice.
    """

    def __init__(
        self, fun: Callable[..., Any], what: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        leaves, self._tree = tree.flatten((args, kwargs))
        self.fun, self.what, self.args, self.kwargs = fun, what, args, kwargs
        self.places = [i for i, x in enumerate(leaves) if isinstance(x, Ref)]
        self.refs: list[Ref] = [leaves[i] for i in self.places]
        if not self.refs:
            return
        bare = [_ABSENT if isinstance(x, Ref) else x for x in leaves]
        self.args, self.kwargs = tree.unflatten(self._tree, bare)
        names = arg_names(fun, args, kwargs)
        self.names = [names[i] if i < len(names) else f"leaf {i}" for i in self.places]
        for name, ref in zip(self.names, self.refs, strict=True):
            first = self.names[[r is ref for r in self.refs].index(True)]
            if first != name:
                raise ValueError(
                    "only one reference to a mutable array may be passed as an argument to a function, but when "
                    f"tracing {function_name(fun)} for {what} the mutable array reference of type {ref.aval} "
                    f"appeared at both {first} and {name}"
                )

    def pure(self, which: Sequence[bool] | None = None) -> Callable[..., Any]:
        """(values, *args, **kwargs) -> (fun's result, values afterwards), of the refs or of these of them (by which);
        what is given beside the values has none. Raises ValueError where the result has a ref. Does not hold the
        refs that it has values of."""
        fun, what, names, places, in_tree = self.fun, self.what, self.names, self.places, self._tree
        chosen = [True] * len(self.refs) if which is None else which
        flags = [ref.by_values for ref in self.refs]
        others = [None if c else ref for ref, c in zip(self.refs, chosen, strict=True)]

        @wraps(fun)
        def of_values(values: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
            given = iter(values)
            refs = [
                Ref(next(given), name, flag) if other is None else other
                for name, flag, other in zip(names, flags, others, strict=True)
            ]
            leaves = tree.flatten((args, kwargs), is_leaf=lambda x: x is _ABSENT)[0]
            for place, ref in zip(places, refs, strict=True):
                leaves[place] = ref
            full, named = tree.unflatten(in_tree, leaves)
            result = fun(*full, **named)
            refuse_refs(tree.leaves(result), function_name(fun), what)
            return result, [ref.end() for ref, c in zip(refs, chosen, strict=True) if c]

        return of_values

    def check_used(self, used: Sequence[Ref]) -> None:
        """Raises ValueError where a ref is among those that the function closes over."""
        for name, ref in zip(self.names, self.refs, strict=True):
            if any(x is ref for x in used):
                raise ValueError(
                    f"when tracing {function_name(self.fun)} for {self.what}, a mutable array reference of type "
                    f"{ref.aval} was both closed over and passed as the argument {name}"
                )


def watched(trace: Callable[[], T]) -> tuple[T, list[Ref]]:
    """What trace() gives, and the refs from outside that are written meanwhile, which are left as they were. Where
    there are some the trace is of no use: it has to be made again with what they hold as operands."""
    if not refs.alive:
        return trace(), []
    with refs.recording() as found:
        result = trace()
    return result, found.written


def used_by(fun: Callable[..., Any], what: str, *examples: Any) -> refs.Recording:
    """What fun does to refs from outside."""
    leaves, in_tree = tree.flatten(examples)

    def flat(*tracers: Any) -> list[Any]:
        fun(*tree.unflatten(in_tree, tracers))
        return []

    with refs.recording() as found:
        avals = [x if isinstance(x, ShapedArray) else get_aval(x) for x in leaves]
        trace_to_jaxpr(flat, avals, debug_info(fun, what, examples))
    return found


def values_of(found: Sequence[Ref]) -> list[Any]:
    """What refs hold now."""
    return [ref.read() for ref in found]


def write_all(found: Sequence[Ref], values: Sequence[Any]) -> None:
    """Puts values into refs."""
    for ref, value in zip(found, values, strict=True):
        ref.write(value)


def step_with(f: Callable[[Any, Any], Any], found: Sequence[Ref]) -> Callable[[Any, Any], Any]:
    """A scan's step that carries what is in refs."""
    call = refs.lifted(f, found)

    def step(carry: Any, x: Any) -> Any:
        (new, y), values = call(carry[1], carry[0], x)
        return (new, values), y

    return step


def loop_with(fun: Callable[[Any], Any], found: Sequence[Ref]) -> Callable[[Any], Any]:
    """A function of a loop's value and of what is in refs; gives both."""
    call = refs.lifted(fun, found)
    return lambda state: call(state[1], state[0])
