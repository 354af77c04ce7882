# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.convert."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: convert
# CHECK: stablehlo.convert %arg0 : (tensor<5xf32>) -> tensor<5xi32>
@print_ir("f32[5]")
def convert(x):
    return lax.convert_element_type(x, "int32")


# CHECK-LABEL: TEST: to_bool
# CHECK: stablehlo.compare NE, %arg0
@print_ir("f32[5]")
def to_bool(x):
    return lax.convert_element_type(x, bool)


# CHECK-LABEL: TEST: complex_to_real
# CHECK: %[[RE:.+]] = stablehlo.real %arg0
# CHECK: stablehlo.convert %[[RE]]
@print_ir("c64[5]")
def complex_to_real(x):
    return lax.convert_element_type(x, "int32")


# Only the weak type changes: no operation.
# CHECK-LABEL: TEST: to_weak
# CHECK-NEXT: module
# CHECK-NEXT: func.func
# CHECK-NEXT: return %arg0
@print_ir("f32[5]")
def to_weak(x):
    return lax.convert_element_type_p.bind(x, new_dtype=x.dtype, weak_type=True)


# CHECK-LABEL: TEST: bits
# CHECK: stablehlo.bitcast_convert %arg0 : (tensor<5xf32>) -> tensor<5x4xui8>
@print_ir("f32[5]")
def bits(x):
    return lax.bitcast_convert_type(x, "uint8")


# CHECK-LABEL: TEST: precision
# CHECK: stablehlo.reduce_precision %arg0, format = e5m4
@print_ir("f32[5]")
def precision(x):
    return lax.reduce_precision(x, 5, 4)
