"""Divide integers as floats in loops: vectors divide those, and no integers.

    %r = arith.remsi %a, %b : i8   ->   %x, %y = sitofp of %a and %b : f32
                                        %q = fptosi(%x / %y)
                                        %r = fptosi(%x - sitofp(%q) * %y)

By f32 for up to 16 bits, by f64 for 32. Exact: of n bits, 0 <= a < 2^n, 0 < b < 2^n and the quotient q
towards zero, a / b <= q + 1 - 1 / b. Rounded to p bits that stays below q + 1 unless 1 / b is at most
half of a unit there, (q + 1) / 2^p; but (q + 1) b <= a + b < 2^(n+1). Rounding keeps order and q is
a float, so it isn't below q either. The product q b is at most a. Signs change nothing.

Of 64 bits, magnitudes are divided where vectors have 512 bits, and with them such conversions:

    %s = (1 - 2^-50) / uitofp(b)       %q = fptoui(uitofp(a) * %s)        %r = a - %q * b
    %more = fptoui(uitofp(%r) * %s)    %q += %more;  %r -= %more * b      and once more if %r >= b

Four roundings are less than 2^-50, so no q is too large and no rest negative. The first quotient lacks
less than 1 + 2^15, and the second is of what that leaves: what it lacks is less than 1 + 2^-34.

What is divided may be known to have at most 52 bits, such as the number of a place: that is one division by f64,
as above. A divisor that is not exact as a float is larger than it, and the quotient 0.

Leaves alone divisions by constants, which LLVM makes products; of indices; outside of loops and where
one iteration waits for the one before, since a float's takes twice as long until it is there.
Divisions by zero, and of the least number by -1, are as undefined as before: StableHLO's select
another divisor there.

example: test/passes/math/divide_by_floats.mlir
"""

from __future__ import annotations

from collections.abc import Callable

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops, is_inside
from lamina.passes.math.terms import Kind, Lane, Term

_SIGNED = ("arith.divsi", "arith.remsi")
_UNSIGNED = ("arith.divui", "arith.remui")
_REMAINDERS = ("arith.remsi", "arith.remui")
_EXACT_BITS = 52  # so that the sum of a number and a smaller divisor is exact in f64, too
_COUNTER_BITS = 48  # of a loop's counter: no array has more elements
_BITS: dict[str, Callable[..., int]] = {
    "arith.index_cast": lambda x: x,
    "arith.extsi": lambda x: x,
    "vector.broadcast": lambda x: x,
    "arith.addi": lambda x, y: max(x, y) + 1,
    "arith.subi": lambda x, y: max(x, y) + 1,
    "arith.muli": lambda x, y: x + y,
    "arith.remsi": min,
    "arith.divsi": lambda x, _: x,
    "arith.select": lambda _, x, y: max(x, y),
}
"""Of the results of ops, by those of their operands."""


class DivideByFloats(Pass):
    """See the module's docstring."""

    vector_bits: int = 256

    def run(self, module: ir.Module) -> None:
        most = 64 if self.vector_bits == 512 else 32
        found = find_ops(module, *_SIGNED, *_UNSIGNED)
        chosen = [op for op in found if _is_for_floats(op, most)]  # before any is replaced
        for op in chosen:
            with ir.InsertionPoint(op), op.location:
                is_wide = _width(op.results[0].type) == 64 and not _is_exact(op)
                result = _divided_wide(op) if is_wide else _divided(op)
                op.results[0].replace_all_uses_with(result)
            op.erase()
        self.count("divisions", len(chosen))


def _is_for_floats(op: ir.Operation, most: int) -> bool:
    by = op.operands[1]
    made_by = None if isinstance(by.owner, ir.Block) else by.owner.operation.name
    if made_by == "arith.constant" or not 8 <= _width(by.type) <= most:
        return False
    loop = op.parent
    while loop.name in ("scf.if", "scf.execute_region"):
        loop = loop.parent
    return loop.name == "scf.for" and not _waits(op, loop)


def _width(type_: ir.Type) -> int:
    """Bits of an integer or of the elements of a vector; 0 of an index."""
    element = type_.element_type if isinstance(type_, ir.VectorType) else type_
    return element.width if isinstance(element, ir.IntegerType) else 0


def _is_exact(op: ir.Operation) -> bool:
    """Whether what is divided is an exact float, and so few that quotients are."""
    return op.name in _SIGNED and _bits(op.operands[0]) <= _EXACT_BITS


