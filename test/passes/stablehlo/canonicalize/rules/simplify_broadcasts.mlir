// RUN: %lamina-opt %s --stablehlo-simplify --split-input-file | FileCheck %s

// The gradient of sum(sin(repeat(x, 4))): a cosine of each element, four times.
// CHECK-LABEL: func.func @repeated
func.func @repeated(%x: tensor<5xf32>) -> tensor<5xf32> {
  // CHECK-NOT: stablehlo.reduce
  // CHECK: %[[C:.*]] = stablehlo.cosine %arg0 : tensor<5xf32>
  // CHECK: stablehlo.multiply %[[C]], %{{.*}} : tensor<5xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<5xf32>) -> tensor<5x4xf32>
  %1 = stablehlo.reshape %0 : (tensor<5x4xf32>) -> tensor<20xf32>
  %2 = stablehlo.cosine %1 : tensor<20xf32>
  %3 = stablehlo.reshape %2 : (tensor<20xf32>) -> tensor<5x4xf32>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<5x4xf32>, tensor<f32>) -> tensor<5xf32>
  return %4 : tensor<5xf32>
}

// -----

// Of operands that are spread alike, and of constants; not of operands that are spread otherwise.
// CHECK-LABEL: func.func @alike
func.func @alike(%x: tensor<5xf32>, %y: tensor<5xf32>, %s: tensor<f32>) -> (tensor<5x4xi1>, tensor<5x5xf32>, tensor<5x4xf32>) {
  // CHECK-DAG: %[[A:.*]] = stablehlo.compare LT, %arg0, %arg1 : {{.*}} -> tensor<5xi1>
  // CHECK-DAG: %[[B:.*]] = stablehlo.broadcast_in_dim %[[A]], dims = [0] : (tensor<5xi1>) -> tensor<5x4xi1>
  %0 = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<5xf32>) -> tensor<5x4xf32>
  %1 = stablehlo.broadcast_in_dim %y, dims = [0] : (tensor<5xf32>) -> tensor<5x4xf32>
  %2 = stablehlo.compare LT, %0, %1 : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x4xi1>
  // CHECK-DAG: %[[O:.*]] = stablehlo.add %{{.*}}, %{{.*}} : tensor<5x5xf32>
  %3 = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<5xf32>) -> tensor<5x5xf32>
  %4 = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<5xf32>) -> tensor<5x5xf32>
  %5 = stablehlo.add %3, %4 : tensor<5x5xf32>
  // CHECK-DAG: %[[K:.*]] = stablehlo.clamp %arg2, %arg0, %{{.*}} : (tensor<f32>, tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  // CHECK-DAG: %[[W:.*]] = stablehlo.broadcast_in_dim %[[K]], dims = [0]
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %6 = stablehlo.clamp %s, %0, %one : (tensor<f32>, tensor<5x4xf32>, tensor<f32>) -> tensor<5x4xf32>
  // CHECK: return %[[B]], %[[O]], %[[W]]
  return %2, %5, %6 : tensor<5x4xi1>, tensor<5x5xf32>, tensor<5x4xf32>
}

// -----

// A sum of copies is a product; -0 becomes the 0 that it begins with. Their greatest is one of them.
// CHECK-LABEL: func.func @copies
func.func @copies(%x: tensor<5xf32>, %n: tensor<5xi8>, %s: tensor<f32>) -> (tensor<5xf32>, tensor<f32>, tensor<5xf32>, tensor<5xi8>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %none = stablehlo.constant dense<0> : tensor<i8>
  // CHECK-DAG: %[[SIX:.*]] = stablehlo.constant dense<6.000000e+00> : tensor<5xf32>
  // CHECK-DAG: %[[P:.*]] = stablehlo.multiply %arg0, %[[SIX]]
  // CHECK-DAG: %[[A:.*]] = stablehlo.add %[[P]], %{{.*}} : tensor<5xf32>
  %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<5xf32>) -> tensor<2x5x3xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0, 2] : (tensor<2x5x3xf32>, tensor<f32>) -> tensor<5xf32>
  // CHECK-DAG: %[[S:.*]] = stablehlo.reduce(%arg0 init: %{{.*}}) applies stablehlo.add across dimensions = [0]
  // CHECK-DAG: %[[T:.*]] = stablehlo.multiply %[[S]], %{{.*}} : tensor<f32>
  %flat = stablehlo.reshape %0 : (tensor<2x5x3xf32>) -> tensor<30xf32>
  %2 = stablehlo.reduce(%flat init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<30xf32>, tensor<f32>) -> tensor<f32>
  // CHECK-DAG: %[[I:.*]] = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<5xf32>
  // CHECK-DAG: %[[M:.*]] = stablehlo.maximum %arg0, %[[I]] : tensor<5xf32>
  %3 = stablehlo.reduce(%0 init: %s) applies stablehlo.maximum across dimensions = [0, 2] : (tensor<2x5x3xf32>, tensor<f32>) -> tensor<5xf32>
  // 300 is 44 for 8 bits.
  // CHECK-DAG: stablehlo.constant dense<44> : tensor<5xi8>
  // CHECK-DAG: %[[N:.*]] = stablehlo.multiply %arg1, %{{.*}} : tensor<5xi8>
  %4 = stablehlo.broadcast_in_dim %n, dims = [1] : (tensor<5xi8>) -> tensor<300x5xi8>
  %5 = stablehlo.reduce(%4 init: %none) applies stablehlo.add across dimensions = [0] : (tensor<300x5xi8>, tensor<i8>) -> tensor<5xi8>
  // CHECK: return %[[A]], %[[T]], %[[M]], %[[N]]
  return %1, %2, %3, %5 : tensor<5xf32>, tensor<f32>, tensor<5xf32>, tensor<5xi8>
}

