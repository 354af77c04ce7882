// RUN: %lamina-opt %s --gpu-write-kernels --split-input-file | FileCheck %s

// A row that fits: one kernel, in shared memory of two halves, a pass for each width of runs.
// CHECK: gpu.module @sort_gpu
// CHECK: memref.global "private" @{{.*}} : memref<2x128xf32, 3> = uninitialized
// CHECK: gpu.func @sort_0(%{{.*}}: memref<100xf32>, %{{.*}}: memref<100xf32>, %{{.*}}: memref<0xi8>) kernel
// CHECK-SAME: known_block_size = array<i32: 32, 1, 1>, known_grid_size = array<i32: 1, 1, 1>
// CHECK: gpu.barrier
// CHECK: scf.for
// CHECK: scf.while
// CHECK: stablehlo.compare LT
// CHECK: gpu.barrier
// CHECK: memref.store {{.*}}, %arg1
// CHECK-NOT: gpu.func @sort_1
func.func @sort(%x: tensor<100xf32>) -> tensor<100xf32> {
  %0 = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<100xf32>) -> tensor<100xf32>
  return %0 : tensor<100xf32>
}

// -----

// Integers are added atomically: the order does not matter.
// CHECK: gpu.func @integers_0
// CHECK: memref.atomic_rmw addi
// CHECK-NOT: gpu.func @integers_1
func.func @integers(%x: tensor<9xi32> {lamina.inout = 0 : i32}, %i: tensor<50x1xi32>, %u: tensor<50xi32>) -> tensor<9xi32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %1 = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }) : (tensor<9xi32>, tensor<50x1xi32>, tensor<50xi32>) -> tensor<9xi32>
  return %0 : tensor<9xi32>
}

// -----

// Floats are sorted by place first, then added in the order they were given in.
// CHECK: gpu.func @floats_0
// CHECK: gpu.func @floats_1
// CHECK: scf.while
// CHECK: stablehlo.add
// CHECK-NOT: atomic
func.func @floats(%x: tensor<9xf32> {lamina.inout = 0 : i32}, %i: tensor<50x1xi32>, %u: tensor<50xf32>) -> tensor<9xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<9xf32>, tensor<50x1xi32>, tensor<50xf32>) -> tensor<9xf32>
  return %0 : tensor<9xf32>
}

// -----

// Other functions are left alone.
// CHECK-LABEL: func.func @other
// CHECK: stablehlo.add
func.func @other(%x: tensor<9xf32>) -> tensor<9xf32> {
  %0 = stablehlo.add %x, %x : tensor<9xf32>
  return %0 : tensor<9xf32>
}
