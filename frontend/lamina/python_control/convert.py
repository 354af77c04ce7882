"""autograph: the function with its control flow rewritten, compiled once for each definition."""

from __future__ import annotations

import ast
import copy
import functools
import sys
import sysconfig
from collections.abc import Callable
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, TypeVar

from lamina.core.source_info import is_internal
from lamina.python_control.source import SourceError, function_node
from lamina.python_control.statements import RUNTIME, is_generator, rewritten

F = TypeVar("F", bound=Callable[..., Any])

_LEAVE = "__lamina_do_not_convert__"
_CONVERTED = "__lamina_converted__"
_LIBRARIES = tuple(sysconfig.get_path(p) for p in ("stdlib", "platstdlib", "purelib", "platlib"))


def autograph(fun: F | None = None) -> Any:
    """The same function, in which if, while, for, and, or, not, return, break and continue may
    depend on traced values: they become cond, while_loop and scan.

    On values that are known while it is traced it does what Python does. Functions of the user's
    that it calls are rewritten as well, but for those marked with do_not_convert.

    Raises TypeError where the source is not to be had or is a generator's; while tracing, TypeError
    naming the variable where branches or iterations disagree on its type, and UnboundLocalError
    where a variable is read that only one branch assigns.

    fun  a function whose source Python can find.

    >>> @lamina.jit
    ... @lamina.autograph
    ... def absolute(x):
    ...     return -x if x < 0 else x
    >>> float(absolute(-3.0))
    3.0
    """
    if fun is None:
        return autograph
    if isinstance(fun, MethodType):
        return MethodType(autograph(fun.__func__), fun.__self__)
    if isinstance(fun, functools.partial):
        return functools.partial(autograph(fun.func), *fun.args, **fun.keywords)
    if not isinstance(fun, FunctionType):
        call = getattr(type(fun), "__call__", None)  # noqa: B004
        if isinstance(call, FunctionType) and not is_internal(call.__code__):
            return MethodType(autograph(call), fun)
        raise TypeError(
            f"autograph needs a function written in Python, got {fun!r}: apply it before jit, grad "
            "and the like"
        )
    if hasattr(fun, _CONVERTED):
        return fun
    return _convert(fun)


def do_not_convert(fun: F) -> F:
    """Marks a function as one that autograph calls as it is."""
    setattr(fun, _LEAVE, True)
    return fun


autograph.do_not_convert = do_not_convert  # type: ignore[attr-defined]


def callee(fun: Any) -> Any:
    """What a rewritten function calls in place of `fun`: the user's own functions rewritten."""
    if isinstance(fun, MethodType):
        new = callee(fun.__func__)
        return fun if new is fun.__func__ else MethodType(new, fun.__self__)
    if not isinstance(fun, FunctionType) or not _is_users(fun.__code__) or hasattr(fun, _LEAVE):
        return fun
    if hasattr(fun, _CONVERTED) or fun.__code__ in _made:
        return fun
    try:
        return _convert(fun)
    except SourceError:
        return fun


@functools.lru_cache(4096)
def _is_users(code: CodeType) -> bool:
    return not is_internal(code) and not code.co_filename.startswith(_LIBRARIES)


_made: set[CodeType] = set()  # and those of functions inside, which are rewritten with them


def _convert(fun: FunctionType) -> FunctionType:
    code = _converted_code(fun)
    cells = dict(zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True))
    cells[RUNTIME] = CellType(sys.modules["lamina.python_control.runtime"])
    new = FunctionType(
        code,
        fun.__globals__,
        fun.__name__,
        fun.__defaults__,
        tuple(cells[name] for name in code.co_freevars),
    )
    new.__kwdefaults__ = fun.__kwdefaults__
    functools.update_wrapper(new, fun)
    del new.__dict__[
        "__wrapped__"
    ]  # tools that look for the source would find the other one's signature
    new.__dict__[_CONVERTED] = True
    return new


_codes: dict[CodeType, CodeType] = {}


def _converted_code(fun: FunctionType) -> CodeType:
    import lamina.python_control.runtime  # noqa: F401  (what the code calls)

    known = _codes.get(fun.__code__)
    if known is None:
        known = _codes[fun.__code__] = _compile(fun)
        _remember(known)
    return known


def _remember(code: CodeType) -> None:
    _made.add(code)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            _remember(inner)


def _compile(fun: FunctionType) -> CodeType:
    node = function_node(fun)
    if is_generator(node):
        raise SourceError(f"{fun.__qualname__} is a generator or a coroutine, which has no jaxpr")
    owner = fun.__code__.co_qualname.split(".")[:-1]
    private_to = owner[-1] if owner and owner[-1] != "<locals>" else None
    new = rewritten(copy.deepcopy(node), private_to)
    # Defaults are taken from the function itself; here they only have to be syntax.
    new.name = "__made"  # its own name in it is the user's
    new.args.defaults = []
    new.args.kw_defaults = [None] * len(new.args.kwonlyargs)
    outer = ast.parse("def __factory(): pass").body[0]
    assert isinstance(outer, ast.FunctionDef)
    outer.args.args = [ast.arg(name) for name in (*fun.__code__.co_freevars, RUNTIME)]
    outer.body = [new]
    module = ast.fix_missing_locations(ast.Module([outer], []))
    compiled = compile(module, fun.__code__.co_filename, "exec", dont_inherit=True)
    code = _inner(_inner(compiled))
    return _named(code.replace(co_name=fun.__code__.co_name), code.co_qualname, fun.__qualname__)


def _named(code: CodeType, made: str, own: str) -> CodeType:
    """Code objects called as the user's functions, parts of a function as it."""
    name = own + code.co_qualname.removeprefix(made)
    while (part := name.rpartition(".<locals>."))[2].startswith("__"):
        name = part[0]
    consts = tuple(_named(c, made, own) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_qualname=name, co_consts=consts)


def _inner(code: CodeType) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType))
