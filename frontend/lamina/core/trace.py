"""Traces and tracers: what an operation means just now.

A transformation is an interpreter of primitives. While a user's function runs, the current trace is
the interpreter that sees each primitive; it may hand on work to its parent trace. At the bottom is
the evaluation trace, which runs the primitive. (The design is JAX's "stackless" core.)
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from lamina import errors
from lamina.core import dtypes
from lamina.core.avals import ShapedArray
from lamina.core.library import library
from lamina.core.tangents import UndefinedPrimal, UnknownOperand


class Trace:
    """An interpreter of primitives. `parent` is the trace that it stands on."""

    __slots__ = ("__weakref__", "alive", "parent")

    def __init__(self, parent: Trace | None) -> None:
        self.parent = parent
        self.alive = True

    def process(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Gives the result of applying `primitive` in this interpretation."""
        raise NotImplementedError

    def name(self) -> str:
        """How messages call it: `jit`, `vmap`, ..."""
        return type(self).__name__

    def ended(self) -> None:
        """Marks the trace as over: its tracers may no longer be used."""
        self.alive = False


class _State(threading.local):
    trace: Trace | None = None


_state = _State()
_eval_trace: Trace | None = None
_observers: list[Callable[[bool], Any]] = []


def set_eval_trace(trace: Trace) -> None:
    """Injection: the trace that runs primitives. Called once, by lamina/__init__.py."""
    global _eval_trace
    _eval_trace = trace


def observe_tracing(observer: Callable[[bool], Any]) -> None:
    """Calls `observer(is_tracing)` whenever this thread starts or stops tracing."""
    _observers.append(observer)


def eval_trace() -> Any:
    """The trace that runs primitives."""
    assert _eval_trace is not None
    return _eval_trace


def current_trace() -> Trace:
    """The interpreter that sees the next primitive."""
    return _state.trace or _eval_trace  # type: ignore[return-value]


def is_evaluating() -> bool:
    """Whether primitives run at once (no transformation is under way in this thread)."""
    return _state.trace is None


@contextmanager
def set_current_trace(trace: Trace | None) -> Iterator[None]:
    """Makes `trace` the current one for a block."""
    old = _state.trace
    new = None if trace is _eval_trace else trace
    _state.trace = new
    if (old is None) != (new is None):
        for observer in _observers:
            observer(new is not None)
    try:
        yield
    finally:
        _state.trace = old
        if (old is None) != (new is None):
            for observer in _observers:
                observer(old is not None)


