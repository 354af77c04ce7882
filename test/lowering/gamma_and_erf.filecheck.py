# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.gamma_and_erf."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: special_functions
# CHECK: chlo.erf
# CHECK: chlo.erfc
# CHECK: stablehlo.reduce_precision
# CHECK: chlo.erf_inv
# CHECK: chlo.lgamma
# CHECK: call @digamma
# CHECK: chlo.polygamma
# CHECK: chlo.zeta
@print_ir("f32[5]")
def special_functions(x):
    x = lax.digamma(lax.lgamma(lax.erf_inv(lax.erfc(lax.erf(x)))))
    return lax.zeta(lax.polygamma(1.0, x), x)
