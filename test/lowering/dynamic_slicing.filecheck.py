# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.dynamic_slicing."""

from print_ir import print_ir

from lamina import lax


# A negative start counts from the end; StableHLO clamps.
# CHECK-LABEL: TEST: dynamic_slice
# CHECK: %[[NEGATIVE:.+]] = stablehlo.compare LT, %arg1, %{{.+}}, SIGNED
# CHECK: %[[START:.+]] = stablehlo.select %[[NEGATIVE]]
# CHECK: stablehlo.dynamic_slice %arg0, %[[START]], %{{.+}}, sizes = [2, 5]
@print_ir("f32[4,5]", "i32[]")
def dynamic_slice(x, i):
    return lax.dynamic_slice(x, (i, 0), (2, 5))


# CHECK-LABEL: TEST: dynamic_update_slice
# CHECK: stablehlo.dynamic_update_slice %arg0, %arg1,
@print_ir("f32[4,5]", "f32[1,5]", "u32[]")
def dynamic_update_slice(x, u, i):
    return lax.dynamic_update_slice_in_dim(x, u, i, 0)