// -----

// bf16 has no 257, and a sum in it is rounded coarsely; a product of copies is a power, complex infinities
// times a number NaN.
// CHECK-LABEL: func.func @left_alone
// CHECK-COUNT-4: stablehlo.reduce
func.func @left_alone(%x: tensor<5xbf16>, %y: tensor<5xf32>, %c: tensor<5xcomplex<f32>>) -> (tensor<5xbf16>, tensor<bf16>, tensor<5xf32>, tensor<5xcomplex<f32>>) {
  %zero = stablehlo.constant dense<0.0> : tensor<bf16>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %none = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f32>>
  %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<5xbf16>) -> tensor<257x5xbf16>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<257x5xbf16>, tensor<bf16>) -> tensor<5xbf16>
  %2 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<5xbf16>) -> tensor<4x5xbf16>
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x5xbf16>, tensor<bf16>) -> tensor<bf16>
  %4 = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<5xf32>) -> tensor<4x5xf32>
  %5 = stablehlo.reduce(%4 init: %one) applies stablehlo.multiply across dimensions = [0] : (tensor<4x5xf32>, tensor<f32>) -> tensor<5xf32>
  %6 = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<5xcomplex<f32>>) -> tensor<4x5xcomplex<f32>>
  %7 = stablehlo.reduce(%6 init: %none) applies stablehlo.add across dimensions = [0] : (tensor<4x5xcomplex<f32>>, tensor<complex<f32>>) -> tensor<5xcomplex<f32>>
  return %1, %3, %5, %7 : tensor<5xbf16>, tensor<bf16>, tensor<5xf32>, tensor<5xcomplex<f32>>
}

// Each of several ops in turn, also where the first moved past the reshape before it moved past the broadcast.
// CHECK-LABEL: func.func @several
func.func @several(%x: tensor<4x3xf32>) -> tensor<4x6xf32> {
  // CHECK: %[[M:.*]] = stablehlo.multiply %arg0, %{{.*}} : tensor<4x3xf32>
  // CHECK: %[[A:.*]] = stablehlo.add %[[M]], %{{.*}} : tensor<4x3xf32>
  // CHECK: %[[E:.*]] = stablehlo.subtract %[[A]], %{{.*}} : tensor<4x3xf32>
  // CHECK: %[[B:.*]] = stablehlo.broadcast_in_dim %[[E]], dims = [0, 1] : (tensor<4x3xf32>) -> tensor<4x3x2xf32>
  // CHECK: %[[R:.*]] = stablehlo.reshape %[[B]]
  // CHECK: return %[[R]]
  %b = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<4x3xf32>) -> tensor<4x3x2xf32>
  %r = stablehlo.reshape %b : (tensor<4x3x2xf32>) -> tensor<4x6xf32>
  %two = stablehlo.constant dense<2.0> : tensor<4x6xf32>
  %m = stablehlo.multiply %r, %two : tensor<4x6xf32>
  %one = stablehlo.constant dense<1.0> : tensor<4x6xf32>
  %a = stablehlo.add %m, %one : tensor<4x6xf32>
  %three = stablehlo.constant dense<3.0> : tensor<4x6xf32>
  %s = stablehlo.subtract %a, %three : tensor<4x6xf32>
  return %s : tensor<4x6xf32>
}
