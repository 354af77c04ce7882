"""Symbolic zeros, and the marker of linear inputs in transposition."""

from __future__ import annotations

from typing import Any

from lamina.core.avals import ShapedArray


class Zero:
    """A tangent or cotangent known to be zero, with no array behind it."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    @staticmethod
    def from_primal_value(x: Any) -> Zero:
        """The zero tangent of an array."""
        from lamina.core.trace import get_aval

        return Zero(get_aval(x).to_tangent_aval())

    def __repr__(self) -> str:
        return f"Zero({self.aval.str_short()})"


class UnknownOperand(TypeError):
    """A transpose rule needed the value of an operand that it was to be linear in."""


class UndefinedPrimal:
    """In a transpose rule, an input that the operation is linear in: it has a type and no value."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # protocols that are asked of anything
            raise AttributeError(name)
        raise UnknownOperand(repr(self))

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval.str_short()})"


def is_undefined_primal(x: Any) -> bool:
    """Whether an argument of a transpose rule is what the program is linear in, of which only the
    type is known.

    x  the argument.

    >>> lamina.interpreters.ad.is_undefined_primal(jnp.ones(3))
    False
    """
    return type(x) is UndefinedPrimal
