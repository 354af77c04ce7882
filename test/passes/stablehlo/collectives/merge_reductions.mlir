// RUN: %lamina-opt %s --pass-pipeline="stablehlo-merge-reductions{most=64 together=128},stablehlo-dce" | FileCheck %s

module @m attributes {mhlo.num_partitions = 4 : i32} {
// One message where the last was; what reads the first's result comes after it.
// CHECK-LABEL: func.func public @two_and_a_reader
// CHECK: %[[TWICE:.*]] = stablehlo.add %arg1, %arg1
// CHECK: %[[WHOLE:.*]] = stablehlo.concatenate %arg0, %{{.*}}, dim = 0 : (tensor<4xf32>, tensor<6xf32>) -> tensor<10xf32>
// CHECK: %[[SUM:.*]] = "stablehlo.all_reduce"(%[[WHOLE]])
// CHECK-SAME{LITERAL}: replica_groups = dense<[[0, 1], [2, 3]]>
// CHECK: stablehlo.add
// CHECK-DAG: %[[A:.*]] = stablehlo.slice %[[SUM]] [0:4]
// CHECK-DAG: %[[FLAT:.*]] = stablehlo.slice %[[SUM]] [4:10]
// CHECK-DAG: %[[B:.*]] = stablehlo.reshape %[[FLAT]] : (tensor<6xf32>) -> tensor<2x3xf32>
// CHECK: %[[NEGATED:.*]] = stablehlo.negate
// CHECK-NOT: all_reduce
// CHECK: return
func.func public @two_and_a_reader(%x: tensor<4xf32>, %y: tensor<2x3xf32>) -> (tensor<4xf32>, tensor<2x3xf32>) {
  %a = "stablehlo.all_reduce"(%x) ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  %n = stablehlo.negate %a : tensor<4xf32>
  %yy = stablehlo.add %y, %y : tensor<2x3xf32>
  %b = "stablehlo.all_reduce"(%yy) ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %n, %b : tensor<4xf32>, tensor<2x3xf32>
}

// Not those that need each other, nor of other devices, combiners or types, nor large ones.
// CHECK-LABEL: func.func public @apart
// CHECK-COUNT-5: "stablehlo.all_reduce"
// CHECK-NOT: concatenate
// CHECK: return
func.func public @apart(%x: tensor<4xf32>, %y: tensor<4xi32>, %z: tensor<64xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<64xf32>) {
  %a = "stablehlo.all_reduce"(%x) ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  %b = "stablehlo.all_reduce"(%a) ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  %c = "stablehlo.all_reduce"(%x) ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.maximum %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  %d = "stablehlo.all_reduce"(%y) ({
  ^bb0(%l: tensor<i32>, %r: tensor<i32>):
    %s = stablehlo.maximum %l, %r : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>} : (tensor<4xi32>) -> tensor<4xi32>
  %e = "stablehlo.all_reduce"(%z) ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.maximum %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>} : (tensor<64xf32>) -> tensor<64xf32>
  return %b, %c, %d, %e : tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<64xf32>
}

// A message has a length: the third begins another.
// CHECK-LABEL: func.func public @two_messages
// CHECK: stablehlo.concatenate
// CHECK: "stablehlo.all_reduce"
// CHECK: -> tensor<32xf32>
// CHECK: "stablehlo.all_reduce"
// CHECK: -> tensor<16xf32>
func.func public @two_messages(%x: tensor<16xf32>, %y: tensor<16xf32>, %z: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) {
  %a = "stablehlo.all_reduce"(%x) ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>} : (tensor<16xf32>) -> tensor<16xf32>
  %b = "stablehlo.all_reduce"(%y) ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>} : (tensor<16xf32>) -> tensor<16xf32>
  %c = "stablehlo.all_reduce"(%z) ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>} : (tensor<16xf32>) -> tensor<16xf32>
  return %a, %b, %c : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
}
}
