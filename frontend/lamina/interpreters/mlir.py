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

    prim      the primitive.
    rule      rule(ctx, *values, **params) gives an IR value, or a list of them, for the results.
    platform  "cpu", or None for all.
    inline, cacheable  accepted: the rule is always applied where the primitive stands.

    Lowering raises ValueError where the rule gives another number of values than there are results.

    >>> negative_p = lamina.extend.core.Primitive("negative")
    >>> _ = negative_p.def_abstract_eval(lambda x: x)
    >>> mlir = lamina.interpreters.mlir
    >>> _ = mlir.register_lowering(negative_p, lambda ctx, x: [mlir.hlo.negate(x)])
    >>> lamina.jit(negative_p.bind)(jnp.float32(2))
    Array(-2., dtype=float32)
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
    """A lowering rule from a function of arrays, written with lamina's operations.

    fun               is given arrays, and the primitive's parameters by name.
    multiple_results  whether it gives a list of results; else one.

    >>> cubed_p = lamina.extend.core.Primitive("cubed")
    >>> _ = cubed_p.def_abstract_eval(lambda x: x)
    >>> mlir = lamina.interpreters.mlir
    >>> _ = mlir.register_lowering(cubed_p, mlir.lower_fun(lambda x: x**3, multiple_results=False))
    >>> lamina.jit(cubed_p.bind)(jnp.float32(2))
    Array(8., dtype=float32)
    """

    def rule(ctx: Any, *values: Any, **params: Any) -> list[Any]:
        def flat(*args: Any) -> list[Any]:
            out = fun(*args, **params)
            return list(out) if multiple_results else [out]

        closed = trace_to_jaxpr(flat, list(ctx.avals_in))
        return ctx.lower_jaxpr(closed.jaxpr, closed.consts, values)

    return rule


def jaxpr_subcomp(ctx: Any, jaxpr: Any, consts: Sequence[Any], *args: Any) -> list[Any]:
    """The values of a jaxpr's results, its equations emitted where a lowering rule stands.

    ctx     the rule's context.
    jaxpr   the program.
    consts  values of its constants.
    args    IR values of its inputs.

    >>> sine = lamina.make_jaxpr(jnp.sin)(0.0).jaxpr
    >>> sine_p = lamina.extend.core.Primitive("sine")
    >>> _ = sine_p.def_abstract_eval(lambda x: x)
    >>> mlir = lamina.interpreters.mlir
    >>> _ = mlir.register_lowering(sine_p, lambda ctx, x: mlir.jaxpr_subcomp(ctx, sine, [], x))
    >>> lamina.jit(sine_p.bind)(jnp.float32(0))
    Array(0., dtype=float32)
    """
    return ctx.lower_jaxpr(jaxpr, consts, args)


def flatten_ir_values(values: Any) -> list[Any]:
    """The values in nested sequences, in order.

    values  IR values, and lists and tuples of them, to any depth.

    >>> lamina.interpreters.mlir.flatten_ir_values([(), [[]]])
    []
    """
    out: list[Any] = []
    for x in values:
        out += [x] if isinstance(x, ir.Value) else flatten_ir_values(x)
    return out


def dtype_to_ir_type(dtype: Any) -> ir.Type:
    """The type of elements of a dtype.

    dtype  what np.dtype takes, or one of ml_dtypes'. ValueError or TypeError for one that arrays don't have.

    >>> with lamina.dialects.context.make_context():
    ...     print(lamina.interpreters.mlir.dtype_to_ir_type("uint8"))
    ui8
    """
    return _types.element_type(np.dtype(dtype))


def aval_to_ir_type(aval: ShapedArray) -> ir.Type:
    """The tensor type of an aval, in the current MLIR context.

    aval  a ShapedArray.

    >>> mlir = lamina.interpreters.mlir
    >>> aval = lamina.extend.core.ShapedArray((2, 3), np.dtype("float32"))
    >>> with lamina.dialects.context.make_context(), mlir.ir.Location.unknown():
    ...     print(mlir.aval_to_ir_type(aval))
    tensor<2x3xf32>
    """
    return tensor_type(aval)


def aval_to_ir_types(aval: ShapedArray) -> tuple[ir.Type, ...]:
    """aval_to_ir_type, as a tuple of one.

    aval  a ShapedArray.

    >>> mlir = lamina.interpreters.mlir
    >>> aval = lamina.extend.core.ShapedArray((2,), np.dtype("int32"))
    >>> with lamina.dialects.context.make_context(), mlir.ir.Location.unknown():
    ...     print(mlir.aval_to_ir_types(aval)[0])
    tensor<2xi32>
    """
    return (tensor_type(aval),)


