"""Replace elementary functions by arithmetic that vectorises.

Each `math` op that has a formula, and each remainder of floats, becomes a call of a private
function, one per operation and type, that LLVM inlines before it vectorises. A scalar loop around it
then becomes vector code; a call of libm would keep it scalar. f16 and bf16 are computed in f32 and
rounded once. A sine and a cosine of the same operand share their work; powers of 1.5 and -1.5 are made
from a square root. Where `vector_bits` are 512, some formulas of f32 use what AVX-512 has: tables in registers
(`lookups`), guesses, limits in one instruction. `gpu`: exp of f32 has that of GPUs. Leaves alone what has no
formula: libm computes it.

example: test/passes/math/expand_functions.mlir
"""

from __future__ import annotations

from collections.abc import Callable

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.math.formulas import (
    exponential,
    exponential_gpu,
    hyperbolic,
    hyperbolic_pieces,
    logarithm,
    power,
    remainder,
    root,
    rounding,
    trigonometric,
    trigonometric_64,
    trigonometric_near,
)
from lamina.passes.math.near_and_far import NearAndFar, define_near_and_far
from lamina.passes.math.terms import Lane, Term
from lamina.passes.math.variants import define

Formula = Callable[..., Term] | NearAndFar


def _in_both(formula: Formula) -> dict[int, Formula]:
    return {32: formula, 64: formula}


def _near_and_far(formula: Callable[..., Term]) -> NearAndFar:
    return NearAndFar(trigonometric.near(formula), formula, trigonometric.NEAR)


def _near_and_far_64(formula: Callable[..., Term]) -> NearAndFar:
    near = trigonometric_64.near(formula)
    return NearAndFar(near, formula, trigonometric_64.NEAR, far_is_long=True)


_FORMULAS: dict[str, dict[int, Formula]] = {
    "arith.remf": {32: remainder.remainder},
    "math.atan2": {32: trigonometric.atan2, 64: trigonometric_64.atan2},
    "math.cbrt": _in_both(root.cbrt),
    "math.ceil": _in_both(rounding.ceil),
    "math.cos": {32: _near_and_far(trigonometric.cos), 64: _near_and_far_64(trigonometric_64.cos)},
    "math.exp": _in_both(exponential.exp),
    "math.expm1": _in_both(exponential.expm1),
    "math.floor": _in_both(rounding.floor),
    "math.log": _in_both(logarithm.log),
    "math.log1p": _in_both(logarithm.log1p),
    "math.powf": _in_both(power.power),
    "math.rsqrt": {32: root.rsqrt},
    "math.sin": {32: _near_and_far(trigonometric.sin), 64: _near_and_far_64(trigonometric_64.sin)},
    "math.tan": {32: _near_and_far(trigonometric.tan), 64: _near_and_far_64(trigonometric_64.tan)},
    "math.tanh": _in_both(hyperbolic.tanh),
}
# For functions of the same operand, whose common work LLVM does once.
_BESIDE: dict[str, tuple[str, dict[int, Formula]]] = {
    "math.sin": (
        "math.cos",
        {32: _near_and_far(trigonometric.sin_beside_cos), 64: _near_and_far_64(trigonometric_64.sin)},
    ),
    "math.cos": (
        "math.sin",
        {32: _near_and_far(trigonometric.cos_beside_sin), 64: _near_and_far_64(trigonometric_64.cos)},
    ),
}
_POWERS = {
    1.5: ("math.three_halves", _in_both(power.three_halves)),
    -1.5: ("math.inverse_three_halves", _in_both(power.inverse_three_halves)),
}
"""By the exponent."""
# In f32 where 512 bits make a register, which then holds tables. What sine and cosine share is seen.
_IN_512_BITS: dict[str, Formula] = {
    "math.cos": NearAndFar(trigonometric_near.cos, trigonometric.cos, trigonometric_near.LIMIT),
    "math.sin": NearAndFar(trigonometric_near.sin, trigonometric.sin, trigonometric_near.LIMIT),
    "math.log": logarithm.log_in_512,
    "math.log1p": logarithm.log1p_in_512,
    "math.rsqrt": root.rsqrt_in_512,
    "math.tanh": hyperbolic_pieces.tanh,
}


_ON_GPUS: dict[str, dict[bool, Formula]] = {
    "math.exp": {False: exponential_gpu.exp, True: exponential_gpu.exp_rounded},
}
"""In f32; by whether the result is rounded to 16 bits."""


