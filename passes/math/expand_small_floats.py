"""Compute in f32 where the type is a float format that processors lack: bf16, f8, f6, f4.

Every operation on such a type is done in f32 and rounded back at once, so that results do not
depend on how operations were grouped. Conversions become integer code that rounds once, also from
f64. f64 to f16 is among them: where processors lack it, LLVM would call a function. LLVM sees the
f8 and narrower types as integers that it carries. Leaves data movement alone, and, where `native`
or an op on vectors says so, conversions that the processor has.

example: test/passes/math/expand_small_floats.mlir
"""

from __future__ import annotations

from lamina.dialects.attributes import NATIVE
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import remade
from lamina.passes.framework.base import Pass
from lamina.passes.framework.upstream import run_upstream
from lamina.passes.math.small_floats import F16, FORMATS, SmallFormat, decode, encode
from lamina.passes.math.terms import Lane, Term

_CARRIED = frozenset(("arith.select", "arith.bitcast"))


class ExpandSmallFloats(Pass):
    """See the module's docstring. `native` names the formats to which the processor rounds f32 itself:
    the same bits, but for those of NaN."""

    native: tuple[str, ...] = ()

    def run(self, module: ir.Module) -> None:
        found: list[ir.Operation] = []
        is_small: dict[ir.Type, bool] = {}  # there are few types, and many ops

        def visit(op: ir.Operation) -> ir.WalkResult:
            name = op.name
            if name.startswith(("arith.", "math.")) and name not in _CARRIED:
                for value in (*op.results, *op.operands):
                    type_ = value.type
                    if type_ not in is_small:
                        is_small[type_] = _format_of(type_) is not None
                    if is_small[type_]:
                        if not _is_left(op):
                            found.append(op)
                        return ir.WalkResult.ADVANCE
                if _skips_f32(op):
                    found.append(op)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        for op in reversed(found):  # a use of a constant sees it before it is expanded
            with ir.InsertionPoint(op), op.location:
                _expand(op, self.native)
        if found:
            # What a constant gave rise to is folded here: in the llvm dialect nothing folds it, and
            # a float constant that LLVM folds while it is printed is one that we did not spell.
            run_upstream(module, "canonicalize")


def _expand(op: ir.Operation, native: tuple[str, ...]) -> None:
    result = op.results[0]
    if op.name == "arith.constant":
        replacement = _constant(op)
    elif op.name == "arith.extf":
        replacement = _convert_float(_widened(op.operands[0]), result.type, native)
    elif op.name == "arith.truncf":
        replacement = _convert_float(_widened(op.operands[0]), result.type, native)
    elif op.name in ("arith.sitofp", "arith.uitofp"):
        # f64 holds every i32; what it rounds of an i64 lies far below a small float's last bit.
        wide = _is_wide_integer(op.operands[0].type)
        through = _with_element(result.type, ir.F64Type.get() if wide else ir.F32Type.get())
        number = ir.Operation.create(op.name, [through], [op.operands[0]]).result
        replacement = _convert_float(Term.of(number), result.type, native)
    else:
        replacement = _in_f32(op, native)
    if replacement is not None:
        result.replace_all_uses_with(replacement)
        op.erase()


def _in_f32(op: ir.Operation, native: tuple[str, ...]) -> ir.Value:
    """The operation on f32, its result rounded if it is of a small type."""
    operands = [_widened(value).value if _format_of(value.type) else value for value in op.operands]
    of = op.results[0].type
    is_small = _format_of(of) is not None
    through = _with_element(of, ir.F32Type.get()) if is_small else of
    value = remade(op, [through], operands).result
    return _convert_float(Term.of(value), of, native) if is_small else value


def _widened(value: ir.Value) -> Term:
    """The value in f32, or in f64 if it is one."""
    format_ = _format_of(value.type)
    if format_ is None:
        term = Term.of(value)
        return term.resized(32) if term.lane.width < 32 else term
    lane = Lane.of(_with_element(value.type, ir.F32Type.get()))
    number = _number_of(value)
    if number is not None:
        return lane.constant(number, "float")
    code_type = _with_element(value.type, ir.IntegerType.get_signless(format_.bits))
    code = ir.Operation.create("arith.bitcast", [code_type], [value]).result
    wide = ir.Operation.create("arith.extui", [lane.int], [code]).result
    return decode(Term(wide, lane, "int"), format_)


def _convert_float(term: Term, to: ir.Type, native: tuple[str, ...] = ()) -> ir.Value:
    """An f32 or f64 as a value of any float type, rounded once."""
    format_ = _format_of(to)
    if term.lane.width == 32 and str(_element(to)) in native:
        return ir.Operation.create("arith.truncf", [to], [term.value]).result
    if format_ is None:
        lane = Lane.of(to)
        if (term.lane.width, lane.width) != (64, 16):
            return term.resized(lane.width).value
        format_ = F16
    code_type = _with_element(to, ir.IntegerType.get_signless(format_.bits))
    code = encode(term, format_)
    narrow = ir.Operation.create("arith.trunci", [code_type], [code.value]).result
    return ir.Operation.create("arith.bitcast", [to], [narrow]).result


def _constant(op: ir.Operation) -> ir.Value | None:
    """A constant as the bits of its code; LLVM has bf16 constants itself."""
    of = op.results[0].type
    format_ = _format_of(of)
    attribute = op.attributes["value"]
    if isinstance(of, ir.BF16Type) or format_ is None or not isinstance(attribute, ir.FloatAttr):
        return None
    code_type = ir.IntegerType.get_signless(format_.bits)
    code = ir.IntegerAttr.get(code_type, format_.code_of(attribute.value))
    bits = ir.Operation.create("arith.constant", [code_type], attributes={"value": code}).result
    return ir.Operation.create("arith.bitcast", [of], [bits]).result


def _number_of(value: ir.Value) -> float | None:
    """The number a scalar constant holds: computing with it here saves the code that would."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    return attribute.value if isinstance(attribute, ir.FloatAttr) else None


def _format_of(type_: ir.Type) -> SmallFormat | None:
    element = _element(type_)
    return FORMATS.get(str(element)) if isinstance(element, ir.FloatType) else None


def _skips_f32(op: ir.Operation) -> bool:
    """Whether the op rounds f64 to f16."""
    if op.name != "arith.truncf":
        return False
    return Lane.of(op.operands[0].type).width == 64 and Lane.of(op.results[0].type).width == 16


def _is_left(op: ir.Operation) -> bool:
    """Whether the processor rounds. One number at a time it would keep LLVM from writing a loop over vectors."""
    return NATIVE in op.attributes and isinstance(op.results[0].type, ir.VectorType)


def _is_wide_integer(type_: ir.Type) -> bool:
    return ir.IntegerType(_element(type_)).width > 16


def _element(type_: ir.Type) -> ir.Type:
    return type_.element_type if isinstance(type_, ir.VectorType) else type_


def _with_element(type_: ir.Type, element: ir.Type) -> ir.Type:
    return ir.VectorType.get(type_.shape, element) if isinstance(type_, ir.VectorType) else element
