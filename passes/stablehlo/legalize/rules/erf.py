"""erf in f64 without divisions, where upstream has three.

    chlo.erf %x   ->   |x| < 1:    x + x P(x^2)
                       otherwise:  sign(x) (1 - exp(Q(min(|x|, 6))))

P is (erf(x) - x) / x at Chebyshev's points of x^2, of degree 11; Q is log(erfc(x)) of degree 17, by Remez's exchange
with the weight that an error of it has in the result. Both were computed with 50 digits; the result is within 1.3 ulp.
Upstream's is that of Cephes, which in vectors computes rational functions of three intervals.

example: test/passes/stablehlo/legalize/rules/erf.mlir
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of, shape_of
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.legalize.rules.rule import Rule

_SERIES = (
    0.12837916709551256, -0.37612638903183543, 0.11283791670945006, -0.02686617064323777, 0.0052239776071164225,
    -0.0008548325975389692, 0.00012055294904839707, -1.492473690741966e-05, 1.6447424703317362e-06,
    -1.6208483801871705e-07, 1.3720064546777686e-08, -7.795898827002142e-10,
)  # fmt: skip
_LOG_ERFC = (
    -5.02910259288755e-07, -1.1283740889271714, -0.6366436303965375, -0.10270343354466231, 0.018990168193500273,
    0.0004106418559895766, -0.0019159572478922148, 0.0007706540153295978, -0.00013505698987414258,
    -2.0263451335764866e-05, 2.282127550443444e-05, -8.666796450868218e-06, 2.1355919567073123e-06,
    -3.732877327571926e-07, 4.6420911179209134e-08, -3.934081925927285e-09, 2.044864617132286e-10,
    -4.9283730029428506e-12,
)  # fmt: skip
_ONE = 6.0  # and from there on it is 1 in f64


def _is_f64(op: ir.Operation) -> bool:
    return dtype_of(op.operands[0].type) == np.float64


def _without_division(op: ir.Operation) -> list[ir.Value]:
    x = op.operands[0]
    size = hlo.abs(x)
    near = hlo.add(x, hlo.multiply(x, _polynomial(hlo.multiply(x, x), _SERIES)))
    log_erfc = _polynomial(hlo.minimum(size, _same(x, _ONE)), _LOG_ERFC)
    far = hlo.subtract(_same(x, 1.0), hlo.exponential(log_erfc))
    far = hlo.select(hlo.compare(x, _same(x, 0.0), "LT"), hlo.negate(far), far)
    return [hlo.select(hlo.compare(size, _same(x, 1.0), "LT"), near, far)]


def _polynomial(x: ir.Value, coefficients: Sequence[float]) -> ir.Value:
    """Even and odd powers apart, two chains of half the length."""
    square = hlo.multiply(x, x)
    even, odd = (_horner(square, coefficients[first::2]) for first in (0, 1))
    return hlo.add(hlo.multiply(odd, x), even)


def _horner(x: ir.Value, coefficients: Sequence[float]) -> ir.Value:
    *rest, last = coefficients
    total = _same(x, last)
    for coefficient in reversed(rest):
        total = hlo.add(hlo.multiply(total, x), _same(x, coefficient))
    return total


def _same(x: ir.Value, value: float) -> ir.Value:
    return hlo.full(value, shape_of(x.type), np.float64)


RULE = Rule(("chlo.erf",), _is_f64, _without_division)
