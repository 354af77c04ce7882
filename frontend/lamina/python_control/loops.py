"""`while` and `for` on traced values: while_loop and scan over the variables that a body assigns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina.control_flow.scan import scan
from lamina.control_flow.while_loop import while_loop
from lamina.core import tree
from lamina.core.avals import ShapedArray
from lamina.core.trace import get_aval
from lamina.core.type_promotion import promote_types
from lamina.interpreters.staging import trace_to_jaxpr
from lamina.interpreters.tangents import zeros_like_aval
from lamina.python_control.jumps import RESULT
from lamina.python_control.state import (
    UNBOUND,
    State,
    Undefined,
    called,
    describe,
    is_arrays,
    is_bound,
    where,
)


class Carry:
    """Which variables a loop carries: those that are arrays or numbers before it. What the body
    assigns first is its own; other values must stay as they are.

    step  one step of the body, at a traced position: where it returns, the type of the function's
          result is known from it.
    """

    def __init__(
        self,
        state: State,
        step: Callable[[Any], None],
        own: Sequence[str] = (),
    ) -> None:
        state.refuse_mutation("a loop")
        self.state, self.place = state, where()
        self.before = list(state.get())
        self._sort_out(own)
        if RESULT in state.names and not is_bound(self.before[state.names.index(RESULT)]):
            self._give_result_a_type(step)
            self._sort_out(own)

    def _sort_out(self, own: Sequence[str]) -> None:
        named = list(enumerate(zip(self.state.names, self.before, strict=True)))
        self.carried = [i for i, (name, x) in named if is_arrays(x) and name not in own]
        self.own = [i for i, (name, x) in named if not is_bound(x) or name in own]

    def _give_result_a_type(self, step: Callable[[Any], None]) -> None:
        place = self.state.names.index(RESULT)
        leaves, treedef = tree.flatten(self.init)
        found: list[Any] = []

        def flat(position: Any, *values: Any) -> list[Any]:
            self.enter(tree.unflatten(treedef, values))
            step(position)
            result = self.state.get()[place]
            if not is_arrays(result):
                return []
            outs, result_tree = tree.flatten(result)
            found.append(result_tree)
            return outs

        avals = [get_aval(x) for x in leaves]
        closed = trace_to_jaxpr(flat, [ShapedArray((), np.dtype("int32"), False), *avals])
        if found:  # zeros that are never read: a flag says so
            zeros = [zeros_like_aval(a) for a in closed.out_avals]
            self.before[place] = tree.unflatten(found[0], zeros)
        self.state.set(self.before)

    @property
    def init(self) -> list[Any]:
        return [self.before[i] for i in self.carried]

    def enter(self, values: Sequence[Any]) -> None:
        """Gives the variables the values that they have at the start of a step."""
        now = list(self.before)
        for i in self.own:
            now[i] = UNBOUND
        for i, value in zip(self.carried, values, strict=True):
            now[i] = value
        self.state.set(now)

    def leave(self, entered: Sequence[Any]) -> list[Any]:
        """The carry after a step.

        Raises TypeError naming a variable whose structure, shape or dtype the step has changed.
        """
        after = self.state.get()
        for i, name in enumerate(self.state.names):
            if i in self.carried or i in self.own:
                continue
            if after[i] is not self.before[i] and after[i] != self.before[i]:
                raise TypeError(
                    f"{called(name)} is {describe(self.before[i])} before the loop at {self.place} "
                    f"and is assigned in it: a loop over traced values can only change arrays."
                )
        out = []
        for i, old in zip(self.carried, entered, strict=True):
            new = after[i]
            if not _may_follow(old, new):
                raise TypeError(
                    f"{called(self.state.names[i])} is {describe(old)} before a step of the loop at "
                    f"{self.place} and {describe(new)} after it: a loop over traced values needs one "
                    "structure, shape and dtype. Give it the later type before the loop, or use "
                    "another name."
                )
            out.append(new)
        return out

    def finish(self, values: Sequence[Any]) -> None:
        """Gives the variables the values that they have after the loop."""
        self.enter(values)
        now = list(self.state.get())
        for i in self.own:
            now[i] = Undefined(
                f"{called(self.state.names[i])} is assigned in the loop at {self.place} only, and "
                "how often that runs is known only when the program runs: assign it before the loop."
            )
        self.state.set(now)


def _may_follow(old: Any, new: Any) -> bool:
    if not is_arrays(new) or tree.structure(old) != tree.structure(new):
        return False
    for a, b in zip(map(get_aval, tree.leaves(old)), map(get_aval, tree.leaves(new)), strict=True):
        weaker = a.weak_type or (
            b.weak_type and promote_types((a.dtype, False), (b.dtype, True))[0] == a.dtype
        )
        if a.shape != b.shape or (a.dtype != b.dtype and not weaker):
            return False
    return True


def _matched(old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    """A weakly typed new value takes the strong type that it replaces."""
    from lamina import lax

    def match(x: Any, y: Any) -> Any:
        a, b = get_aval(x), get_aval(y)
        weaker = b.weak_type and not a.weak_type and a.dtype != b.dtype
        return lax.convert_element_type(y, a.dtype) if weaker else y

    return [tree.map(match, x, y) for x, y in zip(old, new, strict=True)]


def _as_bool(x: Any) -> Any:
    from lamina import lax

    aval = get_aval(x)
    if aval.shape:
        bool(x)  # raises, with the reason
    if aval.dtype == np.bool_:
        return lax.convert_element_type(x, np.dtype(bool))
    return lax.ne(x, np.zeros((), aval.dtype)[()])


def traced_while(test: Callable[[], Any], body: Callable[[], None], state: State) -> None:
    """Runs a `while` as a while_loop."""
    carry = Carry(state, lambda _: body())

    def holds(values: Any) -> Any:
        carry.enter(values)
        return _as_bool(test())

    def step(values: Any) -> Any:
        carry.enter(values)
        body()
        return _matched(values, carry.leave(values))

    carry.finish(while_loop(holds, step, carry.init))


def traced_for(
    length: Any,
    item: Callable[[Any], Any],
    body: Callable[[Any], None],
    stop: Callable[[], Any] | None,
    state: State,
    own: Sequence[str],
) -> None:
    """Runs `for x in items` as a scan where the length is known and nothing ends it early, else as
    a while_loop.

    item  the item at a traced position.
    own   the names that the loop assigns for each item.
    """
    from lamina import lax

    carry = Carry(state, lambda i: body(item(i)), own)

    def step(values: list[Any], i: Any) -> list[Any]:
        carry.enter(values)
        body(item(i))
        return _matched(values, carry.leave(values))

    if stop is None and isinstance(length, int):
        positions = lax.iota(np.dtype("int32"), length)
        carry.finish(scan(lambda c, i: (step(c, i), None), carry.init, positions)[0])
        return

    def holds(loop: tuple[Any, list[Any]]) -> Any:
        i, values = loop
        more = lax.lt(i, lax.convert_element_type(length, np.dtype("int32")))
        if stop is None:
            return more
        carry.enter(values)
        return lax.bitwise_and(more, lax.bitwise_not(_as_bool(stop())))

    def advance(loop: tuple[Any, list[Any]]) -> tuple[Any, list[Any]]:
        i, values = loop
        return lax.add(i, np.int32(1)), step(values, i)

    carry.finish(while_loop(holds, advance, (np.int32(0), carry.init))[1])
