# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.gather."""

import functools

from print_ir import print_ir

from lamina import lax

NUMBERS = lax.GatherDimensionNumbers((1,), (0,), (0,))
rows = functools.partial(lax.gather, dimension_numbers=NUMBERS, slice_sizes=(1, 3))


# StableHLO's gather clamps.
# CHECK-LABEL: TEST: clip
# CHECK: "stablehlo.gather"(%arg0, %arg1)
# CHECK-SAME: offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0]
# CHECK-SAME: index_vector_dim = 1
# CHECK-SAME: slice_sizes = array<i64: 1, 3>
# CHECK-NEXT: return
@print_ir("f32[5,3]", "i32[4,1]")
def clip(x, i):
    return rows(x, i, mode="clip")


# CHECK-LABEL: TEST: fill
# CHECK: %[[SLICES:.+]] = "stablehlo.gather"
# CHECK: stablehlo.compare LE, %arg1, %{{.+}}, SIGNED
# CHECK: stablehlo.compare GE, %arg1, %{{.+}}, SIGNED
# CHECK: stablehlo.reduce
# CHECK: %[[FILL:.+]] = stablehlo.constant dense<0x7FC00000>
# CHECK: stablehlo.select %{{.+}}, %[[SLICES]], %[[FILL]]
@print_ir("f32[5,3]", "i32[4,1]")
def fill(x, i):
    return rows(x, i)