class _Folding(Trace):
    """Runs what depends on no tracer, and leaves the rest to its parent."""

    __slots__ = ()

    def process(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if not any(isinstance(x, Tracer) for x in args):
            with set_current_trace(None):
                return eval_trace().process(primitive, args, params)
        assert self.parent is not None
        with set_current_trace(self.parent):
            return self.parent.process(primitive, args, params)

    def name(self) -> str:
        return "ensure_compile_time_eval"


def ensure_compile_time_eval() -> Any:
    """Within this block operations run at once, also while a function is being traced, where they
    do not depend on what is traced: their results can be used as Python values.

    >>> @lamina.jit
    ... def f(x):
    ...     with lamina.ensure_compile_time_eval():
    ...         size = int(jnp.arange(4).sum())
    ...     return x * size
    >>> float(f(2.0))
    12.0
    """
    return set_current_trace(_state.trace and _Folding(_state.trace))


def swap_trace(trace: Trace | None) -> Trace | None:
    """set_current_trace without the context manager, for the interpreters' hot paths, which go
    from one non-evaluating trace to its parent and back."""
    old = _state.trace
    new = None if trace is _eval_trace else trace
    _state.trace = new
    if (old is None) != (new is None):
        for observer in _observers:
            observer(new is not None)
    return old


# ---- types of values ---------------------------------------------------------------------------
_aval_rules: dict[type, Callable[[Any], ShapedArray]] = {}
_physical: dict[type, Callable[[Any], Any]] = {}
_types_alone: set[type] = set()


def register_value_type(
    kind: type,
    to_aval: Callable[[Any], ShapedArray],
    to_physical: Callable[[Any], Any] | None = None,
) -> None:
    """Makes instances of `kind` acceptable as arrays. `to_physical` gives the array that compiled
    programs take in their place."""
    _aval_rules[kind] = to_aval
    if to_physical is not None:
        _physical[kind] = to_physical


def register_type_alone(kind: type, to_aval: Callable[[Any], ShapedArray]) -> None:
    """Makes instances of `kind` acceptable as results of a function whose types alone are asked
    for."""
    _aval_rules[kind] = to_aval
    _types_alone.add(kind)


def has_no_value(x: Any) -> bool:
    """Whether get_aval accepts x and nothing else can be done with it."""
    return type(x) in _types_alone


def physical(x: Any) -> Any:
    """What compiled programs take for a value: mostly itself."""
    rule = _physical.get(type(x))
    return x if rule is None else rule(x)


def get_aval(x: Any) -> ShapedArray:
    """The type of an array-like value: shape, dtype and whether that is weak.

    x  a tracer, an array, a NumPy array or scalar, a Python number.

    Raises TypeError for anything else.

    >>> lamina.api_util.shaped_abstractify(np.ones((2, 3), "float32"))
    ShapedArray(float32[2,3])
    """
    if isinstance(x, Tracer):
        return x.aval
    rule = _aval_rules.get(type(x))
    if rule is not None:
        return rule(x)
    for kind in type(x).__mro__[1:]:
        if kind in _aval_rules:
            rule = _aval_rules[type(x)] = _aval_rules[kind]
            return rule(x)
    if type(x) is UndefinedPrimal:
        raise UnknownOperand(repr(x))
    if makes_array(x):
        return get_aval(x.__jax_array__())
    raise TypeError(f"{x!r} of type {type(x)} is not a valid {library.name} array type")


def is_array_like(x: Any) -> bool:
    """Whether a value can be an operand: an array, a NumPy array or scalar, a Python number.

    x  any value.

    >>> lamina.extend.core.valid_jaxtype(1.5), lamina.extend.core.valid_jaxtype("a")
    (True, False)
    """
    if isinstance(x, Tracer):
        return True
    if type(x) in _types_alone:
        return False
    if type(x) in _aval_rules:
        if type(x) is np.ndarray or isinstance(x, np.generic):
            return dtypes.is_known(x.dtype)
        return True
    return any(kind in _aval_rules for kind in type(x).__mro__[1:])


def makes_array(x: Any) -> bool:
    """Whether an object of another library gives an array for itself, as JAX asks for one."""
    return hasattr(type(x), "__jax_array__")


def _numpy_aval(x: Any) -> ShapedArray:
    if not dtypes.is_known(x.dtype):
        swapped = "" if x.dtype.isnative else (
            " Its bytes are in another machine's order: x.astype(x.dtype.newbyteorder('=')) is in this one's."
        )  # fmt: skip
        raise TypeError(
            f"Value {x!r} with dtype {x.dtype} is not a valid {library.name} array type. "
            "Only arrays of numeric types are supported." + swapped
        )
    if type(x) is not np.ndarray and isinstance(x, np.ndarray) and hasattr(x, "mask"):
        raise ValueError(
            "NumPy's masked arrays are not supported: their masks would be lost. x.filled(value) gives an "
            "array that has values instead, x.data and x.mask the two parts."
        )
    return ShapedArray(x.shape, dtypes.canonicalize(x.dtype))


def _python_aval(kind: type) -> Callable[[Any], ShapedArray]:
    cache: dict[np.dtype, ShapedArray] = {}

    def to_aval(x: Any) -> ShapedArray:
        dtype = dtypes.default_dtype(kind)
        if kind is int and not dtypes.iinfo(dtype).min <= x <= dtypes.iinfo(dtype).max:
            raise OverflowError(f"Python int {x} too large to convert to {dtype.name}")
        aval = cache.get(dtype)
        if aval is None:
            aval = cache[dtype] = ShapedArray((), dtype, weak_type=kind is not bool)
        return aval

    return to_aval


for _kind in dtypes.PYTHON_SCALARS:
    register_value_type(_kind, _python_aval(_kind))


def _numpy_physical(x: np.ndarray) -> np.ndarray:
    return np.zeros(x.shape, bool) if x.dtype == dtypes.float0 else x


register_value_type(np.ndarray, _numpy_aval, _numpy_physical)
for _scalar in (np.bool_, np.generic):
    register_value_type(_scalar, _numpy_aval)


# ---- tracers -----------------------------------------------------------------------------------
class Tracer:
    """Stands for an array while a transformation runs. Subclasses belong to one kind of trace."""

    __slots__ = ("__weakref__", "_trace")
    __array_priority__ = 1000

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    @property
    def aval(self) -> ShapedArray:
        raise NotImplementedError

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: len(self.aval.shape))
    size = property(lambda self: self.aval.size)
    weak_type = property(lambda self: self.aval.weak_type)
    mat = property(lambda self: self.aval.mat)
    nbytes = property(lambda self: self.aval.size * self.aval.dtype.itemsize)
    itemsize = property(lambda self: self.aval.dtype.itemsize)

    def concrete(self) -> Any:
        """The array this stands for, if its value is known; None if it is not."""
        return None

    def asked(self) -> Any:
        """The same where Python needs the value: it may be computed for that."""
        return self.concrete()

    def origin_note(self) -> str:
        """What to tell the user of where this value comes from."""
        return ""

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of unsized object")
        return self.aval.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.aval.shape:
            raise TypeError("iteration over a 0-d array")
        return iter([self[i] for i in range(self.aval.shape[0])])  # type: ignore[index]

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        value = self.asked()
        if value is None:
            raise errors.TracerBoolConversionError(self)
        return bool(value)

    def __index__(self) -> int:
        value = self.asked()
        if value is None:
            raise errors.TracerIntegerConversionError(self)
        return value.__index__()

    def _convert(self, kind: type) -> Any:
        value = self.asked()
        if value is None:
            raise errors.ConcretizationTypeError(
                self,
                f"The problem arose with the `{kind.__name__}` function. If trying to convert the "
                f"data type of a value, try using `x.astype({kind.__name__})` or "
                f"`{library}.numpy.array(x, {kind.__name__})` instead.",
            )
        return kind(value)

    def __int__(self) -> int:
        return self._convert(int)

    def __float__(self) -> float:
        return self._convert(float)

    def __complex__(self) -> complex:
        return self._convert(complex)

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        value = self.asked()
        if value is None:
            raise errors.TracerArrayConversionError(self)
        return np.asarray(value, *args, **kwargs)

    def tolist(self) -> Any:
        return np.asarray(self._known("tolist")).tolist()

    def tobytes(self, order: str = "C") -> bytes:
        return np.asarray(self._known("tobytes")).tobytes(order)  # type: ignore[arg-type]

    def item(self, *args: int) -> Any:
        return self._known("item").item(*args)

    def _known(self, method: str) -> Any:
        """The value, which a method needs."""
        value = self.asked()
        if value is None:
            raise errors.ConcretizationTypeError(self, f"The problem arose with the `{method}` method.")
        return value

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        value = self.asked()
        if value is None:
            raise errors.ConcretizationTypeError(
                self,
                f"The format {spec!r} needs the value, which is not there while the function is "
                f"traced. Print it when it is computed: {library}.debug.print('{{x:{spec}}}', x=x).",
            )
        return format(value, spec)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError(
            f"{library.name} arrays are immutable and do not support in-place item assignment. Instead of "
            "x[idx] = y, use x = x.at[idx].set(y)."
        )

    def block_until_ready(self) -> Tracer:
        return self

    def __copy__(self) -> Tracer:
        return self

    def __deepcopy__(self, memo: Any) -> Tracer:
        return self

    def __reduce__(self) -> Any:
        raise errors.ConcretizationTypeError(
            self, "Only arrays can be pickled: return the value from the traced function, and pickle that."
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval.str_long()})"


class OpaqueTraceState:
    """Which trace is current: equal to another of the same trace."""

    __slots__ = ("_trace",)

    def __init__(self, trace: Trace) -> None:
        self._trace = weakref.ref(trace)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueTraceState) and self._trace == other._trace

    def __hash__(self) -> int:
        return hash(self._trace)


def get_opaque_trace_state(convention: str = "flax") -> OpaqueTraceState:
    """What libraries compare to see whether they are still in the transformation that they were in.

    convention  the library's, without effect.

    >>> state = lamina.extend.core.get_opaque_trace_state
    >>> here = state()
    >>> print(state() == here, lamina.jit(lambda x: state() == here)(1.0))
    True False
    """
    return OpaqueTraceState(current_trace())
