"""Functions with layers around them, as libraries build them (JAX's names).

    @transformation2
    def doubled(f, *args): return 2 * f(*args)

    doubled(wrap_init(g, debug_info=...)).call_wrapped(x)      # 2 * g(x)

A layer is a function of the function inside, the layer's own fixed arguments and those of the call.
With an aux it also takes a store, into which it puts what is to be asked for after the call.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

from lamina import config
from lamina.core import current_mesh
from lamina.core.jaxpr import NO_DEBUG_INFO, DebugInfo

__all__ = [
    "StoreException", "WrappedFun", "cache", "merge_linear_aux", "transformation", "transformation2",
    "transformation_with_aux", "transformation_with_aux2", "wrap_init",
]  # fmt: skip

_EMPTY: Any = object()


class StoreException(Exception):
    """A store was read before anything was put into it, or filled twice."""


class Store:
    """Holds one value, put there once; with again_if_equal also a value equal to it."""

    def __init__(self, again_if_equal: bool = False) -> None:
        self._value, self._again = _EMPTY, again_if_equal

    def store(self, val: Any) -> None:
        """Puts a value there; StoreException where there is one."""
        if self._value is not _EMPTY and not (self._again and bool(self._value == val)):
            raise StoreException("Store occupied" + (" with not-equal value" * self._again))
        self._value = val

    def reset(self) -> None:
        """Empties the store."""
        self._value = _EMPTY

    def __bool__(self) -> bool:
        return self._value is not _EMPTY

    @property
    def val(self) -> Any:
        """The value; StoreException where there is none."""
        if self._value is _EMPTY:
            raise StoreException("Store empty")
        return self._value


class _Layer(NamedTuple):
    """What is around a function: `apply(inside, *fixed, *args)`, or `apply(inside, store, *fixed,
    *args)`."""

    apply: Callable[..., Any]
    fixed: tuple[Any, ...]


class WrappedFun:
    """A function and the layers around it, the outermost first. Equal to another of the same function
    in the same layers, whatever their stores hold."""

    def __init__(
        self,
        f: Callable[..., Any],
        transforms: tuple[_Layer, ...],
        stores: tuple[Store | None, ...],
        params: tuple[tuple[str, Any], ...],
        debug_info: DebugInfo,
    ) -> None:
        self.f, self.transforms, self.stores = f, transforms, stores
        self.params, self.debug_info = params, debug_info
        self.in_type = None

    @property
    def __name__(self) -> str:  # type: ignore[override]
        return getattr(self.f, "__name__", "<unnamed wrapped function>")

    def wrap(
        self, gen: Callable[..., Any], gen_static_args: Sequence[Any], out_store: Store | None
    ) -> WrappedFun:
        """The function with one more layer around it."""
        return WrappedFun(
            self.f,
            (_Layer(gen, tuple(gen_static_args)), *self.transforms),
            (out_store, *self.stores),
            self.params,
            self.debug_info,
        )

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function through its layers."""
        call = functools.partial(self.f, **dict(self.params)) if self.params else self.f
        for layer, store in zip(reversed(self.transforms), reversed(self.stores), strict=True):
            aux = () if store is None else (store,)
            call = functools.partial(layer.apply, call, *aux, *layer.fixed)
        return call(*args, **kwargs)

    def populate_stores(self, stores: Sequence[Store | None]) -> None:
        """Fills the stores with what others hold."""
        for mine, other in zip(self.stores, stores, strict=True):
            if mine is not None and other is not None:
                mine.store(other.val)

    def replace_debug_info(self, dbg: DebugInfo) -> WrappedFun:
        """The same with another origin."""
        return WrappedFun(self.f, self.transforms, self.stores, self.params, dbg)

    def with_unknown_names(self) -> WrappedFun:
        """The same, with nothing said of its arguments and results."""
        info = self.debug_info
        return self.replace_debug_info(DebugInfo(info.kind, info.function, info.location))

    def _key(self) -> tuple[Any, ...]:
        return self.f, self.transforms, self.params, self.debug_info

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedFun) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        layers = [f"  in {layer.apply.__name__} {layer.fixed}" for layer in reversed(self.transforms)]
        return "\n".join([f"Wrapped function {self.__name__}", *layers])


def wrap_init(
    f: Callable[..., Any], params: dict[str, Any] | None = None, *, debug_info: Any = None
) -> WrappedFun:
    """A function that transformations can be put around, layer by layer: a WrappedFun.

    f           the function.
    params      keyword arguments that it is given at each call.
    debug_info  where it comes from, for messages.

    >>> lamina.extend.linear_util.wrap_init(lambda x, y: x + y, {"y": 2}).call_wrapped(1)
    3
    """
    fixed = () if params is None else tuple(sorted(params.items()))
    return WrappedFun(f, (), (), fixed, debug_info or NO_DEBUG_INFO)


