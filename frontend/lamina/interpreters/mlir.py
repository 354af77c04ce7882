"""Lowering rules of primitives, as libraries register them (JAX's names).

A rule is rule(ctx, *values, **params) -> a sequence of MLIR values, built at the ambient insertion
point. `hlo` makes StableHLO ops, `func` and `ir` are MLIR's own Python bindings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina.core.avals import ShapedArray
from lamina.core.primitive import Primitive
from lamina.core.rule_tables import set_rule
from lamina.dialects import types as _types
from lamina.dialects.vendors import func as func
from lamina.dialects.vendors import ir as ir
from lamina.interpreters import hlo_ops as hlo
from lamina.interpreters.lowering import LoweringContext as LoweringRuleContext
from lamina.interpreters.lowering import ModuleContext as ModuleContext
from lamina.interpreters.lowering import constant, tensor_type
from lamina.interpreters.lowering import lower_module as lower_jaxpr_to_module
from lamina.interpreters.staging import trace_to_jaxpr

__all__ = [
    "LoweringRuleContext", "ModuleContext", "aval_to_ir_type", "aval_to_ir_types", 
    "dense_int_array", "dense_int_elements", "dtype_to_ir_type", "flatten_ir_values", "func", "hlo",
    "i32_attr", "i64_attr", "ir", "ir_constant", "ir_constants", "jaxpr_subcomp", "lower_fun",
    "lower_jaxpr_to_module", "module_to_bytecode", "module_to_string", "register_lowering",
    "shape_tensor",
]  # fmt: skip

Rule = Callable[..., Any]
_for_this_platform: set[Primitive] = set()


def register_lowering(
    prim: Primitive,
    rule: Rule,
    platform: str | None = None,
    inline: bool = True,
    cacheable: bool = True,
) -> Rule:
    """Sets how a primitive is lowered; a rule for "cpu" goes before one for all platforms, rules for
    others have no effect here. Gives the rule, so that it can decorate one.

    inline, cacheable  accepted: the rule is always applied where the primitive stands.
    """
    if platform not in (None, "cpu") or (platform is None and prim in _for_this_platform):
        return rule
    if platform == "cpu":
        _for_this_platform.add(prim)

    def lowering(ctx: Any, *values: Any, **params: Any) -> Any:
        out = rule(ctx, *values, **params)
        if isinstance(out, ir.Value):
            out = [out]
        flat = flatten_ir_values(out)
        if len(flat) != len(ctx.avals_out):
            raise ValueError(
                f"the lowering rule of '{prim}' gave {len(flat)} values where the primitive has "
                f"{len(ctx.avals_out)} results"
            )
        return flat if prim.multiple_results else flat[0]

    set_rule(prim, "lowering", lowering)
    return rule


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> Rule:
    """A lowering rule from a function of arrays, written with lamina's operations."""

    def rule(ctx: Any, *values: Any, **params: Any) -> list[Any]:
        def flat(*args: Any) -> list[Any]:
            out = fun(*args, **params)
            return list(out) if multiple_results else [out]

        closed = trace_to_jaxpr(flat, list(ctx.avals_in))
        return ctx.lower_jaxpr(closed.jaxpr, closed.consts, values)

    return rule


def jaxpr_subcomp(ctx: Any, jaxpr: Any, consts: Sequence[Any], *args: Any) -> list[Any]:
    """The values of a jaxpr's results, its equations emitted here."""
    return ctx.lower_jaxpr(jaxpr, consts, args)


def flatten_ir_values(values: Any) -> list[Any]:
    """The values in nested sequences, in order."""
    out: list[Any] = []
    for x in values:
        out += [x] if isinstance(x, ir.Value) else flatten_ir_values(x)
    return out


def dtype_to_ir_type(dtype: Any) -> ir.Type:
    """The type of elements of a dtype."""
    return _types.element_type(np.dtype(dtype))


def aval_to_ir_type(aval: ShapedArray) -> ir.Type:
    """The tensor type of an aval."""
    return tensor_type(aval)


def aval_to_ir_types(aval: ShapedArray) -> tuple[ir.Type, ...]:
    """aval_to_ir_type, as a tuple of one."""
    return (tensor_type(aval),)


def ir_constant(value: Any, aval: ShapedArray | None = None) -> ir.Value:
    """A constant in the program being lowered."""
    return constant(np.asarray(value, None if aval is None else aval.dtype))


def ir_constants(value: Any) -> tuple[ir.Value, ...]:
    """ir_constant, as a tuple of one."""
    return (ir_constant(value),)


def i32_attr(i: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), i)


def i64_attr(i: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), i)


def dense_int_array(xs: Sequence[int]) -> ir.Attribute:
    """array<i64: ...>"""
    return ir.DenseI64ArrayAttr.get(list(xs))


def dense_int_elements(xs: Sequence[int]) -> ir.Attribute:
    """dense<...> : tensor<nxi64>"""
    return ir.DenseIntElementsAttr.get(np.asarray(xs, np.int64))


def shape_tensor(sizes: Sequence[int]) -> ir.Value:
    """Sizes as a constant i32 tensor."""
    return ir_constant(np.asarray(sizes, np.int32))


def module_to_string(module: Any) -> str:
    """The text of a module."""
    return str(module)


def module_to_bytecode(module: Any) -> bytes:
    """A module as MLIR bytecode."""
    import io

    out = io.BytesIO()
    module.operation.write_bytecode(file=out)
    return out.getvalue()
