// RUN: %lamina-opt %s --split-input-file --stablehlo-fuse=scalar-calls=true | FileCheck %s
// RUN: %lamina-opt %s --split-input-file --stablehlo-fuse | FileCheck %s --check-prefix=WITHOUT

// A function that many scalars take is a kernel, which the kernel of all the others calls.

// CHECK-LABEL: func.func public @main
// CHECK-NEXT: call @fused_multiply_0
// CHECK-NEXT: return
// CHECK-LABEL: func.func private @fused_multiply_0
// CHECK-SAME: lamina.kind = "scalar"
// CHECK-NOT: stablehlo.sine
// CHECK: call @fused_sine_0(
// CHECK-NEXT: stablehlo.multiply
// CHECK-NEXT: call @fused_sine_0(
// CHECK-NEXT: stablehlo.multiply
// CHECK-LABEL: func.func private @fused_sine_0(%arg0: tensor<f32>) -> tensor<f32>
// CHECK-SAME: lamina.kind = "loop", lamina.reason = "sine of many scalars"
// CHECK-NEXT: stablehlo.sine %arg0
// CHECK-NEXT: return

// WITHOUT-LABEL: func.func private @fused_multiply_0
// WITHOUT-SAME: lamina.kind = "loop"
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %1 = stablehlo.multiply %x, %x : tensor<f32>
  %2 = stablehlo.sine %1 : tensor<f32>
  %3 = stablehlo.multiply %2, %x : tensor<f32>
  %4 = stablehlo.sine %3 : tensor<f32>
  %5 = stablehlo.multiply %4, %x : tensor<f32>
  %6 = stablehlo.sine %5 : tensor<f32>
  %7 = stablehlo.multiply %6, %x : tensor<f32>
  %8 = stablehlo.sine %7 : tensor<f32>
  %9 = stablehlo.multiply %8, %x : tensor<f32>
  %10 = stablehlo.sine %9 : tensor<f32>
  %11 = stablehlo.multiply %10, %x : tensor<f32>
  %12 = stablehlo.sine %11 : tensor<f32>
  %13 = stablehlo.multiply %12, %x : tensor<f32>
  %14 = stablehlo.sine %13 : tensor<f32>
  %15 = stablehlo.multiply %14, %x : tensor<f32>
  %16 = stablehlo.sine %15 : tensor<f32>
  %17 = stablehlo.multiply %16, %x : tensor<f32>
  %18 = stablehlo.sine %17 : tensor<f32>
  %19 = stablehlo.multiply %18, %x : tensor<f32>
  return %19 : tensor<f32>
}

// -----

// Eight are no more work to compile than a kernel.

// CHECK-LABEL: func.func private @fused_multiply_0
// CHECK-SAME: lamina.kind = "loop"
// CHECK-NOT: call
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %1 = stablehlo.multiply %x, %x : tensor<f32>
  %2 = stablehlo.sine %1 : tensor<f32>
  %3 = stablehlo.multiply %2, %x : tensor<f32>
  %4 = stablehlo.sine %3 : tensor<f32>
  %5 = stablehlo.multiply %4, %x : tensor<f32>
  %6 = stablehlo.sine %5 : tensor<f32>
  %7 = stablehlo.multiply %6, %x : tensor<f32>
  %8 = stablehlo.sine %7 : tensor<f32>
  %9 = stablehlo.multiply %8, %x : tensor<f32>
  %10 = stablehlo.sine %9 : tensor<f32>
  %11 = stablehlo.multiply %10, %x : tensor<f32>
  %12 = stablehlo.sine %11 : tensor<f32>
  %13 = stablehlo.multiply %12, %x : tensor<f32>
  %14 = stablehlo.sine %13 : tensor<f32>
  %15 = stablehlo.multiply %14, %x : tensor<f32>
  %16 = stablehlo.sine %15 : tensor<f32>
  %17 = stablehlo.multiply %16, %x : tensor<f32>
  return %17 : tensor<f32>
}
