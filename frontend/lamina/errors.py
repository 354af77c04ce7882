"""The error classes users meet. Names and meanings are JAX's, so that `except` clauses carry over."""

from __future__ import annotations

from typing import Any

from lamina.core.library import library

__all__ = [
    "ConcretizationTypeError",
    "InconclusiveDimensionOperation",
    "JaxRuntimeError",
    "JaxprTypeError",
    "KeyReuseError",
    "LaminaIndexError",
    "LaminaTypeError",
    "NonConcreteBooleanIndexError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "TypePromotionError",
    "UnexpectedTracerError",
    "origin_of",
]


class LaminaTypeError(TypeError):
    """Base of the TypeErrors that tracing raises."""


class LaminaIndexError(IndexError):
    """Base of the IndexErrors that tracing raises."""


class ConcretizationTypeError(LaminaTypeError):
    """A traced value was used where a concrete Python or NumPy value is needed."""

    def __init__(self, tracer: Any, context: str = "") -> None:
        hint = f"\n{context}" if context else ""
        super().__init__(
            "Abstract tracer value encountered where concrete value is expected: "
            f"{_describe(tracer)}{hint}{_origin(tracer)}"
        )


class TracerArrayConversionError(LaminaTypeError):
    """NumPy asked a traced value for its data."""

    def __init__(self, tracer: Any) -> None:
        super().__init__(
            "The numpy.ndarray conversion method __array__() was called on "
            f"{_describe(tracer)}{_origin(tracer)}\n"
            f"Use {library}.numpy functions instead of numpy ones inside transformed functions."
        )


class TracerBoolConversionError(ConcretizationTypeError):
    """`if`, `while`, `and`, `or`, `not` or bool() was applied to a traced value."""

    def __init__(self, tracer: Any) -> None:
        LaminaTypeError.__init__(
            self,
            f"Attempted boolean conversion of {_describe(tracer)}.{_origin(tracer)}\n"
            f"Use {library}.lax.cond, {library}.lax.while_loop or {library}.numpy.where for control flow "
            "on traced values, or mark the argument static (static_argnums).",
        )


class TracerIntegerConversionError(LaminaTypeError):
    """A traced value was used as a Python index or integer."""

    def __init__(self, tracer: Any) -> None:
        super().__init__(
            f"The __index__() method was called on {_describe(tracer)}{_origin(tracer)}\n"
            "A value that Python needs as an integer must be static (static_argnums), or use "
            f"{library}.lax.dynamic_slice / x[i] indexing on an array."
        )


class NonConcreteBooleanIndexError(LaminaIndexError):
    """A boolean mask that is traced would give a result of unknown shape."""

    def __init__(self, tracer: Any) -> None:
        super().__init__(
            f"Array boolean indices must be concrete; got {tracer.aval.str_long()}{_origin(tracer)}\n"
            "The shape of x[mask] depends on the values of mask. Use the three-argument "
            f"{library}.numpy.where(mask, x, fill) instead."
        )


class UnexpectedTracerError(LaminaTypeError):
    """A traced value was kept and used after the function that made it had ended (a leak)."""


class JaxRuntimeError(RuntimeError):
    """A compiled program failed while it ran. What a callback raised is its `__cause__`."""


class KeyReuseError(RuntimeError):
    """A random key was used twice while key-reuse checking was on."""


class TypePromotionError(ValueError):
    """The dtypes of the arguments have no common type under lamina's promotion rules."""


class JaxprTypeError(TypeError):
    """A jaxpr is not well formed."""


class InconclusiveDimensionOperation(Exception):
    """A question about a symbolic size has no answer that holds for every value of it."""


# JAX's names of the bases.
JAXTypeError, JAXIndexError = LaminaTypeError, LaminaIndexError


def origin_of(values: Any) -> str:
    """Of the first traced value among several: which function is traced, and which argument it
    comes from, as lines to append to a message; "" without a traced one.

    values  a pytree.

    >>> lamina.errors.origin_of([1.0, 2.0])
    ''
    """
    return next((_origin(v) for v in values if hasattr(v, "origin_note")), "")


def _describe(tracer: Any) -> str:
    aval = getattr(tracer, "aval", None)
    if aval is None:
        return repr(tracer)
    return f"traced array with shape {aval.str_long()}"


def _origin(tracer: Any) -> str:
    note = getattr(tracer, "origin_note", None)
    text = note() if note is not None else ""
    return f"\n{text}" if text else ""
