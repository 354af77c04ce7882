"""jit of functions that use refs: what is in them goes in as arguments and comes out as results."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from lamina import config
from lamina.control_flow.mutation import Absent, SetAside, used_by, values_of, write_all
from lamina.core import tree
from lamina.core.refs import Ref, lifted, recording
from lamina.core.source_info import current
from lamina.core.trace import get_aval, is_array_like, is_evaluating
from lamina.jit.options import JitOptions
from lamina.jit.traces import trace_call
from lamina.records import Record
from lamina.runtime import register_node

register_node(Absent, Absent.flatten)

_without: weakref.WeakSet[Any] = weakref.WeakSet()  # functions made here, that use no refs


class _Memory(Record):
    """What is known of a jitted function for one kind of arguments."""

    captured: Sequence[Ref]
    pure: Callable[..., Any] | None  # the function of values, jitted; None where it uses no refs
    kept: bool  # whether rules of the user's keep refs


_known: weakref.WeakKeyDictionary[Any, dict[Any, _Memory]] = weakref.WeakKeyDictionary()


def with_refs(
    options: JitOptions, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Callable[[], Any] | None:
    """What does this call of a jitted function that takes refs, or uses some from outside; None
    where it does neither.

    Raises ValueError where a ref is given twice, or given back.
    """
    aside, found = _of_call(options, args, kwargs)
    if found is None or aside is None:
        return None
    if found.kept and not is_evaluating():
        # What its rules write when derivatives are taken is written to the refs themselves.
        return lambda: options.fun(*args, **kwargs)
    pure = found.pure
    return None if pure is None else lambda: _run(pure, aside, found.captured)


def staged(
    options: JitOptions, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...], dict[str, Any], Callable[..., Any]] | None:
    """For the stages of a jitted function that takes refs, or uses some from outside: the function of values, jitted,
    its arguments, and what calls one that is compiled of it: call(compiled, args, kwargs). None where it does neither.
    """
    aside, found = _of_call(options, args, kwargs)
    if found is None or aside is None or found.pure is None:
        return None
    fun, captured = options.fun, found.captured

    def call(compiled: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return _run(compiled, SetAside(fun, "jit", args, kwargs), captured)

    return found.pure, ((values_of(aside.refs), values_of(captured)), *aside.args), aside.kwargs, call


def _run(pure: Callable[..., Any], aside: SetAside, captured: Sequence[Ref]) -> Any:
    result, after = pure((values_of(aside.refs), values_of(captured)), *aside.args, **aside.kwargs)
    write_all([*aside.refs, *captured], after)
    return result


def _of_call(
    options: JitOptions, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[SetAside | None, _Memory | None]:
    """The refs among the arguments, and what is known of the function for such ones; None where it can't be called."""
    if options.fun in _without:
        return None, None
    aside = SetAside(options.fun, "jit", args, kwargs)
    leaves, in_tree = tree.flatten((args, kwargs))
    memory: dict[Any, _Memory] = {}
    key: Any = None
    found = None
    try:
        key = (in_tree, tuple(map(_kind, leaves)), options.static_argnums, config.trace_key())
        memory = _known.setdefault(options.fun, memory)
        found = memory.get(key)
    except OverflowError:  # what is no argument of any function
        return None, None
    except TypeError:  # can't be remembered: found out each time
        memory, key = {}, None
    if found is None:
        found = memory[key] = _seen(options, aside, args, kwargs)
    return aside, found


def _kind(leaf: Any) -> Any:
    if isinstance(leaf, Ref):
        return leaf.aval, leaf.by_values
    return get_aval(leaf) if is_array_like(leaf) else leaf


def _seen(options: JitOptions, aside: SetAside, args: Any, kwargs: Any) -> _Memory:
    """What a call does with refs. Where it is given none that is seen by the trace that a call makes anyway."""
    if not aside.refs:
        with recording() as found:
            trace_call(options, args, kwargs)
        pure = _pure(options, _given_none(options.fun), found.used) if found.used else None
        return _Memory(found.used, pure, found.kept)
    fun = aside.pure()
    dynamic = [x for i, x in enumerate(aside.args) if i not in options.static_argnums]
    named = {k: v for k, v in aside.kwargs.items() if k not in options.static_argnames}

    def call(values: Any, dynamic: Any, named: Any) -> Any:
        left = iter(dynamic)
        full = [x if i in options.static_argnums else next(left) for i, x in enumerate(aside.args)]
        return fun(values, *full, **(aside.kwargs | named))

    found = used_by(call, "jit", values_of(aside.refs), dynamic, named)
    aside.check_used(found.used)
    return _Memory(found.used, _pure(options, fun, found.used), found.kept)


def _given_none(fun: Callable[..., Any]) -> Callable[..., Any]:
    """(no values, *args, **kwargs) -> (fun's result, no values), for a function that is given no refs."""
    return lambda _, *args, **kwargs: (fun(*args, **kwargs), [])


def _pure(options: JitOptions, fun: Callable[..., Any], captured: list[Ref]) -> Callable[..., Any]:
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