def ir_constant(value: Any, aval: ShapedArray | None = None) -> ir.Value:
    """A constant in the program being lowered, for lowering rules.

    value  a number or an array.
    aval   a ShapedArray whose dtype it gets; by default its own.

    >>> plus_one_p = lamina.extend.core.Primitive("plus_one")
    >>> _ = plus_one_p.def_abstract_eval(lambda x: x)
    >>> mlir = lamina.interpreters.mlir
    >>> _ = mlir.register_lowering(plus_one_p, lambda ctx, x: [mlir.hlo.add(x, mlir.ir_constant(1.0, ctx.avals_in[0]))])
    >>> lamina.jit(plus_one_p.bind)(jnp.float32(2))
    Array(3., dtype=float32)
    """
    return constant(np.asarray(value, None if aval is None else aval.dtype))


def ir_constants(value: Any) -> tuple[ir.Value, ...]:
    """ir_constant, as a tuple of one.

    value  a number or an array.

    >>> minus_one_p = lamina.extend.core.Primitive("minus_one")
    >>> _ = minus_one_p.def_abstract_eval(lambda x: x)
    >>> mlir = lamina.interpreters.mlir
    >>> one = np.float32(1)
    >>> rule = lambda ctx, x: [mlir.hlo.subtract(x, *mlir.ir_constants(one))]
    >>> _ = mlir.register_lowering(minus_one_p, rule)
    >>> lamina.jit(minus_one_p.bind)(jnp.float32(2))
    Array(1., dtype=float32)
    """
    return (ir_constant(value),)


def i32_attr(i: int) -> ir.Attribute:
    """An integer attribute of 32 bits.

    i  an integer.

    >>> with lamina.dialects.context.make_context():
    ...     print(lamina.interpreters.mlir.i32_attr(3))
    3 : i32
    """
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), i)


def i64_attr(i: int) -> ir.Attribute:
    """An integer attribute of 64 bits.

    i  an integer.

    >>> with lamina.dialects.context.make_context():
    ...     print(lamina.interpreters.mlir.i64_attr(3))
    3 : i64
    """
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), i)


def dense_int_array(xs: Sequence[int]) -> ir.Attribute:
    """The attribute array<i64: ...>.

    xs  integers.

    >>> with lamina.dialects.context.make_context():
    ...     print(lamina.interpreters.mlir.dense_int_array([1, 2]))
    array<i64: 1, 2>
    """
    return ir.DenseI64ArrayAttr.get(list(xs))


def dense_int_elements(xs: Sequence[int]) -> ir.Attribute:
    """The attribute dense<...> : tensor<nxi64>.

    xs  integers.

    >>> with lamina.dialects.context.make_context():
    ...     print(lamina.interpreters.mlir.dense_int_elements([1, 2]))
    dense<[1, 2]> : tensor<2xi64>
    """
    return ir.DenseIntElementsAttr.get(np.asarray(xs, np.int64))


def shape_tensor(sizes: Sequence[int]) -> ir.Value:
    """Sizes as a constant i32 tensor, in the program being lowered.

    sizes  integers.

    >>> sizes_p = lamina.extend.core.Primitive("sizes")
    >>> _ = sizes_p.def_abstract_eval(lambda x: lamina.extend.core.ShapedArray((2,), np.dtype("int32")))
    >>> mlir = lamina.interpreters.mlir
    >>> _ = mlir.register_lowering(sizes_p, lambda ctx, x: [mlir.shape_tensor(ctx.avals_in[0].shape)])
    >>> lamina.jit(sizes_p.bind)(jnp.ones((4, 5)))
    Array([4, 5], dtype=int32)
    """
    return ir_constant(np.asarray(sizes, np.int32))


def module_to_string(module: Any) -> str:
    """The text of a module.

    module  an MLIR module, such as lowered.compiler_ir() gives.

    >>> module = lamina.jit(jnp.sin).lower(1.0).compiler_ir()
    >>> "stablehlo.sine" in lamina.interpreters.mlir.module_to_string(module)
    True
    """
    return str(module)


def module_to_bytecode(module: Any) -> bytes:
    """A module as MLIR bytecode.

    module  an MLIR module, such as lowered.compiler_ir() gives.

    >>> module = lamina.jit(jnp.sin).lower(1.0).compiler_ir()
    >>> lamina.interpreters.mlir.module_to_bytecode(module)[:4]
    b'ML\\xefR'
    """
    import io

    out = io.BytesIO()
    module.operation.write_bytecode(file=out)
    return out.getvalue()
