// RUN: %lamina-opt %s --stablehlo-fold | FileCheck %s
// RUN: %lamina-opt %s --stablehlo-fold=max-bytes=16 | FileCheck %s --check-prefix=SMALL

// Integers wrap; division by zero, MIN / -1 and long shifts give XLA's values.
// CHECK-LABEL: func.func @integers
func.func @integers() -> (tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<2xi32>, tensor<2xui8>) {
  %a = stablehlo.constant dense<[7, -7, -2147483648]> : tensor<3xi32>
  %b = stablehlo.constant dense<[0, 2, -1]> : tensor<3xi32>
  %one = stablehlo.constant dense<1> : tensor<2xi32>
  %long = stablehlo.constant dense<[33, 31]> : tensor<2xi32>
  %byte = stablehlo.constant dense<[255, 1]> : tensor<2xui8>
  // CHECK-DAG: dense<[-1, -3, -2147483648]>
  // CHECK-DAG: dense<[7, -1, 0]>
  // CHECK-DAG: dense<[7, -5, 2147483647]>
  // CHECK-DAG: dense<[0, -2147483648]>
  // CHECK-DAG: dense<[254, 2]>
  // CHECK-NOT: stablehlo.divide
  %0 = stablehlo.divide %a, %b : tensor<3xi32>
  %1 = stablehlo.remainder %a, %b : tensor<3xi32>
  %2 = stablehlo.add %a, %b : tensor<3xi32>
  %3 = stablehlo.shift_left %one, %long : tensor<2xi32>
  %4 = stablehlo.add %byte, %byte : tensor<2xui8>
  return %0, %1, %2, %3, %4 : tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<2xi32>, tensor<2xui8>
}

// Float to integer saturates, NaN is 0.
// CHECK-LABEL: func.func @converts
func.func @converts() -> (tensor<5xi32>, tensor<4xui8>, tensor<2xi1>) {
  %a = stablehlo.constant dense<[0x7FC00000, 0x7F800000, 0xFF800000, 3.0e9, -1.7]> : tensor<5xf32>
  %b = stablehlo.constant dense<[0x7FC00000, 0x7F800000, -1.0, 300.0]> : tensor<4xf32>
  %c = stablehlo.constant dense<[0x7FC00000, 0.0]> : tensor<2xf32>
  // CHECK-DAG: dense<[0, 2147483647, -2147483648, 2147483647, -1]> : tensor<5xi32>
  // CHECK-DAG: dense<[0, 255, 0, 255]> : tensor<4xui8>
  // CHECK-DAG: dense<[true, false]> : tensor<2xi1>
  %0 = stablehlo.convert %a : (tensor<5xf32>) -> tensor<5xi32>
  %1 = stablehlo.convert %b : (tensor<4xf32>) -> tensor<4xui8>
  %2 = stablehlo.convert %c : (tensor<2xf32>) -> tensor<2xi1>
  return %0, %1, %2 : tensor<5xi32>, tensor<4xui8>, tensor<2xi1>
}

// One repeated element folds at any size, and stays one.
// CHECK-LABEL: func.func @repeated
func.func @repeated() -> tensor<1000x1000xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  // CHECK: stablehlo.constant dense<1.000000e+00> : tensor<1000x1000xf32>
  // CHECK-NEXT: return
  %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<1000x1000xf32>
  %1 = stablehlo.exponential %0 : tensor<1000x1000xf32>
  return %1 : tensor<1000x1000xf32>
}

// CHECK-LABEL: func.func @movement
func.func @movement() -> (tensor<3x2xi32>, tensor<2xi32>, tensor<5xi32>, tensor<i32>) {
  %m = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %v = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %z = stablehlo.constant dense<0> : tensor<i32>
  // CHECK-DAG: dense<[{{\[}}1, 4], [2, 5], [3, 6]]>
  // CHECK-DAG: dense<[6, 15]> : tensor<2xi32>
  // CHECK-DAG: dense<[0, 1, 0, 2, 0]> : tensor<5xi32>
  // CHECK-DAG: dense<3> : tensor<i32>
  %0 = stablehlo.transpose %m, dims = [1, 0] : (tensor<2x3xi32>) -> tensor<3x2xi32>
  %1 = stablehlo.reduce(%m init: %z) applies stablehlo.add across dimensions = [1] : (tensor<2x3xi32>, tensor<i32>) -> tensor<2xi32>
  %2 = stablehlo.pad %v, %z, low = [1], high = [1], interior = [1] : (tensor<2xi32>, tensor<i32>) -> tensor<5xi32>
  %3 = stablehlo.reduce(%v init: %z) applies stablehlo.add across dimensions = [0] : (tensor<2xi32>, tensor<i32>) -> tensor<i32>
  return %0, %1, %2, %3 : tensor<3x2xi32>, tensor<2xi32>, tensor<5xi32>, tensor<i32>
}

// What has an order in floats, or would be stored larger than it was, is left alone.
// CHECK-LABEL: func.func @left_alone
func.func @left_alone(%x: tensor<4xf32>) -> (tensor<f32>, tensor<100x4xf32>, tensor<100xi32>, tensor<4xf32>) {
  %v = stablehlo.constant dense<[0.1, 0.2, 0.3, 0.4]> : tensor<4xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  // CHECK: stablehlo.reduce
  // CHECK: stablehlo.broadcast_in_dim
  // CHECK: stablehlo.iota
  // CHECK: stablehlo.add %arg0
  %0 = stablehlo.reduce(%v init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  %1 = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<4xf32>) -> tensor<100x4xf32>
  %2 = stablehlo.iota dim = 0 : tensor<100xi32>
  %3 = stablehlo.add %x, %v : tensor<4xf32>
  return %0, %1, %2, %3 : tensor<f32>, tensor<100x4xf32>, tensor<100xi32>, tensor<4xf32>
}

// The bound counts bytes of the result.
// SMALL-LABEL: func.func @bound
func.func @bound() -> (tensor<4xi32>, tensor<5xi32>) {
  %a = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  %b = stablehlo.constant dense<[1, 2, 3, 4, 5]> : tensor<5xi32>
  // SMALL: dense<[2, 4, 6, 8]>
  // SMALL: stablehlo.add %{{.*}} : tensor<5xi32>
  %0 = stablehlo.add %a, %a : tensor<4xi32>
  %1 = stablehlo.add %b, %b : tensor<5xi32>
  return %0, %1 : tensor<4xi32>, tensor<5xi32>
}

// Types that NumPy has no buffers for fold as well.
// CHECK-LABEL: func.func @other_types
func.func @other_types() -> (tensor<2xbf16>, tensor<2xi4>, tensor<2xcomplex<f32>>) {
  %b = stablehlo.constant dense<[1.0, 2.5]> : tensor<2xbf16>
  %i = stablehlo.constant dense<[7, -8]> : tensor<2xi4>
  %c = stablehlo.constant dense<[(1.0, 2.0), (0.0, 1.0)]> : tensor<2xcomplex<f32>>
  // CHECK-DAG: dense<[2.000000e+00, 5.000000e+00]> : tensor<2xbf16>
  // CHECK-DAG: dense<[-2, 0]> : tensor<2xi4>
  // CHECK-DAG: dense<[(2.000000e+00,4.000000e+00), (0.000000e+00,2.000000e+00)]>
  %0 = stablehlo.add %b, %b : tensor<2xbf16>
  %1 = stablehlo.add %i, %i : tensor<2xi4>
  %2 = stablehlo.add %c, %c : tensor<2xcomplex<f32>>
  return %0, %1, %2 : tensor<2xbf16>, tensor<2xi4>, tensor<2xcomplex<f32>>
}
