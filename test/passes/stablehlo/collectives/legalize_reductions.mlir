// RUN: %lamina-opt %s --stablehlo-legalize-reductions=nccl=true | FileCheck %s
// RUN: %lamina-opt %s --stablehlo-legalize-reductions | FileCheck %s --check-prefix=MPI

module @m attributes {mhlo.num_partitions = 2 : i32} {
// NaN has the largest key.
// CHECK-LABEL: func.func public @largest
// CHECK: %[[BITS:.*]] = stablehlo.bitcast_convert %arg0 : (tensor<4xf32>) -> tensor<4xi32>
// CHECK: %[[NAN:.*]] = stablehlo.compare NE, %arg0, %arg0
// CHECK: %[[KEY:.*]] = stablehlo.select %[[NAN]]
// CHECK: "stablehlo.all_reduce"(%[[KEY]])
// CHECK: stablehlo.maximum %{{.*}} : tensor<i32>
// CHECK: %[[BACK:.*]] = stablehlo.bitcast_convert %{{.*}} : (tensor<4xi32>) -> tensor<4xf32>
// CHECK: return %[[BACK]]
// MPI-LABEL: func.func public @largest
// MPI: "stablehlo.all_reduce"(%arg0)
func.func public @largest(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Of one byte they become f32 for every transport.
// CHECK-LABEL: func.func public @small
// CHECK: "stablehlo.all_reduce"(%{{.*}})
// CHECK: stablehlo.add %{{.*}} : tensor<f32>
// MPI-LABEL: func.func public @small
// MPI: %[[WIDE:.*]] = stablehlo.convert %arg0 : (tensor<4xf8E4M3FN>) -> tensor<4xf32>
// MPI: "stablehlo.all_reduce"(%[[WIDE]])
// MPI: stablehlo.convert %{{.*}} : (tensor<4xf32>) -> tensor<4xf8E4M3FN>
func.func public @small(%x: tensor<4xf8E4M3FN>) -> tensor<4xf8E4M3FN> {
  %0 = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f8E4M3FN>, %b: tensor<f8E4M3FN>):
    %s = stablehlo.add %a, %b : tensor<f8E4M3FN>
    stablehlo.return %s : tensor<f8E4M3FN>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf8E4M3FN>) -> tensor<4xf8E4M3FN>
  return %0 : tensor<4xf8E4M3FN>
}

// CHECK-LABEL: func.func public @bits
// CHECK: %[[ALL:.*]] = "stablehlo.all_to_all"(%arg0)
// CHECK: %[[SUM:.*]] = stablehlo.reduce(%[[ALL]]
// CHECK-SAME: applies stablehlo.xor across dimensions = [0]
// CHECK: stablehlo.reshape %[[SUM]] : (tensor<3xi32>) -> tensor<1x3xi32>
func.func public @bits(%x: tensor<2x3xi32>) -> tensor<1x3xi32> {
  %0 = "stablehlo.reduce_scatter"(%x) ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.xor %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) {scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2x3xi32>) -> tensor<1x3xi32>
  return %0 : tensor<1x3xi32>
}

// CHECK-LABEL: func.func public @booleans
// CHECK: stablehlo.convert %arg0 : (tensor<4xi1>) -> tensor<4xui8>
// CHECK: stablehlo.minimum %{{.*}} : tensor<ui8>
// CHECK: stablehlo.convert %{{.*}} : (tensor<4xui8>) -> tensor<4xi1>
func.func public @booleans(%x: tensor<4xi1>) -> tensor<4xi1> {
  %0 = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<i1>, %b: tensor<i1>):
    %s = stablehlo.and %a, %b : tensor<i1>
    stablehlo.return %s : tensor<i1>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xi1>) -> tensor<4xi1>
  return %0 : tensor<4xi1>
}

// CHECK-LABEL: func.func public @sum
// CHECK: "stablehlo.all_reduce"(%arg0)
func.func public @sum(%x: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %0 = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<complex<f32>>, %b: tensor<complex<f32>>):
    %s = stablehlo.add %a, %b : tensor<complex<f32>>
    stablehlo.return %s : tensor<complex<f32>>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}
}
