"""HiPrim, operations whose rules are methods; and of JAX's hijax the names of types of one's own.

lamina traces arrays only: types of one's own (`register_hitype`, `HiPrimitive`) can be declared, and
raise NotImplementedError where a value of one would be traced. What is not about such types is real.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina.core.avals import AbstractValue as AbstractValue
from lamina.core.avals import ShapedArray as ShapedArray
from lamina.core.library import library
from lamina.core.refs import AbstractRef as AbstractRef
from lamina.core.tangents import Zero as Zero
from lamina.core.tangents import is_undefined_primal as is_undefined_primal
from lamina.experimental.hi_primitives import HiPrim as HiPrim
from lamina.experimental.hi_primitives import HiPrim as VJPHiPrimitive
from lamina.experimental.hi_primitives import jvp_from_lin as jvp_from_lin
from lamina.experimental.hi_primitives import linearize_from_jvp as linearize_from_jvp
from lamina.experimental.hi_primitives import vjp_from_jvp as vjp_from_jvp
from lamina.experimental.hi_primitives import vjp_from_lin as vjp_from_lin
from lamina.interpreters.accumulators import GradAccum as GradAccum
from lamina.interpreters.accumulators import NullAccum as NullAccum
from lamina.interpreters.accumulators import RefAccum as RefAccum
from lamina.interpreters.accumulators import ValAccum as ValAccum
from lamina.interpreters.tangents import instantiate_zero as instantiate_zeros

__all__ = [
    "AbstractRef", "AbstractValue", "AvalMutableQDD", "AvalQDD", "GradAccum", "HiPrim",
    "HiPrimitive", "HiType", "MutableHiType", "NullAccum", "RefAccum", "ShapedArray",
    "VJPHiPrimitive", "ValAccum", "Zero", "aval_method", "aval_property",
    "control_flow_allowed_effects", "instantiate_zeros", "is_undefined_primal", "jvp_from_lin",
    "linearize_from_jvp", "register_hitype", "vjp_from_jvp", "vjp_from_lin",
]  # fmt: skip


def _refuse(what: str) -> NotImplementedError:
    return NotImplementedError(
        f"[hijax] {what}: {library.name} traces arrays only. Use pytrees ({library}.tree_util.register_dataclass), "
        "in flax.nnx variables without hijax=True"
    )


class HiType(AbstractValue):
    """A type of one's own. Values of it can't be traced."""


class MutableHiType(HiType):
    """A type of one's own whose values change. They can't be traced."""


class AvalQDD:
    """A type with what is known of the state of a value."""

    def __init__(self, aval: Any, qdd: Any) -> None:
        self.aval, self.qdd = aval, qdd


class AvalMutableQDD:
    """A type with what is known of the state of a value, which changes."""

    def __init__(self, aval: Any, mutable_qdd: Any) -> None:
        self.aval, self.mutable_qdd = aval, mutable_qdd


class HiPrimitive:
    """An operation on types of one's own. `bind` raises NotImplementedError."""

    multiple_results = False

    def __init__(self, name: str) -> None:
        self.name = name

    def bind(self, *args: Any, **params: Any) -> Any:
        """Not here: such operations are not traced."""
        raise _refuse(self.name)


class aval_method:
    """A method of a type that its values have."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun


class aval_property:
    """A property of a type that its values have."""

    def __init__(self, fget: Callable[..., Any]) -> None:
        self.fget = fget


class _EffectTypes:
    """Kinds of effects that may stand in control flow."""

    def __init__(self) -> None:
        self.types: set[type] = set()

    def add_type(self, effect_type: type) -> None:
        """One more."""
        self.types.add(effect_type)


control_flow_allowed_effects = _EffectTypes()


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], HiType]) -> None:
    """Declares a type of one's own, for libraries that define some. Its values are not taken by
    functions under transformations here: they raise TypeError where they are traced.

    val_cls    the class of its values.
    typeof_fn  a function of a value that gives its HiType.

    >>> from lamina.experimental import hijax
    >>> class Box:
    ...     pass
    >>> hijax.register_hitype(Box, lambda box: hijax.HiType())
    """


def cur_qdd(x: Any) -> Any:
    """Not here: no traced value has a state."""
    raise _refuse(f"the state of {type(x).__name__}")
