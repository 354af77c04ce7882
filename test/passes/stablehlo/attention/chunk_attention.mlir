// RUN: %lamina-opt %s --pass-pipeline='stablehlo-chunk-attention{chunk-bytes=16384 least-bytes=32768}' | FileCheck %s

// 32 queries at a time: theirs of q and of the mask, whose iota begins at the first of them.
// CHECK-LABEL: func.func @main
// CHECK: %[[O:.*]]:2 = stablehlo.while(%[[I:.*]] = %{{.*}}, %[[OUT:.*]] = %{{.*}}) : tensor<i32>, tensor<2x128x16xf32>
// CHECK: %[[START:.*]] = stablehlo.multiply %[[I]]
// CHECK-DAG: %[[Q:.*]] = stablehlo.dynamic_slice %arg0, %{{.*}}, %[[START]], %{{.*}}, sizes = [2, 32, 16]
// CHECK-DAG: stablehlo.dot_general %[[Q]], %arg1, {{.*}} -> tensor<2x32x64xf32>
// CHECK-DAG: %[[FIRST:.*]] = stablehlo.broadcast_in_dim %[[START]], dims = [] : (tensor<i32>) -> tensor<32x64xi32>
// CHECK-DAG: stablehlo.add %{{.*}}, %[[FIRST]] : tensor<32x64xi32>
// CHECK: %[[Y:.*]] = stablehlo.dot_general {{.*}} -> tensor<2x32x16xf32>
// CHECK: stablehlo.dynamic_update_slice %[[OUT]], %[[Y]], %{{.*}}, %[[START]], %{{.*}}
// CHECK: return %[[O]]#1
func.func @main(%q: tensor<2x128x16xf32>, %k: tensor<2x64x16xf32>, %v: tensor<2x64x16xf32>) -> tensor<2x128x16xf32> {
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x128x16xf32>, tensor<2x64x16xf32>) -> tensor<2x128x64xf32>
  %i = stablehlo.iota dim = 0 : tensor<128x64xi32>
  %j = stablehlo.iota dim = 1 : tensor<128x64xi32>
  %seen = stablehlo.compare LE, %j, %i, SIGNED : (tensor<128x64xi32>, tensor<128x64xi32>) -> tensor<128x64xi1>
  %mask = stablehlo.broadcast_in_dim %seen, dims = [1, 2] : (tensor<128x64xi1>) -> tensor<2x128x64xi1>
  %low = stablehlo.constant dense<-1.0e+09> : tensor<2x128x64xf32>
  %t = stablehlo.select %mask, %s, %low : tensor<2x128x64xi1>, tensor<2x128x64xf32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %m = stablehlo.reduce(%t init: %least) applies stablehlo.maximum across dimensions = [2] : (tensor<2x128x64xf32>, tensor<f32>) -> tensor<2x128xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x128xf32>) -> tensor<2x128x64xf32>
  %d = stablehlo.subtract %t, %mb : tensor<2x128x64xf32>
  %e = stablehlo.exponential %d : tensor<2x128x64xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x128x64xf32>, tensor<f32>) -> tensor<2x128xf32>
  %lb = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<2x128xf32>) -> tensor<2x128x64xf32>
  %p = stablehlo.divide %e, %lb : tensor<2x128x64xf32>
  %o = stablehlo.dot_general %p, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x128x64xf32>, tensor<2x64x16xf32>) -> tensor<2x128x16xf32>
  return %o : tensor<2x128x16xf32>
}

// Fewer scores than are worth it.
// CHECK-LABEL: func.func @few
// CHECK-NOT: stablehlo.while
func.func @few(%q: tensor<32x16xf32>, %k: tensor<64x16xf32>, %v: tensor<64x16xf32>) -> tensor<32x16xf32> {
  %t = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<32x16xf32>, tensor<64x16xf32>) -> tensor<32x64xf32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %m = stablehlo.reduce(%t init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<32x64xf32>, tensor<f32>) -> tensor<32xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<32xf32>) -> tensor<32x64xf32>
  %d = stablehlo.subtract %t, %mb : tensor<32x64xf32>
  %e = stablehlo.exponential %d : tensor<32x64xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<32x64xf32>, tensor<f32>) -> tensor<32xf32>
  %lb = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<32xf32>) -> tensor<32x64xf32>
  %p = stablehlo.divide %e, %lb : tensor<32x64xf32>
  %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x16xf32>) -> tensor<32x16xf32>
  return %o : tensor<32x16xf32>
}
