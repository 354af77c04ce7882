"""exp of f32 on GPUs, by their instruction for powers of two.

2^f for f in [0, 1), exact to some 2^-22, times a power of two that is made of bits: x log2(e) = n + f, with n rounded
down and held in the range of exponents by a saturating sum; what log2(e) has beyond f32 goes into f, too. Results
are wrong by two units in the last place or so, over the whole range; infinities and NaNs come out of the same steps.
"""

from __future__ import annotations

import math

from lamina.dialects.vendors import ir
from lamina.passes.math.terms import Term, fma
from lamina.passes.math.variants import intrinsic

_LOG2_E = math.log2(math.e)
_HIGH = 1.44269502162933349609375  # as f32 has it, rounded down
_LOW = _LOG2_E - _HIGH
_EXPONENTS = 252  # from 2^-126 on
_SHIFTER = 1.5 * 2.0**23 + 1  # the sum's low bits are then the exponent as f32 has it


def exp(x: Term) -> Term:
    """e to the x."""
    number = _saturated_fma(x, _LOG2_E / _EXPONENTS, 0.5)
    shifted = intrinsic(
        "llvm.nvvm.fma.rm.f", x.lane, number.value,
        *(x.like(c).value for c in (float(_EXPONENTS), _SHIFTER)),
    )  # fmt: skip
    minus_n = (_SHIFTER + _EXPONENTS // 2) - shifted
    f = fma(x, _LOW, fma(x, _HIGH, minus_n))
    return _power_of_two(f) * (shifted.bits() << 23).as_float()


def exp_rounded(x: Term) -> Term:
    """e to the x for a result that is rounded to 16 bits: wrong by |x| units in the last place of f32."""
    return _power_of_two(x * _LOG2_E)


def _power_of_two(x: Term) -> Term:
    return intrinsic("llvm.nvvm.ex2.approx.ftz.f", x.lane, x.value)


def _saturated_fma(x: Term, factor: float, term: float) -> Term:
    """x factor + term, no less than 0 and no more than 1, and 0 for NaN: one instruction that LLVM has no name for."""
    op = ir.Operation.create(
        "llvm.inline_asm", [x.lane.float], [x.value, *(x.like(c).value for c in (factor, term))],
        attributes={
            "asm_string": ir.StringAttr.get("fma.rn.sat.f32 $0, $1, $2, $3;"),
            "constraints": ir.StringAttr.get("=f,f,f,f"),
        },
    )  # fmt: skip
    return Term(op.result, x.lane, "float")