class ExpandFunctions(Pass):
    """See the module's docstring."""

    vector_bits: int = 0
    gpu: bool = False

    def run(self, module: ir.Module) -> None:
        found = find_ops(module, *_FORMULAS)
        functions: dict[tuple[str, ir.Type], str] = {}
        beside = {op for op in found if _has_other(op)}
        for op in found:
            self._expand(op, module, functions, op in beside)

    def _expand(
        self,
        op: ir.Operation,
        module: ir.Module,
        functions: dict[tuple[str, ir.Type], str],
        beside: bool,
    ) -> None:
        type_ = op.results[0].type
        computed = _computed_in(type_)
        if computed is None:
            return
        width = Lane.of(computed).width
        formulas = _BESIDE[op.name][1] if beside else _FORMULAS[op.name]
        formula = formulas.get(width)
        if self.vector_bits == 512 and width == 32 and op.name in _IN_512_BITS:
            formula, beside = _IN_512_BITS[op.name], False
        name = f"{op.name}_beside" if beside else op.name
        if self.gpu and width == 32 and op.name in _ON_GPUS:
            rounded = computed != type_
            name = f"{op.name}_rounded" if rounded else op.name
            formula = _ON_GPUS[op.name][rounded]
        exponent = _splat_of(op.operands[1]) if op.name == "math.powf" else None
        if exponent is not None and exponent in _POWERS:
            name, formulas = _POWERS[exponent]
            formula = formulas.get(width)
        if formula is None:
            return
        key = (name, computed)
        if key not in functions:
            functions[key] = self._define(module, name, computed, formula, len(op.operands))
        with ir.InsertionPoint(op), op.location:
            operands = list(op.operands)
            if computed != type_:
                operands = [ir.Operation.create("arith.extf", [computed], [x]).result for x in operands]
            result = ir.Operation.create(
                "func.call",
                [computed],
                operands,
                attributes={"callee": ir.FlatSymbolRefAttr.get(functions[key])},
            ).result
            if computed != type_:
                result = ir.Operation.create("arith.truncf", [type_], [result]).result
        op.results[0].replace_all_uses_with(result)
        op.erase()

    def _define(
        self, module: ir.Module, op_name: str, type_: ir.Type, formula: Formula, arity: int
    ) -> str:
        suffix = "".join(c if c.isalnum() else "_" for c in str(type_)).strip("_")
        name = f"lamina_{op_name.partition('.')[2]}_{suffix}"
        with ir.InsertionPoint.at_block_begin(module.body), ir.Location.unknown():
            if isinstance(formula, NearAndFar):
                if self.vector_bits:
                    define_near_and_far(name, type_, formula, self.vector_bits)
                    return name
                formula = formula.far
            inline = ir.StringAttr.get("alwaysinline")
            arguments, function = define(name, [type_] * arity, type_, [inline])
            with ir.InsertionPoint(function.regions[0].blocks[0]):
                result = formula(*(Term.of(argument) for argument in arguments))
                ir.Operation.create("func.return", operands=[result.value])
        return name


def _has_other(op: ir.Operation) -> bool:
    """Whether the function that shares work with this one is wanted of the same operand, too."""
    if op.name not in _BESIDE:
        return False
    other = _BESIDE[op.name][0]
    return any(use.owner.operation.name == other for use in op.operands[0].uses)


def _splat_of(value: ir.Value) -> float | None:
    """The number that a value, or each lane of a vector, is if it is a constant."""
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name == "vector.broadcast":
        value = value.owner.operation.operands[0]
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "arith.constant":
        return None
    given = value.owner.operation.attributes["value"]
    if isinstance(given, ir.DenseElementsAttr) and given.is_splat:
        given = given.get_splat_value()
    return given.value if isinstance(given, ir.FloatAttr) else None


def _computed_in(type_: ir.Type) -> ir.Type | None:
    """The type in which a function of this type is computed: f32 for narrower floats."""
    element = type_.element_type if isinstance(type_, ir.VectorType) else type_
    if not isinstance(element, ir.FloatType) or element.width > 64:
        return None
    if element.width >= 32:
        return type_
    wide = ir.F32Type.get()
    return ir.VectorType.get(type_.shape, wide) if isinstance(type_, ir.VectorType) else wide
