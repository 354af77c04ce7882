"""What rewritten functions call. Each does what Python does where the values are known."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lamina.core import tree
from lamina.core.trace import Tracer, get_aval, is_array_like
from lamina.errors import LaminaTypeError
from lamina.python_control import convert
from lamina.python_control.branches import traced_if
from lamina.python_control.loops import traced_for, traced_while
from lamina.python_control.state import UNBOUND as UNBOUND
from lamina.python_control.state import State as State
from lamina.python_control.state import Undefined, decided
from lamina.python_control.state import peek as peek

# A loop over a range of more steps than this is one scan, where its body allows.
_UNROLLED = 8


# ---- statements ----------------------------------------------------------------------------------
def if_stmt(pred: Any, body: Callable[[], None], orelse: Callable[[], None], state: State) -> None:
    """if pred: body() else: orelse()."""
    if decided(pred):
        (body if pred else orelse)()
    else:
        traced_if(pred, body, orelse, state)


def while_stmt(test: Callable[[], Any], body: Callable[[], None], state: State) -> None:
    """while test(): body(); a while_loop from where the test is traced."""
    while decided(pred := test()):
        if not pred:
            return
        body()
    traced_while(test, body, state)


def for_stmt(
    items: Any,
    body: Callable[[Any], None],
    stop: Callable[[], Any] | None,
    state: State,
    own: tuple[str, ...],
    repeatable: bool,
) -> None:
    """for x in items: body(x), until stop() holds.

    own         the names that stand for the item.
    repeatable  the body changes nothing but variables.
    """
    if isinstance(items, Items):
        return traced_for(items.length, items.item, body, stop, state, own)
    if isinstance(items, Tracer) and get_aval(items).shape:
        lanes = Items.of_arrays(items)
        return traced_for(lanes.length, lanes.item, body, stop, state, own)
    for position, item in enumerate(items):
        if stop is not None and not decided(flag := stop()):
            if_stmt(not_(flag), lambda item=item: body(item), lambda: None, state)  # type: ignore[misc]
            continue
        body(item)
        if stop is not None and decided(flag := stop()):
            if flag:
                break
        elif (
            position == 0
            and repeatable
            and type(items) is range
            and _rest_as_loop(items[1:], body, stop, state, own)
        ):
            break


def _rest_as_loop(rest: range, body: Any, stop: Any, state: State, own: tuple[str, ...]) -> bool:
    """After a first step in Python: the other steps as one loop, where there are many and the first
    has made traced values. False, and nothing changed, where the body needs to know the index."""
    before = state.get()
    if len(rest) <= _UNROLLED or all(map(decided, before)):
        return False
    loop = Items(len(rest), lambda i: i * rest.step + rest.start)
    try:
        traced_for(loop.length, loop.item, body, stop, state, own)
    except (LaminaTypeError, TypeError, ValueError, IndexError, NameError):
        state.set(before)
        return False
    return True


def returned(value: Any) -> Any:
    """A function's result; UnboundLocalError where part of it may have no value."""
    for x in tree.leaves(value):
        if type(x) is Undefined:
            raise UnboundLocalError(x.reason)
    return value


# ---- what for goes over --------------------------------------------------------------------------
class Items:
    """A sequence of traced items: how many, and the one at a traced position."""

    def __init__(self, length: Any, item: Callable[[Any], Any]) -> None:
        self.length, self.item = length, item

    @staticmethod
    def of_arrays(array: Any) -> Items:
        """The slices of an array along its first dimension."""
        from lamina import lax

        return Items(
            get_aval(array).shape[0],
            lambda i: lax.dynamic_index_in_dim(array, i, 0, keepdims=False),
        )

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("a range with traced bounds can only be what a `for` statement goes over")


def _range(*bounds: Any) -> Any:
    if all(map(decided, bounds)):
        return range(*bounds)
    from lamina import lax
    from lamina import numpy as jnp

    start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    span = jnp.asarray(stop - start)
    count = jnp.where(
        step > 0, (span + step - 1) // jnp.where(step > 0, step, 1),
        (-span - step - 1) // jnp.where(step < 0, -step, 1),
    )  # fmt: skip
    count = lax.convert_element_type(jnp.maximum(count, 0), np.dtype("int32"))
    dtype = span.dtype
    return Items(count, lambda i: start + lax.convert_element_type(i, dtype) * step)


