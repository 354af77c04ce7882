"""jit of functions that use refs: what is in them goes in as arguments and comes out as results."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from lamina import config, tree_util
from lamina.control_flow.mutation import used_by, values_of, write_all
from lamina.core import tree
from lamina.core.refs import Ref, lifted, recording
from lamina.core.source_info import current
from lamina.core.trace import get_aval, is_array_like
from lamina.core.wrapping import wraps
from lamina.jit.options import JitOptions
from lamina.jit.traces import trace_call

_known: weakref.WeakKeyDictionary[Any, dict[Any, tuple[list[Ref], Any]]] = (
    weakref.WeakKeyDictionary()
)
_without: weakref.WeakSet[Any] = weakref.WeakSet()  # functions made here, that use no refs


class _Absent:
    """Stands where a ref was given; holds nothing."""


_ABSENT = _Absent()
tree_util.register_pytree_node(_Absent, lambda _: ((), None), lambda *_: _ABSENT)


def with_refs(
    options: JitOptions, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Callable[[], Any] | None:
    """What does this call of a jitted function that takes refs, or uses some from outside; None
    where it does neither.

    Raises ValueError where a ref is given twice, or given back.
    """
    if options.fun in _without:
        return None
    leaves, in_tree = tree.flatten((args, kwargs))
    places = [i for i, x in enumerate(leaves) if isinstance(x, Ref)]
    given = [leaves[i] for i in places]
    if len({id(ref) for ref in given}) != len(given):
        raise ValueError(
            "only one reference to a mutable array may be passed as an argument to a function, but "
            f"when tracing {options.name} for jit one was passed twice"
        )
    try:
        memory = _known.setdefault(options.fun, {})
        key = (in_tree, tuple(map(_kind, leaves)), options.static_argnums, config.trace_key())
        captured, pure = memory.get(key) or (None, None)
    except OverflowError:  # what is no argument of any function
        return None
    except TypeError:  # can't be remembered: found out each time
        memory, key, captured, pure = {}, None, None, None
    if captured is None:
        fun = _without_refs_given(options, in_tree, places)
        if places:
            rest = [_ABSENT if i in places else x for i, x in enumerate(leaves)]
            captured = _captured(options, fun, given, in_tree, rest)
        else:
            captured = _captured_by_trace(options, args, kwargs)
        if captured or places:
            pure = _pure(options, fun, captured)
        memory[key] = captured, pure
    if pure is None:
        return None

    def call() -> Any:
        bare = [_ABSENT if i in places else x for i, x in enumerate(leaves)]
        rest, named = tree.unflatten(in_tree, bare)
        everyone = [*given, *captured]
        result, values = pure((values_of(given), values_of(captured)), *rest, **named)
        write_all(everyone, values)
        return result

    return call


def _kind(leaf: Any) -> Any:
    if isinstance(leaf, Ref):
        return leaf.aval
    return get_aval(leaf) if is_array_like(leaf) else leaf


def _without_refs_given(options: JitOptions, in_tree: Any, places: list[int]) -> Any:
    """(values of the refs given, *args, **kwargs without them) -> (result, values afterwards)."""

    def fun(values: Any, *args: Any, **kwargs: Any) -> Any:
        made = [Ref(value) for value in values]
        flat = tree.flatten((args, kwargs), is_leaf=lambda x: x is _ABSENT)[0]
        for place, ref in zip(places, made, strict=True):
            flat[place] = ref
        full, named = tree.unflatten(in_tree, flat)
        result = options.fun(*full, **named)
        if any(isinstance(x, Ref) for x in tree.leaves(result)):
            raise ValueError(
                f"function {options.name} traced for jit returned a mutable array reference, but "
                "mutable array references cannot be returned. Return what is in it: ref[...]."
            )
        return result, [ref.read() for ref in made]

    return wraps(options.fun)(fun)


def _captured_by_trace(options: JitOptions, args: Any, kwargs: Any) -> list[Ref]:
    """The refs that a function uses which is given none: seen by the trace that a call makes anyway."""
    with recording() as found:
        trace_call(options, args, kwargs)
    return found.used


def _captured(
    options: JitOptions, fun: Any, given: list[Ref], in_tree: Any, rest: list[Any]
) -> list[Ref]:
    """The refs from outside that the function uses."""
    args, kwargs = tree.unflatten(in_tree, rest)
    dynamic = [x for i, x in enumerate(args) if i not in options.static_argnums]
    named = {k: v for k, v in kwargs.items() if k not in options.static_argnames}

    def call(values: Any, dynamic: Any, named: Any) -> Any:
        left = iter(dynamic)
        full = [x if i in options.static_argnums else next(left) for i, x in enumerate(args)]
        return fun(values, *full, **(kwargs | named))

    return used_by(call, "jit", values_of(given), dynamic, named).used


def _pure(options: JitOptions, fun: Any, captured: list[Ref]) -> Any:
    """The function of values, jitted."""
    from lamina.jit.function import jit

    call = lifted(fun, captured)

    def pure(values: Any, *args: Any, **kwargs: Any) -> Any:
        (result, of_given), of_captured = call(values[1], values[0], *args, **kwargs)
        return result, [*of_given, *of_captured]

    if options.in_shardings is not None or options.out_shardings is not None:
        raise NotImplementedError(
            f"[jit] {options.name} uses refs and has in_shardings or out_shardings{_place()}"
        )
    pure.__name__, pure.__qualname__ = options.name, options.name
    _without.add(pure)
    return jit(
        pure,
        static_argnums=tuple(i + 1 for i in options.static_argnums),
        static_argnames=options.static_argnames,
        donate_argnums=tuple(i + 1 for i in options.donate_argnums),
        donate_argnames=options.donate_argnames,
        keep_unused=options.keep_unused,
        inline=options.inline,
        device=options.device,
        target=options.target,
    )


def _place() -> str:
    where = current()
    return f" at {where.summary()}" if where.raw else ""
