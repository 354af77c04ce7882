# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.scatter."""

from print_ir import print_ir

from lamina import lax

NUMBERS = lax.ScatterDimensionNumbers((1,), (0,), (0,))


# StableHLO's scatter drops what is out of bounds.
# CHECK-LABEL: TEST: replace
# CHECK: "stablehlo.scatter"(%arg0, %arg1, %arg2)
# CHECK-SAME: unique_indices = false
# CHECK: ^bb0(%{{.+}}: tensor<f32>, %[[NEW:.+]]: tensor<f32>)
# CHECK-NEXT: stablehlo.return %[[NEW]]
@print_ir("f32[5,3]", "i32[4,1]", "f32[4,3]")
def replace(x, i, u):
    return lax.scatter(x, i, u, NUMBERS)


# CHECK-LABEL: TEST: clip
# CHECK: %[[LIMITS:.+]] = stablehlo.broadcast_in_dim
# CHECK: %[[I:.+]] = stablehlo.clamp %{{.+}}, %arg1, %[[LIMITS]]
# CHECK: "stablehlo.scatter"(%arg0, %[[I]], %arg2)
# CHECK: stablehlo.add
@print_ir("f32[5,3]", "i32[4,1]", "f32[4,3]")
def clip(x, i, u):
    return lax.scatter_add(x, i, u, NUMBERS, mode="clip")


# CHECK-LABEL: TEST: combiners
# CHECK: stablehlo.multiply
# CHECK: stablehlo.minimum
# CHECK: stablehlo.maximum
@print_ir("f32[5,3]", "i32[4,1]", "f32[4,3]")
def combiners(x, i, u):
    x = lax.scatter_mul(x, i, u, NUMBERS)
    return lax.scatter_max(lax.scatter_min(x, i, u, NUMBERS), i, u, NUMBERS)