def transformation2(gen: Callable[..., Any]) -> Callable[..., WrappedFun]:
    """A layer from a function: (fun, *fixed) -> a WrappedFun.

    gen  gen(f, *fixed, *args, **kwargs) -> result, where f is the function inside.

    >>> util = lamina.extend.linear_util
    >>> doubled = util.transformation2(lambda f, factor, x: factor * f(x))
    >>> doubled(util.wrap_init(lambda x: x + 1), 2).call_wrapped(3)
    8
    """

    @functools.wraps(gen)
    def wrap(fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
        return fun.wrap(gen, gen_static_args, None)

    return wrap


def transformation_with_aux2(gen: Callable[..., Any]) -> Callable[..., Any]:
    """A layer that gives something beside its result: (fun, *fixed) -> a WrappedFun, and a function
    that gives this after a call.

    gen  gen(f, store, *fixed, *args, **kwargs) -> result, which calls store.store(aux).

    >>> util = lamina.extend.linear_util
    >>> @util.transformation_with_aux2
    ... def counted(f, store, *args):
    ...     store.store(len(args))
    ...     return f(*args)
    >>> fun, count = counted(util.wrap_init(max))
    >>> print(fun.call_wrapped(3, 5), count())
    5 2
    """

    @functools.wraps(gen)
    def wrap(
        fun: WrappedFun, *gen_static_args: Any, use_eq_store: bool = False, unk_names: bool = False
    ) -> tuple[WrappedFun, Callable[[], Any]]:
        store = Store(again_if_equal=use_eq_store)
        wrapped = fun.wrap(gen, gen_static_args, store)
        return wrapped.with_unknown_names() if unk_names else wrapped, lambda: store.val

    return wrap


def transformation(gen: Callable[..., Generator[Any, Any, Any]]) -> Callable[..., WrappedFun]:
    """transformation2 of a generator, the older form.

    gen  gen(*fixed, *args, **kwargs) yields the arguments for the function inside as (args,
         kwargs), is sent its result, and yields the result.

    >>> util = lamina.extend.linear_util
    >>> @util.transformation
    ... def doubled(x):
    ...     result = yield (x,), {}
    ...     yield 2 * result
    >>> doubled(util.wrap_init(lambda x: x + 1)).call_wrapped(3)
    8
    """

    @functools.wraps(gen)
    def around(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        steps = gen(*args, **kwargs)
        inner_args, inner_kwargs = next(steps)
        return steps.send(f(*inner_args, **inner_kwargs))

    return transformation2(around)


def transformation_with_aux(gen: Callable[..., Generator[Any, Any, Any]]) -> Callable[..., Any]:
    """transformation_with_aux2 of a generator, the older form.

    gen  as of transformation; it last yields (result, aux).

    >>> util = lamina.extend.linear_util
    >>> @util.transformation_with_aux
    ... def counted(*args):
    ...     result = yield args, {}
    ...     yield result, len(args)
    >>> fun, count = counted(util.wrap_init(max))
    >>> print(fun.call_wrapped(3, 5), count())
    5 2
    """

    @functools.wraps(gen)
    def around(f: Callable[..., Any], store: Store, *args: Any, **kwargs: Any) -> Any:
        steps = gen(*args, **kwargs)
        inner_args, inner_kwargs = next(steps)
        result, aux = steps.send(f(*inner_args, **inner_kwargs))
        store.store(aux)
        return result

    return transformation_with_aux2(around)


def cache(call: Callable[..., Any], *, explain: Any = None) -> Callable[..., Any]:
    """call(fun, *args) of a WrappedFun, remembered while the function lives and settings that
    matter to traces are the same. Stores are filled at each call.

    call     the function that is remembered; its other arguments must be hashable.
    explain  without effect.

    >>> util = lamina.extend.linear_util
    >>> @util.cache
    ... def name_of(fun, suffix):
    ...     return fun.f.__name__ + suffix
    >>> name_of(util.wrap_init(max), "_1")
    'max_1'
    """
    found: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()

    @functools.wraps(call)
    def remembered(fun: WrappedFun, *args: Any) -> Any:
        known = found.setdefault(fun.f, {})
        key = (fun.transforms, fun.params, args, config.trace_key(), current_mesh.key())
        if key in known:
            answer, stores = known[key]
            fun.populate_stores(stores)
            return answer
        answer = call(fun, *args)
        known[key] = answer, fun.stores
        return answer

    remembered.cache_clear = found.clear  # type: ignore[attr-defined]
    return remembered


def merge_linear_aux(aux1: Callable[[], Any], aux2: Callable[[], Any]) -> tuple[bool, Any]:
    """Of two functions that give an aux the one that was filled: (whether that is the first, its
    value).

    aux1, aux2  as transformation_with_aux2's layers give them.

    Raises StoreException where both are filled, or neither.

    >>> util = lamina.extend.linear_util
    >>> @util.transformation_with_aux2
    ... def counted(f, store, *args):
    ...     store.store(len(args))
    ...     return f(*args)
    >>> (first, aux1), (second, aux2) = counted(util.wrap_init(max)), counted(util.wrap_init(min))
    >>> util.merge_linear_aux(aux1, aux2) if second.call_wrapped(3, 5) else None
    (False, 2)
    """
    found = []
    for is_first, aux in ((True, aux1), (False, aux2)):
        with contextlib.suppress(StoreException):
            found.append((is_first, aux()))
    if len(found) != 1:
        raise StoreException("both stores occupied" if found else "neither store occupied")
    return found[0]
