"""Functions of pytrees as functions of flat arguments, for libraries that make transformations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lamina.control_flow.tracing import debug_info as _debug_info
from lamina.core import tree
from lamina.core.jaxpr import DebugInfo
from lamina.core.trace import get_aval as shaped_abstractify
from lamina.extend.linear_util import WrappedFun, transformation2, transformation_with_aux2

__all__ = [
    "argnums_partial", "debug_info", "flatten_fun", "flatten_fun_nokwargs", "safe_map",
    "shaped_abstractify",
]  # fmt: skip


def debug_info(
    traced_for: str,
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    **_: Any,
) -> DebugInfo:
    """Name, place and argument names of a function, for messages and symbols.

    traced_for  what it is traced for, such as "jit".
    fun         the function.
    args        positional arguments, whose number names them,
    kwargs      and those by name.

    >>> lamina.api_util.debug_info("jit", lambda x, y: x, (1, 2), {}).arg_names
    ('x', 'y')
    """
    return _debug_info(fun, traced_for, args, kwargs)


@transformation_with_aux2
def flatten_fun(f: Callable[..., Any], store: Any, in_tree: Any, *args: Any) -> list[Any]:
    """The function of the leaves of (args, kwargs), a WrappedFun; and what gives its result's
    structure after a call: flatten_fun(fun, in_tree).

    f        a WrappedFun of args and kwargs; store is where the structure is kept.
    in_tree  the structure of (args, kwargs).
    args     the leaves.

    >>> fun = lamina.extend.linear_util.wrap_init(lambda x, y: {"sum": x + y})
    >>> leaves, in_tree = lamina.tree.flatten(((1,), {"y": 2}))
    >>> flat, out_tree = lamina.api_util.flatten_fun(fun, in_tree)
    >>> flat.call_wrapped(*leaves), out_tree()
    ([3], PyTreeSpec({'sum': *}))
    """
    given, named = tree.unflatten(in_tree, args)
    leaves, out_tree = tree.flatten(f(*given, **named))
    store.store(out_tree)
    return leaves


@transformation_with_aux2
def flatten_fun_nokwargs(f: Callable[..., Any], store: Any, in_tree: Any, *args: Any) -> list[Any]:
    """The function of the leaves of args, a WrappedFun; and what gives its result's structure after
    a call: flatten_fun_nokwargs(fun, in_tree).

    f        a WrappedFun of args; store is where the structure is kept.
    in_tree  the structure of args.
    args     the leaves.

    >>> fun = lamina.extend.linear_util.wrap_init(lambda pair: pair[0] + pair[1])
    >>> leaves, in_tree = lamina.tree.flatten(((1, 2),))
    >>> flat, out_tree = lamina.api_util.flatten_fun_nokwargs(fun, in_tree)
    >>> flat.call_wrapped(*leaves), out_tree()
    ([3], PyTreeSpec(*))
    """
    leaves, out_tree = tree.flatten(f(*tree.unflatten(in_tree, args)))
    store.store(out_tree)
    return leaves


class _Static:
    """An argument that stays the same, equal to an equal one of the same type."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Static)
            and type(self.value) is type(other.value)
            and bool(self.value == other.value)
        )

    def __hash__(self) -> int:
        return hash(self.value)


class _Unhashable:
    """An argument that stays the same and can't be compared: equal to nothing else."""

    def __init__(self, value: Any) -> None:
        self.value = value


@transformation2
def _with_static(f: Any, nums: tuple[int, ...], static: tuple[Any, ...], *args: Any, **kw: Any) -> Any:
    given, fixed = dict(zip(nums, args, strict=True)), iter(static)
    count = len(nums) + len(static)
    return f(*(given[i] if i in given else next(fixed).value for i in range(count)), **kw)


def argnums_partial(
    f: WrappedFun,
    dyn_argnums: int | Sequence[int],
    args: Sequence[Any],
    require_static_args_hashable: bool = True,
) -> tuple[WrappedFun, tuple[Any, ...]]:
    """A function of some of its arguments, the others being fixed; and the values of these some.

    f                             a WrappedFun.
    dyn_argnums                   the positions that stay arguments.
    args                          values of all.
    require_static_args_hashable  whether the others must be hashable.

    Raises ValueError for positions that are not there, and where another argument cannot be hashed
    but must be.

    >>> fun = lamina.extend.linear_util.wrap_init(lambda x, y: x - y)
    >>> partial, dynamic = lamina.api_util.argnums_partial(fun, 1, (10, 3))
    >>> dynamic, partial.call_wrapped(4)
    ((3,), 6)
    """
    nums = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    for num in nums:
        if not -len(args) <= num < len(args):
            raise ValueError(
                "Positional argument indices, e.g. for `static_argnums`, must have value greater than "
                f"or equal to -len(args) and less than len(args), but got value of {num} for "
                f"len(args) == {len(args)}."
            )
    nums = tuple(num % len(args) for num in nums)
    static: list[Any] = []
    for i, arg in enumerate(args):
        if i in nums:
            continue
        if not require_static_args_hashable:
            static.append(_Unhashable(arg))
            continue
        try:
            hash(arg)
        except TypeError:
            raise ValueError(
                "Non-hashable static arguments are not supported, as this can lead to unexpected "
                f"cache-misses. Static argument (index {i}) of type {type(arg)} for function "
                f"{f.__name__} is non-hashable."
            ) from None
        static.append(_Static(arg))
    return _with_static(f, nums, tuple(static)), tuple(args[i] for i in nums)


def safe_map(f: Callable[..., Any], *args: Any) -> list[Any]:
    """list(map(f, *args)) of sequences of one length.

    f     a function of as many arguments as there are sequences.
    args  the sequences.

    Raises ValueError where their lengths differ.

    >>> lamina.api_util.safe_map(max, [1, 5], [3, 4])
    [3, 5]
    """
    rows = [list(arg) for arg in args]
    if len({len(row) for row in rows}) > 1:
        raise ValueError(f"safe_map() arguments have lengths {[len(row) for row in rows]}")
    return list(map(f, *rows))
