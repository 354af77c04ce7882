// RUN: %lamina-opt %s --pass-pipeline=stablehlo-define-complex | FileCheck %s

// CHECK-LABEL: func.func @constant
// CHECK-DAG: stablehlo.constant dense<[1.000000e+00, 3.000000e+00]> : tensor<2xf32>
// CHECK-DAG: stablehlo.constant dense<[2.000000e+00, 0xFF800000]> : tensor<2xf32>
// CHECK: stablehlo.complex
func.func @constant() -> tensor<2xcomplex<f32>> {
  %0 = stablehlo.constant dense<[(1.0, 2.0), (3.0, 0xFF800000)]> : tensor<2xcomplex<f32>>
  return %0 : tensor<2xcomplex<f32>>
}

// CHECK-LABEL: func.func @splat
// CHECK-DAG: dense<1.000000e+00> : tensor<7xf64>
// CHECK-DAG: dense<2.000000e+00> : tensor<7xf64>
func.func @splat() -> tensor<7xcomplex<f64>> {
  %0 = stablehlo.constant dense<(1.0, 2.0)> : tensor<7xcomplex<f64>>
  return %0 : tensor<7xcomplex<f64>>
}

// CHECK-LABEL: func.func @lexicographic
// CHECK-DAG: stablehlo.compare GT
// CHECK-DAG: stablehlo.compare EQ
// CHECK-DAG: stablehlo.compare NE
// CHECK: stablehlo.select {{.*}}, %arg0, %arg1
func.func @lexicographic(%x: tensor<2xcomplex<f32>>, %y: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {
  %0 = stablehlo.maximum %x, %y : tensor<2xcomplex<f32>>
  return %0 : tensor<2xcomplex<f32>>
}

// CHECK-LABEL: func.func @bits
// CHECK-COUNT-2: stablehlo.bitcast_convert {{.*}} : (tensor<2xf64>) -> tensor<2x2xf32>
// CHECK: stablehlo.concatenate
func.func @bits(%x: tensor<2xcomplex<f64>>) -> tensor<2x2xcomplex<f32>> {
  %0 = stablehlo.bitcast_convert %x : (tensor<2xcomplex<f64>>) -> tensor<2x2xcomplex<f32>>
  return %0 : tensor<2x2xcomplex<f32>>
}

// CHECK-LABEL: func.func @real
// CHECK-NEXT: stablehlo.maximum
// CHECK-NEXT: return
func.func @real(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.maximum %x, %y : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// Scaled by a power of two: a root, and no quotient.
// CHECK-LABEL: func.func @modulus
// CHECK: stablehlo.maximum
// CHECK: stablehlo.bitcast_convert {{.*}} -> tensor<2xi64>
// CHECK: stablehlo.and
// CHECK-NOT: divide
// CHECK: stablehlo.sqrt
// CHECK: stablehlo.select
func.func @modulus(%x: tensor<2xcomplex<f64>>) -> tensor<2xf64> {
  %0 = stablehlo.abs %x : (tensor<2xcomplex<f64>>) -> tensor<2xf64>
  return %0 : tensor<2xf64>
}
