"""What a function is at zeros, negative numbers, infinities and NaN: in AVX-512 one instruction."""

from __future__ import annotations

from collections.abc import Callable

from lamina.dialects.vendors import arith, ir
from lamina.passes.math.terms import Lane, Term
from lamina.passes.math.variants import LANES, call_variant, intrinsic

_ANY_ROUNDING = 4


def limits_in_512(
    name: str, scalar: Callable[[Term, Term], Term], digits: int, x: Term, y: Term
) -> Term:
    """y, but what `scalar` selects for special x; the sign of NaN aside. Denormals count as zero.

    `digits` says it for vectors, as vfixupimmps reads it, by hexadecimal digits from the lowest: for
    NaN (two), zero, one, both infinities, negative and positive x. 0 leaves y, 2 is x, 3 NaN, 4 and 5
    are the infinities, 6 the one of the sign of x, 8 is zero.
    """

    def fixed(x: Term, y: Term) -> Term:
        one = Lane.make(32, None)
        table = x.lane.constant(digits, "int").value
        immediate, rounding = (one.constant(number, "int").value for number in (0, _ANY_ROUNDING))
        everywhere = arith.constant(ir.IntegerType.get_signless(LANES), -1)
        return intrinsic(
            "llvm.x86.avx512.mask.fixupimm.ps.512",
            x.lane,
            *(y.value, x.value, table, immediate, everywhere, rounding),
        )

    return call_variant(f"limits_of_{name}", scalar, fixed, x, y)
