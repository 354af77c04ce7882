"""Take divisions and square roots of f32 apart in kernels whose products run beside the threads.

For `div.rn.f32` and `sqrt.rn.f32` the assembler calls a function of its own where numbers are very large
or small, and a kernel that calls anything has its `wgmma` done one after the other. So, in f64:

    %q = arith.divf %a, %b : f32    ->    x, y = extf of %a and %b;  g = rcp.approx of y
                                          r = g + g (1 - y g);  q = x r;  q = q + r (x - y q), each fused
                                          %q = truncf of q, or of x g where q is 0 or NaN

The same bits as IEEE's, whatever the operands. Let g be wrong by e, relatively: r is then by e^2, and q by
e^2 before and e^4 after its correction, whose remainder is exact, as it needs fewer than 53 bits; then q is
rounded, by 2^-53. Nothing overflows or is subnormal in f64. All f32 and what lies halfway between two of
them, or two subnormal ones, or the largest and infinity, has 25 bits or fewer. Where x / y is none of
them, it differs from each by 2^-49 at least: x and y are integers below 2^24 times powers of two, m below
2^25, so that x / y - m, where it is not 0, is 1 / (y m) of m or more. So q lies on the same side of m.
Where x / y is one of them, f64 holds it, and q is it. e < 2^-14 is enough; GPUs have 2^-19 or so.
With 0, infinity or NaN, r or x - y q is NaN, or q is 0 with perhaps the wrong sign; x g is what IEEE wants.

Roots likewise: of r = rsqrt.approx of x, g = x r and h = r / 2 are corrected by 1/2 - g h, then g by h (x - g g).
A root is never halfway between two f32 and differs from such m by 2^-51 at least, as x is no m m.

f16 are done in f32. Leaves alone f64, and kernels without `wgmma`, where calls are rare and hold nothing up.

example: test/passes/kernels/gpu/device/avoid_calls.mlir
"""

from __future__ import annotations

from collections.abc import Callable

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.kernels.gpu.device import approximations
from lamina.passes.math.terms import Term, fma


class AvoidCalls(Pass):
    """See the module's docstring."""

    only_with = frozenset(("nvvm.wgmma.fence.aligned", "llvm.inline_asm"))

    def run(self, module: ir.Module) -> None:
        if not any(map(_is_of_warpgroups, find_ops(module, *self.only_with))):
            return
        for op in find_ops(module, *_FORMULAS):
            operands = [Term.of(operand) for operand in op.operands]
            if operands[0].lane.width > 32:
                continue
            with ir.InsertionPoint(op), op.location:
                result = _FORMULAS[op.name](*(each.resized(32) for each in operands))
                op.results[0].replace_all_uses_with(result.resized(operands[0].lane.width).value)
            op.erase()
            self.count("functions")


def _is_of_warpgroups(op: ir.Operation) -> bool:
    if op.name != "llvm.inline_asm":
        return True
    return "wgmma" in ir.StringAttr(op.attributes["asm_string"]).value


def _quotient(a: Term, b: Term) -> Term:
    x, y = a.resized(64), b.resized(64)
    guess = _by(approximations.reciprocal, y)
    inverse = fma(guess, fma(-y, guess, 1.0), guess)
    quotient = x * inverse
    quotient = fma(fma(-y, quotient, x), inverse, quotient)
    return (quotient.magnitude() > 0.0).select(quotient, x * guess).resized(32)


def _root(a: Term) -> Term:
    x = a.resized(64)
    inverse = _by(approximations.reciprocal_root, x)
    root, half = x * inverse, inverse * 0.5
    error = fma(-root, half, 0.5)
    root, half = fma(root, error, root), fma(half, error, half)
    root = fma(fma(-root, root, x), half, root).resized(32)
    return (a.equals(0.0) | a.equals(float("inf"))).select(a, root)


def _by(instruction: Callable[[ir.Value], ir.Value], x: Term) -> Term:
    return Term(instruction(x.value), x.lane, x.kind)


_FORMULAS: dict[str, Callable[..., Term]] = {"arith.divf": _quotient, "math.sqrt": _root}
