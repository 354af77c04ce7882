# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.complex."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: parts
# CHECK: stablehlo.real
# CHECK: stablehlo.imag
# CHECK: stablehlo.complex
@print_ir("c64[5]")
def parts(x):
    return lax.complex(lax.real(x), lax.imag(x))


# CHECK-LABEL: TEST: conj
# CHECK: %[[IM:.+]] = stablehlo.imag %arg0
# CHECK: %[[NEG:.+]] = stablehlo.negate %[[IM]]
# CHECK: stablehlo.complex %{{.+}}, %[[NEG]]
@print_ir("c64[5]")
def conj(x):
    return lax.conj(x)
