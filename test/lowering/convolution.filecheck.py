# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.convolution."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: nhwc
# CHECK: stablehlo.convolution(%arg0, %arg1)
# CHECK-SAME: dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]
# CHECK-SAME: stride = [2, 2], pad = {{.+}}0, 1{{.+}}, lhs_dilate = [1, 1]
# CHECK-SAME: batch_group_count = 1 : i64, feature_group_count = 1 : i64
# CHECK-SAME: -> tensor<1x2x2x4xf32>
@print_ir("f32[1,4,4,3]", "f32[3,3,3,4]")
def nhwc(x, w):
    return lax.conv_general_dilated(
        x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
