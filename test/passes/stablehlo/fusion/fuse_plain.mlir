// RUN: %lamina-opt %s --pass-pipeline='stablehlo-fuse{max-ops=4 max-chain=4 max-plain=8}' --split-input-file | FileCheck %s

// What is only element-wise becomes loops over vectors that do not wait for each other: a kernel may be longer.
// CHECK-LABEL: func.func @plain
// CHECK-NEXT: call @fused
// CHECK-NEXT: return
func.func @plain(%x: tensor<100xf32>) -> tensor<100xf32> {
  %0 = stablehlo.abs %x : tensor<100xf32>
  %1 = stablehlo.sine %0 : tensor<100xf32>
  %2 = stablehlo.multiply %1, %x : tensor<100xf32>
  %3 = stablehlo.sine %2 : tensor<100xf32>
  %4 = stablehlo.add %3, %x : tensor<100xf32>
  %5 = stablehlo.sine %4 : tensor<100xf32>
  %6 = stablehlo.add %5, %x : tensor<100xf32>
  %7 = stablehlo.sine %6 : tensor<100xf32>
  return %7 : tensor<100xf32>
}

// -----

// The same bits as a number of another type are an element of a vector, too.
// CHECK-LABEL: func.func @bits
// CHECK-NEXT: call @fused
// CHECK-NEXT: return
func.func @bits(%x: tensor<100xf32>) -> tensor<100xf32> {
  %0 = stablehlo.sine %x : tensor<100xf32>
  %1 = stablehlo.bitcast_convert %0 : (tensor<100xf32>) -> tensor<100xui32>
  %2 = stablehlo.and %1, %1 : tensor<100xui32>
  %3 = stablehlo.bitcast_convert %2 : (tensor<100xui32>) -> tensor<100xf32>
  %4 = stablehlo.add %3, %x : tensor<100xf32>
  %5 = stablehlo.sine %4 : tensor<100xf32>
  return %5 : tensor<100xf32>
}

// -----

// Numbers of 16 bits are done in loops of LLVM's, which are cut as well.
// CHECK-LABEL: func.func @halves
// CHECK-NEXT: call @fused
// CHECK-NEXT: return
func.func @halves(%x: tensor<100xf16>) -> tensor<100xf16> {
  %0 = stablehlo.abs %x : tensor<100xf16>
  %1 = stablehlo.sine %0 : tensor<100xf16>
  %2 = stablehlo.multiply %1, %x : tensor<100xf16>
  %3 = stablehlo.sine %2 : tensor<100xf16>
  %4 = stablehlo.add %3, %x : tensor<100xf16>
  %5 = stablehlo.sine %4 : tensor<100xf16>
  %6 = stablehlo.sine %5 : tensor<100xf16>
  return %6 : tensor<100xf16>
}

// -----

// Complex numbers are many ops each.
// CHECK-LABEL: func.func @complex
// CHECK-COUNT-2: call @fused
// CHECK-NOT: call
func.func @complex(%x: tensor<100xcomplex<f32>>) -> tensor<100xcomplex<f32>> {
  %0 = stablehlo.sine %x : tensor<100xcomplex<f32>>
  %1 = stablehlo.multiply %0, %x : tensor<100xcomplex<f32>>
  %2 = stablehlo.sine %1 : tensor<100xcomplex<f32>>
  %3 = stablehlo.add %2, %x : tensor<100xcomplex<f32>>
  %4 = stablehlo.sine %3 : tensor<100xcomplex<f32>>
  %5 = stablehlo.sine %4 : tensor<100xcomplex<f32>>
  return %5 : tensor<100xcomplex<f32>>
}

// -----

// What reads elements in another order is stored here for a longer chain to read.
// CHECK-LABEL: func.func @reversed
// CHECK-COUNT-2: call @fused
// CHECK: stablehlo.reverse
// CHECK: elementwise chain of 5; stopped at reverse: the group has its 4 ops
func.func @reversed(%x: tensor<100xf32>) -> tensor<100xf32> {
  %0 = stablehlo.reverse %x, dims = [0] : tensor<100xf32>
  %1 = stablehlo.sine %0 : tensor<100xf32>
  %2 = stablehlo.abs %1 : tensor<100xf32>
  %3 = stablehlo.sine %2 : tensor<100xf32>
  %4 = stablehlo.abs %3 : tensor<100xf32>
  %5 = stablehlo.sine %4 : tensor<100xf32>
  return %5 : tensor<100xf32>
}