def _bits(value: ir.Value, depth: int = 4) -> int:
    """How many bits the magnitude of a signed integer has at most."""
    most = _width(value.type) or 64
    if isinstance(value.owner, ir.Block):
        block = value.owner
        counts = block.owner.operation.name == "scf.for" and value == block.arguments[0]
        return min(most, _COUNTER_BITS) if counts else most
    op = value.owner.operation
    if op.name == "arith.constant":
        number = op.attributes["value"]
        return abs(number.value).bit_length() if isinstance(number, ir.IntegerAttr) else most
    if not depth or op.name not in _BITS:
        return most
    return min(most, _BITS[op.name](*(_bits(operand, depth - 1) for operand in op.operands)))


def _waits(op: ir.Operation, loop: ir.Operation) -> bool:
    """Whether what is divided comes from what the iteration before has left."""
    body = loop.regions[0].blocks[0]
    stores = find_ops(loop, "memref.store")
    seen: set[ir.Value] = set()
    left = list(op.operands)
    while left:
        value = left.pop()
        if value in seen:
            continue
        seen.add(value)
        if isinstance(value.owner, ir.Block):
            if value.owner == body and value != body.arguments[0]:
                return True
            continue
        maker = value.owner.operation
        if not is_inside(maker, loop):
            continue
        if maker.name == "memref.load":
            into = [store for store in stores if store.operands[1] == maker.operands[0]]
            if any(list(store.operands[1:]) != list(maker.operands) for store in into):
                return True
            before = [s for s in into if s.block == maker.block and s.is_before_in_block(maker)]
            left += [store.operands[0] for store in before]
            if into and not before and not any(_differs(at, loop) for at in maker.operands[1:]):
                return True
        left += maker.operands
    return False


def _differs(value: ir.Value, loop: ir.Operation) -> bool:
    """Whether a value is made anew in each iteration of a loop."""
    if isinstance(value.owner, ir.Block):
        return value.owner == loop.regions[0].blocks[0]
    return is_inside(value.owner.operation, loop)


def _divided(op: ir.Operation) -> ir.Value:
    of = op.results[0].type
    shape = tuple(of.shape) if isinstance(of, ir.VectorType) else None
    word = Lane.make(32, shape)
    narrow = _width(of) <= 16
    lane = word if narrow else word.resized(64)
    word = lane if _width(of) == 64 else word
    signed = op.name in _SIGNED
    kind = "si" if narrow or signed else "ui"  # a word holds what is narrower, of any sign

    def to_float(value: ir.Value) -> Term:
        made = ir.Operation.create(f"arith.{kind}tofp", [lane.float], [value])
        return Term(made.result, lane, "float")

    def to_word(number: Term) -> ir.Value:
        # LLVM's own: `math-saturate-conversions` need not look after what is in range.
        return ir.Operation.create(f"llvm.fpto{kind}", [word.int], [number.value]).result

    extend = "arith.extsi" if signed else "arith.extui"
    x, y = (to_float(_resized(extend, operand, word.int)) for operand in op.operands)
    result = to_word(x / y)
    if op.name in _REMAINDERS:
        result = to_word(x - to_float(result) * y)
    return _resized("arith.trunci", result, of)


def _divided_wide(op: ir.Operation) -> ir.Value:
    of = op.results[0].type
    lane = Lane.make(64, tuple(of.shape) if isinstance(of, ir.VectorType) else None)
    a, b = (Term(operand, lane, "int") for operand in op.operands)
    x, y = a, b
    signed = op.name in _SIGNED
    if signed:
        x, y = _with_sign(a, a >> 63), _with_sign(b, b >> 63)
    scale = (1 - 2.0**-50) / _converted(y, "arith.uitofp", "float")

    def quotient(number: Term) -> Term:
        return _converted(_converted(number, "arith.uitofp", "float") * scale, "llvm.fptoui", "int")

    result = quotient(x)
    rest = x - result * y
    more = quotient(rest)
    result, rest = result + more, rest - more * y
    is_less = rest.compare("u<", y)
    if op.name in _REMAINDERS:
        result = is_less.select(rest, rest - y)
        return (_with_sign(result, a >> 63) if signed else result).value
    result = is_less.select(result, result + 1)
    return (_with_sign(result, (a ^ b) >> 63) if signed else result).value


def _with_sign(number: Term, sign: Term) -> Term:
    """The number times -1 where the sign is that, and as it is where it is 0."""
    return (number ^ sign) - sign


def _converted(number: Term, name: str, kind: Kind) -> Term:
    made = ir.Operation.create(name, [number.lane.type_of(kind)], [number.value])
    return Term(made.result, number.lane, kind)


def _resized(name: str, value: ir.Value, type_: ir.Type) -> ir.Value:
    """The value, by this op where its type is another."""
    return value if value.type == type_ else ir.Operation.create(name, [type_], [value]).result