def _zip(*parts: Any, **how: Any) -> Any:
    if not any(isinstance(p, (Tracer, Items)) for p in parts):
        return zip(*parts, **how)
    lanes = [p if isinstance(p, Items) else Items.of_arrays(p) for p in parts
             if isinstance(p, Items) or is_array_like(p)]  # fmt: skip
    if len(lanes) != len(parts) or not all(isinstance(s.length, int) for s in lanes):
        return zip(*parts, **how)
    return Items(min(s.length for s in lanes), lambda i: tuple(s.item(i) for s in lanes))


def _enumerate(items: Any, start: Any = 0) -> Any:
    if isinstance(items, Tracer) and get_aval(items).shape:
        items = Items.of_arrays(items)
    if isinstance(items, Items):
        return Items(items.length, lambda i: (i + start, items.item(i)))
    return enumerate(items, start)


def _reversed(items: Any) -> Any:
    if isinstance(items, Tracer) and get_aval(items).shape:
        items = Items.of_arrays(items)
    if isinstance(items, Items):
        return Items(items.length, lambda i: items.item(items.length - 1 - i))
    return reversed(items)


def _extreme(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    def call(*values: Any, **how: Any) -> Any:
        if len(values) < 2 or how or all(map(decided, values)):
            return plain(*values, **how)
        from lamina import numpy as jnp

        result = values[0]
        for x in values[1:]:
            result = getattr(jnp, name)(result, x)
        return result

    return call


_BUILTINS: dict[Any, Any] = {
    range: _range,
    zip: _zip,
    enumerate: _enumerate,
    reversed: _reversed,
    max: _extreme("maximum", max),
    min: _extreme("minimum", min),
}


def callee(fun: Any) -> Any:
    """What is called in place of `fun`: the user's own functions rewritten, builtins that decide on
    values replaced."""
    try:
        known = _BUILTINS.get(fun)
    except TypeError:  # not hashable
        return fun
    return convert.callee(fun) if known is None else known


# ---- expressions ---------------------------------------------------------------------------------
def and_(*parts: Callable[[], Any]) -> Any:
    """a and b and c; of traced booleans their conjunction."""
    value = parts[0]()
    for part in parts[1:]:
        if not decided(value):
            value = _logical("and", value, part())
        elif not value:
            return value
        else:
            value = part()
    return value


def or_(*parts: Callable[[], Any]) -> Any:
    """a or b or c; of traced booleans their disjunction."""
    value = parts[0]()
    for part in parts[1:]:
        if not decided(value):
            value = _logical("or", value, part())
        elif value:
            return value
        else:
            value = part()
    return value


def _logical(what: str, a: Any, b: Any) -> Any:
    from lamina import numpy as jnp

    if get_aval(a).shape:
        bool(a)  # raises, with the reason
    return (jnp.logical_and if what == "and" else jnp.logical_or)(a, b)


def not_(value: Any) -> Any:
    """not value."""
    if decided(value):
        return not value
    from lamina import numpy as jnp

    if get_aval(value).shape:
        bool(value)  # raises, with the reason
    return jnp.logical_not(value)


def if_expr(pred: Any, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
    """then() if pred else other()."""
    if decided(pred):
        return then() if pred else other()
    held: list[Any] = [UNBOUND]

    def hold(values: Any) -> None:
        held[0] = values[0]

    state = State(("the value of the expression",), lambda: (held[0],), hold, ())
    traced_if(pred, lambda: hold((then(),)), lambda: hold((other(),)), state)
    return held[0]


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Is": operator.is_,
    "IsNot": operator.is_not,
    "In": lambda a, b: a in b,
    "NotIn": lambda a, b: a not in b,
}


def chain(signs: tuple[str, ...], *parts: Callable[[], Any]) -> Any:
    """a < b <= c."""
    left = parts[0]()
    result: Any = True
    for sign, part in zip(signs, parts[1:], strict=True):
        right = part()
        holds = _COMPARISONS[sign](left, right)
        result = holds if decided(result) else _logical("and", result, holds)
        if decided(result) and not result:
            return result
        left = right
    return result


def assertable(value: Any) -> Any:
    """What an assert tests: a traced value passes, since nobody knows it yet."""
    return value if decided(value) else True
